import { queryWords, stopwords, terms, words } from '../../base/words.ts'
import { limits } from '../../contract/limits.ts'
import type { PastTurn } from './past-turns.ts'
import { isAffirmation, isSmallTalk } from './small-talk.ts'

/** Maximum number of words taken from an earlier query. */
const addedWordsMax = 16

/** English pronouns that can refer to earlier messages. `IT` in capital letters does not count as a pronoun. */
const pronouns = new Set(
  `it its itself they them their theirs themselves he him his she her hers this that these those`.split(
    /\s+/,
  ),
)

/** Beginnings of English follow-up questions. */
const followUpBeginning =
  /^(?:and|or|but|then|what about|how about|what if|what else|why|why not|how come|how so|since when|same for|only)\b/i

/** Beginnings that are also words in other languages. They count only if an English word follows. */
const ambiguousBeginning = /^(?:so|also|plus)\b/i

/** English phrases that refer to one of several things in earlier messages. */
const choicePhrase =
  /\b(?:(?:the )?(?:first|second|third|fourth|fifth|last|other|next|previous|same|that|this|which) ones?|the (?:former|latter|same)|another one|(?:the two|both)(?=\s*[?.!]*$)|the (?:first|second|third|fourth|fifth|last|other|others|rest|next|previous)(?=\s*[?.!]*$))\b/i

/** Beginnings of English questions about a detail, such as "in which year?". */
const detailBeginning = /^(?:at|by|for|from|in|on|since|to|until|with) (?:what|when|where|which|whom?)\b/i
const detailWordsMax = 4

/** Maximum number of words of a follow-up question that starts with a word such as "and" or "why". */
const followUpWordsMax = 6

/**
 * Returns the search query for a question; undefined for small talk. Adds the words of the previous query to a
 * follow-up question in English, such as "and abroad?" or "what about the second one?". Returns other questions
 * unchanged.
 *
 * @param previousQuery  last search query of the conversation
 */
export function searchQuery(question: string, previousQuery: string | undefined): string | undefined {
  if (isAffirmation(question)) return previousQuery
  if (isSmallTalk(question)) return undefined
  const query = question.slice(0, limits.searchTextChars)
  if (previousQuery === undefined || !isFollowUp(question)) return query
  const questionTerms = new Set(terms(question))
  const addedWords = queryWords(previousQuery).filter(
    word => !terms(word).some(term => questionTerms.has(term)),
  )
  return [query, ...addedWords.slice(0, addedWordsMax)].join(' ').slice(0, limits.searchTextChars)
}

/**
 * Returns the last search query of the conversation. If the model wrote the queries of a turn, the question of the turn
 * is used instead.
 */
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
  if (followUpBeginning.test(question)) return true
  return ambiguousBeginning.test(question) && rest.some(word => stopwords.has(word))
}

function isFollowUp(question: string): boolean {
  const questionWords = words(question)
  if (choicePhrase.test(question)) return true
  if (
    terms(question).length === 0 ||
    (questionWords.length <= detailWordsMax && detailBeginning.test(question.trim()))
  )
    return true
  if (questionWords.length <= followUpWordsMax && continuesTopic(question.trim(), questionWords)) return true
  const tokens = question.match(/[\p{L}\p{N}]+/gu) ?? []
  const at = tokens.findIndex(word => word !== 'IT' && pronouns.has(word.toLowerCase()))
  if (at === -1) return false
  // A pronoun after several content words usually refers to one of them.
  return terms(tokens.slice(0, at).join(' ')).length === 0 || terms(question).length <= 2
}
