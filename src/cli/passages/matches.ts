import { stem, stopwords, wordSpans } from '../../base/words.ts'

/** A part of a text: `text.slice(start, end)`. */
export interface TextRange {
  readonly start: number
  readonly end: number
}

/** A word of a text that also occurs in the question. */
export interface Match extends TextRange {
  readonly stem: string
}

/** Returns the stems of the words in a question. Stop words are omitted, unless there are no other words. */
export function stemsOf(question: string): ReadonlySet<string> {
  const words = [...wordSpans(question)].map(span => span.word)
  const contentWords = words.filter(word => !stopwords.has(word))
  return new Set((contentWords.length > 0 ? contentWords : words).map(stem))
}

/** Returns the words of a text that match a question, in order. */
export function matchesIn(text: string, stems: ReadonlySet<string>): Match[] {
  const matches: Match[] = []
  for (const { word, start, end } of wordSpans(text)) {
    const wordStem = stem(word)
    if (stems.has(wordStem)) matches.push({ start, end, stem: wordStem })
  }
  return matches
}
