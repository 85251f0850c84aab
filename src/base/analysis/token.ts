/** A term of a text with its place. */
export interface Token {
  readonly term: string
  /** Place of the first word, relative to the start of its sequence. */
  readonly at: number
  /** Number of places that the term covers: more than 1 for an identifier as a whole. */
  readonly span: number
  readonly isStopword: boolean
  /** Lowercase word without accents, not stemmed. Undefined for parts of words, such as bigrams. */
  readonly surface?: string
}

/** The terms of a piece of text. */
export interface TokenSequence {
  /** Terms, ordered by `at`. */
  readonly tokens: readonly Token[]
  /** Number of places, from which the next sequence continues. */
  readonly places: number
  /** Number of words, which is the length of the piece for ranking. */
  readonly words: number
  /** Characters by place, in scripts written without spaces. Phrases are compared by these. */
  readonly characters?: readonly string[]
}

/** Splits texts and words into terms. */
export interface Tokenizer {
  /** Visits the sequences of a text in order. The places of a sequence follow those of the one before. */
  scan(text: string, visit: (sequence: TokenSequence) => void): void
  /** Returns the terms of one word without separators, for example of a corrected spelling. */
  wordTerms(word: string): readonly string[]
}
