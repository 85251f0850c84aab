import { queryWords, terms, words } from '../../base/words.ts'
import type { KnowledgeBaseHit } from '../../contract/knowledge.ts'
import { textField } from '../tools/passages.ts'

/** Share of the best score that a hit needs. Measured on Cranfield. @see docs/benchmarks.md#search-quality */
const scoreShareMin = 0.25
/** Highest score of a passage that only has similar spelling, in the scale of hybrid search. */
const spellingScoreMax = 0.2
/** Minimum number of letters that related words have in common. */
const relatedLettersMin = 5

/** Minimum share of the query words that makes a passage relevant regardless of its score. */
const wordShareMin = 0.5

/**
 * Removes hits that score far below the best one and contain few query words, and hits with a low score that contain
 * neither a query word nor a related word. Words are related if they share letters, such as compounds, inflected words,
 * and words in scripts without spaces.
 *
 * @param hits  search hits, with `coverage` if the store reports it
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
  const queryTerms = new Set(terms(query))
  const passageTerms = new Set(terms(text))
  return queryTerms.size === 0
    ? 0
    : [...queryTerms].filter(term => passageTerms.has(term)).length / queryTerms.size
}

/** Returns true if a word of one text begins with letters that are part of a word of the other. */
function hasRelatedWord(query: string, text: string): boolean {
  const [queryParts, passageWords] = [queryWords(query).flatMap(words), words(text)]
  return sharesBeginning(queryParts, passageWords) || sharesBeginning(passageWords, queryParts)
}

function sharesBeginning(some: readonly string[], others: readonly string[]): boolean {
  const all = others.join(' ')
  return some.some(word => beginningsOf(word).some(letters => all.includes(letters)))
}

/** In scripts without spaces, a word can begin at any character. */
function beginningsOf(word: string): string[] {
  if (scriptWithoutSpaces.test(word))
    return Array.from({ length: word.length - 1 }, (_, at) => word.slice(at, at + 2))
  return word.length < relatedLettersMin ? [] : [word.slice(0, relatedLettersMin)]
}

const scriptWithoutSpaces =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u
