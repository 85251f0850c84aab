/** Number of UTF-8 bytes that count as one token. With common tokenizers, the average token is longer. */
export const bytesPerToken = 3

/** Returns an upper estimate of the number of tokens of a text. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken)
}
