import { stem, stopwords, wordSpans } from '../../base/words.ts'

/** A part of a text: `text.slice(start, end)`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** A word of a text that also occurs in the question. */
export interface Match extends Span {
  readonly stem: string
}

/** Returns the stems of a question, without stop words unless it has only stop words. */
export function stemsOf(question: string): ReadonlySet<string> {
  const all = [...wordSpans(question)].map(span => span.word)
  const meaningful = all.filter(word => !stopwords.has(word))
  return new Set((meaningful.length > 0 ? meaningful : all).map(stem))
}

/** Returns the words of a text that match a question, in order. */
export function matchesIn(text: string, stems: ReadonlySet<string>): Match[] {
  const found: Match[] = []
  for (const { word, start, end } of wordSpans(text)) {
    const stemmed = stem(word)
    if (stems.has(stemmed)) found.push({ start, end, stem: stemmed })
  }
  return found
}
