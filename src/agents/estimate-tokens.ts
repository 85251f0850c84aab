/** Bytes of UTF-8 counted as one token. Low enough for every tokenizer in use; most texts have fewer tokens. */
export const bytesPerToken = 3

/** Returns an upper estimate of the tokens of a text, for any tokenizer. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken)
}
