import { queryWords, terms, words } from '../../base/words.ts'
import type { KnowledgeBaseHit } from '../../contract/knowledge.ts'
import { textField } from '../tools/passages.ts'

/** Share of the best score that a hit needs. Measured on Cranfield. @see docs/benchmarks.md#search-quality */
const scoreShareMin = 0.25
/** Highest score of a passage that only has similar spelling, in the scale of hybrid search. */
const spellingScoreMax = 0.2
/** Minimum number of letters that related words have in common. */
const relatedLetters = 5

/** Share of the words of a query with which a passage is relevant regardless of its score. */
const wordShareMin = 0.5

/**
 * Leaves out hits that are far below the best one and contain few words of the query, and hits with a low score that
 * contain neither a word of the query nor a related one. Compounds, inflected words, and scripts without spaces count as related if they share
 * letters with the query.
 *
 * @param hits  with coverage where the store knows it
 * @see docs/decisions/0032-memory.md#relevance
 */
export function relevantHits<H extends Pick<KnowledgeBaseHit, 'score' | 'coverage' | 'payload'>>(
  hits: readonly H[],
  query: string,
): H[] {
  const best = Math.max(0, ...hits.map(hit => hit.score))
  return hits.filter(({ score, coverage, payload }) => {
    const text = `${textField(payload?.title) ?? ''} ${textField(payload?.chunkText) ?? ''}`
    if (best > 0 && score < scoreShareMin * best && wordShare(query, text) < wordShareMin) return false
    return coverage !== 0 || score > spellingScoreMax || hasRelatedWord(query, text)
  })
}

function wordShare(query: string, text: string): number {
  const asked = new Set(terms(query))
  const held = new Set(terms(text))
  return asked.size === 0 ? 0 : [...asked].filter(term => held.has(term)).length / asked.size
}

/** Returns true if a word of one text begins with letters that are part of a word of the other. */
function hasRelatedWord(query: string, text: string): boolean {
  const [asked, held] = [queryWords(query).flatMap(words), words(text)]
  return sharesBeginning(asked, held) || sharesBeginning(held, asked)
}

function sharesBeginning(some: readonly string[], others: readonly string[]): boolean {
  const all = others.join(' ')
  return some.some(word => beginningsOf(word).some(letters => all.includes(letters)))
}

/** In scripts without spaces, a word can begin at any character. */
function beginningsOf(word: string): string[] {
  if (unspaced.test(word)) return Array.from({ length: word.length - 1 }, (_, at) => word.slice(at, at + 2))
  return word.length < relatedLetters ? [] : [word.slice(0, relatedLetters)]
}

const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u
