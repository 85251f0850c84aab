import { queryWords, stopwords, terms, words } from '../../base/words.ts'
import { limits } from '../../contract/limits.ts'
import type { PastTurn } from './past-turns.ts'
import { isAffirmation, isSmallTalk } from './small-talk.ts'

/** Maximum number of words taken from an earlier query. */
const wordsKept = 16

/** English pronouns that can refer to earlier messages. `IT` in capitals is not a pronoun. */
const pronouns = new Set(
  `it its itself they them their theirs themselves he him his she her hers this that these those`.split(
    /\s+/,
  ),
)

/** Beginnings of English follow-up questions. */
const beginning =
  /^(?:and|or|but|then|what about|how about|what if|what else|why|why not|how come|how so|since when|same for|only)\b/i

/** Beginnings that are also words of other languages, so another English word has to follow. */
const sharedBeginning = /^(?:so|also|plus)\b/i

/** English phrases for one of several listed things. */
const ordinal =
  /\b(?:(?:the )?(?:first|second|third|fourth|fifth|last|other|next|previous|same|that|this|which) ones?|the (?:former|latter|same)|another one|(?:the two|both)(?=\s*[?.!]*$)|the (?:first|second|third|fourth|fifth|last|other|others|rest|next|previous)(?=\s*[?.!]*$))\b/i

/** Beginnings of English questions about a detail, such as "in which year?". */
const detail = /^(?:at|by|for|from|in|on|since|to|until|with) (?:what|when|where|which|whom?)\b/i
const detailWords = 4

/** Maximum number of words of a follow-up that begins with "and", "why" and so on. */
const shortWords = 6

/**
 * Returns the search query for a question, or undefined for small talk. A follow-up in English ("and abroad?",
 * "what about the second one?") gets the words of the last query; a question in another language stays as it is.
 *
 * @param earlier  last query of the conversation
 */
export function searchQuery(question: string, earlier: string | undefined): string | undefined {
  if (isAffirmation(question)) return earlier
  if (isSmallTalk(question)) return undefined
  const query = question.slice(0, limits.searchTextChars)
  if (earlier === undefined || !isFollowUp(question)) return query
  const known = new Set(terms(question))
  const added = queryWords(earlier).filter(word => !terms(word).some(term => known.has(term)))
  return [query, ...added.slice(0, wordsKept)].join(' ').slice(0, limits.searchTextChars)
}

/** Returns the last search query of the conversation; the last question if the model wrote its own query. */
export function lastQuery(turns: readonly PastTurn[]): string | undefined {
  return turns
    .map(
      ({ rows }) =>
        rows.findLast(row => row.metadata.search_query)?.metadata.search_query ?? questionIn(rows),
    )
    .findLast(query => query !== undefined)
}

function questionIn([question]: PastTurn['rows']): string | undefined {
  const content = question?.content
  return content && !isSmallTalk(content) ? content : undefined
}

function continuesTopic(question: string, [, ...rest]: readonly string[]): boolean {
  if (beginning.test(question)) return true
  return sharedBeginning.test(question) && rest.some(word => stopwords.has(word))
}

function isFollowUp(question: string): boolean {
  const all = words(question)
  if (ordinal.test(question)) return true
  if (terms(question).length === 0 || (all.length <= detailWords && detail.test(question.trim()))) return true
  if (all.length <= shortWords && continuesTopic(question.trim(), all)) return true
  const spoken = question.match(/[\p{L}\p{N}]+/gu) ?? []
  const at = spoken.findIndex(word => word !== 'IT' && pronouns.has(word.toLowerCase()))
  if (at === -1) return false
  // A pronoun after several content words usually refers to one of them.
  return terms(spoken.slice(0, at).join(' ')).length === 0 || terms(question).length <= 2
}
