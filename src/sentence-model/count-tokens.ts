import { ModelFile } from './model-file.ts'
import { packagedModel } from './sentence-encoder.ts'
import { WordPieceTokenizer } from './word-piece-tokenizer.ts'

/** Tokens of the start and the end of a text. */
const specialTokens = 2

let tokenizer: WordPieceTokenizer | undefined

/**
 * Returns the number of tokens that the built-in sentence model reads for a text, without those of its start and end; at most
 * 254. The first call reads the vocabulary.
 *
 * @throws Error  the model is missing or damaged
 */
export function countSentenceTokens(text: string): number {
  tokenizer ??= readTokenizer()
  return tokenizer.encode(text).length - specialTokens
}

function readTokenizer(): WordPieceTokenizer {
  const file = new ModelFile(packagedModel())
  try {
    return new WordPieceTokenizer(new TextDecoder().decode(file.readTensor('vocabulary')).split('\n'))
  } finally {
    file.close()
  }
}
