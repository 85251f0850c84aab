import type { Token, Tokenizer, TokenSequence } from './token.ts'

/** Maximum number of words, or of characters in scripts without spaces, of a phrase. Further ones are ignored. */
const phrasePlacesMax = 64

/** A quoted phrase. */
export interface Phrase {
  /**
   * Terms that a text with the phrase has: at least one of each list. A text with these can have them in another
   * order, so it needs `matches`.
   */
  readonly required: readonly (readonly string[])[]
  /** Returns whether a text contains the phrase. Stems match, as everywhere. Takes linear time. */
  matches(text: string): boolean
}

/** Returns a phrase, or `undefined` if the text has no words. */
export function compilePhrase(tokenizer: Tokenizer, text: string): Phrase | undefined {
  const byPlace: Token[][] = []
  const required: string[][] = []
  let places = 0
  tokenizer.scan(text, scanned => {
    if (places >= phrasePlacesMax || scanned.places === 0) return
    const sequence = withoutNameParts(scanned)
    for (const token of comparedTokens(sequence)) {
      const at = places + token.at
      const among = byPlace[at] ?? []
      byPlace[at] = among
      among.push(token)
    }
    required.push(...requiredTerms(sequence, phrasePlacesMax - places))
    places += sequence.places
  })
  if (places === 0) return undefined
  const end = Math.min(places, phrasePlacesMax)
  return { required, matches: candidate => matchesPhrase(tokenizer, candidate, byPlace, end) }
}

/** Removes parts such as `document` of `document7`, because another number is another phrase. */
function withoutNameParts(sequence: TokenSequence): TokenSequence {
  if (sequence.characters) return sequence
  return { ...sequence, tokens: sequence.tokens.filter(({ surface }) => surface !== undefined) }
}

/** Characters of scripts without spaces are compared one by one, so that the split into words is irrelevant. */
function comparedTokens({ tokens, characters }: TokenSequence): readonly Token[] {
  return characters?.map((term, at) => ({ term, at, span: 1, isStopword: false })) ?? tokens
}

function requiredTerms({ tokens, places, characters }: TokenSequence, placesMax: number): string[][] {
  if (characters) {
    const parts = tokens.filter(({ at, surface }) => at >= 0 && at < placesMax && surface === undefined)
    const pairs = parts.filter(({ at, span }) => span === 2 && at + 1 < placesMax)
    return (pairs.length > 0 ? pairs : parts.filter(({ span }) => span === 1)).map(({ term }) => [term])
  }
  return Array.from({ length: Math.min(places, placesMax) }, (_, place) =>
    tokens.filter(({ at, span }) => at <= place && place < at + span).map(({ term }) => term),
  )
}

function matchesPhrase(tokenizer: Tokenizer, text: string, byPlace: Token[][], end: number): boolean {
  /** Places of the phrase that were reached, by place of the text. */
  const reached = new Map<number, Set<number>>()
  let base = 0
  let isFound = false
  tokenizer.scan(text, sequence => {
    if (isFound) return
    for (const { term, at, span } of comparedTokens(sequence)) {
      const place = base + at
      for (const from of [0, ...(reached.get(place) ?? [])]) {
        for (const token of byPlace[from] ?? []) {
          if (token.term !== term) continue
          const to = from + token.span
          if (to >= end) isFound = true
          const next = reached.get(place + span) ?? new Set<number>()
          reached.set(place + span, next.add(to))
        }
      }
    }
    for (let place = base; place < base + sequence.places; place++) reached.delete(place)
    base += sequence.places
  })
  return isFound
}
