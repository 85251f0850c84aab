import { lowerBound } from '../../storage/record-set.ts'

/** Measures parts of a text in the unit of the chunk sizes: UTF-16 code units or tokens. */
export interface ChunkMeasure {
  /** Returns the size of `text.slice(start, end)`. */
  size(start: number, end: number): number
  /** Returns the last offset such that the text from `start` to it has at most this size. */
  endWithin(start: number, size: number): number
}

/** Measures in UTF-16 code units. */
export function measureChars(text: string): ChunkMeasure {
  return {
    size: (start, end) => end - start,
    endWithin: (start, size) => Math.min(text.length, start + size),
  }
}

/** Returns the number of tokens of a word without its context. */
export type CountTokens = (word: string) => number

/**
 * Words, characters of punctuation, and parts of long white space. A part counts as one token at least, so that the number of
 * characters of a chunk is limited too.
 */
const parts = /[\p{P}$+<=>^`|~]|[^\p{P}$+<=>^`|~\s]{1,100}|\s{64}/gu
/** Maximum number of words whose tokens are remembered. */
const knownWordsMax = 20_000

/**
 * Measures in tokens. A tokenizer that splits text at white space and punctuation has no token that crosses a part, so the
 * tokens of a text are the sum of those of its parts. Splitting a word can add a token.
 */
export function measureTokens(text: string, countTokens: CountTokens): ChunkMeasure {
  const starts = tokenStarts(text, countTokens)
  return {
    size: (start, end) => lowerBound(starts, end) - lowerBound(starts, start),
    endWithin: (start, size) => starts[lowerBound(starts, start) + size] ?? text.length,
  }
}

/** Returns the ascending offsets of the tokens. The tokens of a word are spread evenly over it. */
function tokenStarts(text: string, countTokens: CountTokens): Int32Array {
  const known = new Map<string, number>()
  let starts = new Int32Array(1_024)
  let count = 0
  for (const { 0: word, index } of text.matchAll(parts)) {
    let tokens = known.get(word)
    if (tokens === undefined) {
      tokens = Math.max(1, countTokens(word))
      if (known.size < knownWordsMax) known.set(word, tokens)
    }
    if (count + tokens > starts.length) {
      const larger = new Int32Array((count + tokens) * 2)
      larger.set(starts)
      starts = larger
    }
    for (let token = 0; token < tokens; token++)
      starts[count++] = index + Math.floor((token * word.length) / tokens)
  }
  return starts.subarray(0, count)
}
