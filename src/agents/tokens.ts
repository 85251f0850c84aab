/** Bytes of UTF-8 counted as one token. Low enough for every tokenizer in use; most texts have fewer tokens. */
export const bytesPerToken = 3

/** Returns the number of tokens that a text counts as, whatever tokenizer the model has. */
export function tokensIn(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken)
}
