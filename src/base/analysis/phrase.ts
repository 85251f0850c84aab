import type { Token, Tokenizer, TokenSequence } from './token.ts'

/** Maximum length of a phrase: in words, or in characters for scripts without spaces. The rest is ignored. */
const phrasePositionsMax = 64

/** A quoted phrase. */
export interface Phrase {
  /**
   * Lists of terms. A text that contains the phrase has at least one term of each list. The reverse is not true, because
   * the terms can be in another order, so check such a text with `matches`.
   */
  readonly required: readonly (readonly string[])[]
  /** Returns true if a text contains the phrase. Words with the same stem match. Takes linear time. */
  matches(text: string): boolean
}

/** Compiles a phrase; returns undefined if the text has no words. */
export function compilePhrase(tokenizer: Tokenizer, text: string): Phrase | undefined {
  const byPosition: Token[][] = []
  const required: string[][] = []
  let positions = 0
  tokenizer.scan(text, scanned => {
    if (positions >= phrasePositionsMax || scanned.positions === 0) return
    const sequence = withoutNameParts(scanned)
    for (const token of comparedTokens(sequence)) {
      const at = positions + token.at
      byPosition[at] ??= []
      byPosition[at].push(token)
    }
    required.push(...requiredTerms(sequence, phrasePositionsMax - positions))
    positions += sequence.positions
  })
  if (positions === 0) return undefined
  const end = Math.min(positions, phrasePositionsMax)
  return { required, matches: candidate => matchesPhrase(tokenizer, candidate, byPosition, end) }
}

/** Removes parts of words, such as the token `document` of `document7`. With it, the phrase would match `document8`. */
function withoutNameParts(sequence: TokenSequence): TokenSequence {
  if (sequence.characters) return sequence
  return { ...sequence, tokens: sequence.tokens.filter(({ surface }) => surface !== undefined) }
}

/** Returns the tokens to compare. In scripts without spaces, these are characters, because the split into words varies. */
function comparedTokens({ tokens, characters }: TokenSequence): readonly Token[] {
  return characters?.map((term, at) => ({ term, at, span: 1, isStopword: false })) ?? tokens
}

function requiredTerms({ tokens, positions, characters }: TokenSequence, positionsMax: number): string[][] {
  if (characters) {
    const parts = tokens.filter(({ at, surface }) => at >= 0 && at < positionsMax && surface === undefined)
    const bigrams = parts.filter(({ at, span }) => span === 2 && at + 1 < positionsMax)
    return (bigrams.length > 0 ? bigrams : parts.filter(({ span }) => span === 1)).map(({ term }) => [term])
  }
  return Array.from({ length: Math.min(positions, positionsMax) }, (_, position) =>
    tokens.filter(({ at, span }) => at <= position && position < at + span).map(({ term }) => term),
  )
}

function matchesPhrase(tokenizer: Tokenizer, text: string, byPosition: Token[][], end: number): boolean {
  /** By position in the text: how many positions of the phrase match the text that ends there. Several can be possible. */
  const reached = new Map<number, Set<number>>()
  let base = 0
  let isFound = false
  tokenizer.scan(text, sequence => {
    if (isFound) return
    for (const { term, at, span } of comparedTokens(sequence)) {
      const position = base + at
      for (const from of [0, ...(reached.get(position) ?? [])]) {
        for (const token of byPosition[from] ?? []) {
          if (token.term !== term) continue
          const to = from + token.span
          if (to >= end) isFound = true
          const next = reached.get(position + span) ?? new Set<number>()
          reached.set(position + span, next.add(to))
        }
      }
    }
    for (let position = base; position < base + sequence.positions; position++) reached.delete(position)
    base += sequence.positions
  })
  return isFound
}
