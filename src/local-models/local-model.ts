import type { WordPieceSettings } from '../sentence-model/word-piece-tokenizer.ts'

/** How the vectors of tokens become the vector of a text: their mean, or the vector of the first token. */
export type Pooling = 'mean' | 'first'

/** An embedding model that was added to this machine: the contents of its `model.json`. */
export interface LocalModel {
  readonly name: string
  /** Length of the vectors. */
  readonly dimension: number
  readonly pooling: Pooling
  readonly tokenizer: WordPieceSettings
  /** Texts that are put before queries and before documents; often empty. */
  readonly prompts: { readonly query: string; readonly document: string }
  readonly sha256: { readonly model: string; readonly tokenizer: string }
  /** Size of the model file. */
  readonly bytes: number
  /** ISO 8601. */
  readonly addedAt: string
}

/** Names of files in the folder of an added model. */
export const modelFile = 'model.onnx'
export const tokenizerFile = 'tokenizer.json'
export const descriptionFile = 'model.json'

/** A model cannot be added or used. The message completes a sentence about the model or its folder. */
export class LocalModelError extends Error {
  /** @param hint  command or sentence that says what to do */
  constructor(
    message: string,
    readonly hint?: string,
    cause?: unknown,
  ) {
    super(message, { cause })
  }
}

/** Names are also names of folders, so they contain no separators, and do not start with a dot. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export function isModelName(name: string): boolean {
  return namePattern.test(name)
}
