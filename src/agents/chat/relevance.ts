import { queryWords, terms, words } from '../../base/words.ts'
import type { KnowledgeBaseHit } from '../../contract/knowledge.ts'
import { textField } from '../tools/passages.ts'

/**
 * Minimum score of a relevant hit, as a share of the best score. Chosen with the Cranfield collection.
 *
 * @see docs/benchmarks.md#search-quality
 */
const scoreShareMin = 0.25
/** Maximum score in hybrid search of a passage that matches the query only by similar spelling. */
const spellingScoreMax = 0.2
/** Minimum number of common letters in related words. */
const relatedLettersMin = 5

/** Minimum share of the query terms that makes a passage relevant regardless of its score. */
const termShareMin = 0.5

/**
 * Removes hits that score far below the best hit and contain few query words, and hits with a low score that contain
 * neither a query word nor a related word. Words are related if one contains the first letters of the other, such as
 * compounds and inflected words.
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
    if (best > 0 && score < scoreShareMin * best && shareOfTerms(query, text) < termShareMin) return false
    return coverage !== 0 || score > spellingScoreMax || hasRelatedWord(query, text)
  })
}

/** Returns the share of the query's distinct terms that a text contains, 0 to 1. */
function shareOfTerms(query: string, text: string): number {
  const queryTerms = new Set(terms(query))
  const passageTerms = new Set(terms(text))
  return queryTerms.size === 0
    ? 0
    : [...queryTerms].filter(term => passageTerms.has(term)).length / queryTerms.size
}

/** Returns true if a word of one text contains the first letters of a word of the other text. */
function hasRelatedWord(query: string, text: string): boolean {
  const [wordsOfQuery, passageWords] = [queryWords(query).flatMap(words), words(text)]
  return sharesBeginning(wordsOfQuery, passageWords) || sharesBeginning(passageWords, wordsOfQuery)
}

function sharesBeginning(prefixWords: readonly string[], otherWords: readonly string[]): boolean {
  const all = otherWords.join(' ')
  return prefixWords.some(word => beginningsOf(word).some(letters => all.includes(letters)))
}

/** Returns the first letters of a word. In scripts without spaces, returns all pairs of adjacent characters instead. */
function beginningsOf(word: string): string[] {
  if (scriptWithoutSpaces.test(word))
    return Array.from({ length: word.length - 1 }, (_, at) => word.slice(at, at + 2))
  return word.length < relatedLettersMin ? [] : [word.slice(0, relatedLettersMin)]
}

const scriptWithoutSpaces =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u
