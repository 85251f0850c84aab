/** A term of a text, with its position. Positions count words, or characters in scripts without spaces. */
export interface Token {
  readonly term: string
  /** Position of the first word, relative to the start of its sequence. */
  readonly at: number
  /** Number of positions that the term covers: more than 1 for a whole compound, and for a word of several characters. */
  readonly span: number
  readonly isStopword: boolean
  /** Lowercase word without accents, not stemmed. Undefined for parts of words, such as bigrams. */
  readonly surface?: string
}

/** The terms of a piece of text. */
export interface TokenSequence {
  /** Terms, ordered by `at`. */
  readonly tokens: readonly Token[]
  /** Number of positions, from which the next sequence continues. */
  readonly positions: number
  /** Number of words, which is the length of the piece for ranking. */
  readonly words: number
  /** Characters by position, in scripts written without spaces. Phrases are compared by these. */
  readonly characters?: readonly string[]
}

/** Splits texts and words into terms. */
export interface Tokenizer {
  /** Visits the sequences of a text in order. The positions of a sequence follow those of the one before. */
  scan(text: string, visit: (sequence: TokenSequence) => void): void
  /** Returns the terms of one word without separators, for example of a corrected spelling. */
  wordTerms(word: string): readonly string[]
}
