import { percentile } from '../../base/percentile.ts'
import type { LoggedSearch, QueryInsights } from '../../contract/insights.ts'
import { limits } from '../../contract/limits.ts'

type SearchSummary = Pick<
  QueryInsights,
  'searches' | 'callers' | 'withoutGoodResults' | 'duration' | 'days' | 'unanswered' | 'repeated' | 'slow'
>
type Day = QueryInsights['days'][number]

/** The searches with one question. */
interface Question {
  /** The latest search. */
  readonly latest: LoggedSearch
  searches: number
  readonly callers: Set<string>
  slowest: LoggedSearch
  unanswered: { readonly latest: LoggedSearch; searches: number } | undefined
}

/** Counts searches by question, by day, and by caller. */
export class SearchTally {
  readonly #questions = new Map<string, Question>()
  readonly #days = new Map<string, Day>()
  readonly #callers = new Set<string>()
  readonly #durations: number[] = []

  /** Adds a search. The newest search is added first. */
  add(search: LoggedSearch): void {
    const isUnanswered = hasNoGoodResults(search)
    this.#durations.push(search.durationMs)
    this.#addToDay(search, isUnanswered)
    const key = normalizeQuestion(search.question)
    const question = this.#questions.get(key) ?? {
      latest: search,
      searches: 0,
      callers: new Set(),
      slowest: search,
      unanswered: undefined,
    }
    this.#questions.set(key, question)
    question.searches++
    if (search.caller !== null) {
      question.callers.add(search.caller)
      this.#callers.add(search.caller)
    }
    if (search.durationMs > question.slowest.durationMs) question.slowest = search
    if (!isUnanswered) return
    question.unanswered ??= { latest: search, searches: 0 }
    question.unanswered.searches++
  }

  #addToDay({ at }: LoggedSearch, isUnanswered: boolean): void {
    const date = at.slice(0, 'YYYY-MM-DD'.length)
    const day = this.#days.get(date) ?? { day: date, searches: 0, withoutGoodResults: 0 }
    day.searches++
    if (isUnanswered) day.withoutGoodResults++
    this.#days.set(date, day)
  }

  /** @param limit  maximum number of questions in each list */
  summary(limit: number): SearchSummary {
    const questions = [...this.#questions.values()]
    const days = [...this.#days.values()].reverse()
    return {
      searches: this.#durations.length,
      callers: this.#callers.size,
      withoutGoodResults: days.reduce((sum, day) => sum + day.withoutGoodResults, 0),
      duration: summarizeDurations(this.#durations),
      days,
      unanswered: questions
        .flatMap(({ unanswered }) => unanswered ?? [])
        .sort((a, b) => b.searches - a.searches)
        .slice(0, limit)
        .map(({ latest, searches }) => ({ ...describeQuestion(latest, searches), ...latest.result! })),
      repeated: questions
        .filter(({ searches }) => searches > 1)
        .sort((a, b) => b.searches - a.searches)
        .slice(0, limit)
        .map(({ latest, searches, callers }) => ({
          ...describeQuestion(latest, searches),
          callers: callers.size,
        })),
      slow: questions
        .sort((a, b) => b.slowest.durationMs - a.slowest.durationMs)
        .slice(0, limit)
        .map(({ latest, searches, slowest: { durationMs, mode } }) => ({
          ...describeQuestion(latest, searches),
          maxMs: durationMs,
          mode,
        })),
    }
  }
}

function describeQuestion({ question, at }: LoggedSearch, searches: number) {
  return { question, searches, lastAt: at }
}

function summarizeDurations(durations: readonly number[]): QueryInsights['duration'] {
  const sorted = durations.toSorted((a, b) => a - b)
  const maxMs = sorted.at(-1)
  if (maxMs === undefined) return null
  return { p50Ms: percentile(sorted, 0.5), p95Ms: percentile(sorted, 0.95), maxMs }
}

/** Returns true if a search found nothing, or only passages that match neither its words nor its meaning. */
function hasNoGoodResults({ result }: LoggedSearch): boolean {
  if (result === null) return false
  const { hits, coverage, similarity } = result
  if (hits === 0) return true
  return coverage !== null && coverage < limits.goodCoverage && (similarity ?? 0) < limits.goodSimilarity
}

/** Returns a text that is equal for spellings of a question that differ in case, spaces, or punctuation at the end. */
function normalizeQuestion(question: string): string {
  const words = question.toLowerCase().split(/\s+/u).join(' ').trim()
  return words.replace(/[\s?!.…]{1,20}$/u, '')
}
