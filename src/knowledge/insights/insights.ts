import { decideAccess } from '../../access/authorize.ts'
import type { Caller } from '../../access/caller.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import { groupBy } from '../../base/group-by.ts'
import { WorkPacer } from '../../base/work-pacer.ts'
import { needs } from '../../contract/access.ts'
import type { InsightsQuery, LoggedSearch, QueryInsights } from '../../contract/insights.ts'
import { limits } from '../../contract/limits.ts'
import type { Pager } from '../../storage/cursor.ts'
import { tables } from '../../storage/tables.ts'
import type { BaseKey } from '../document-key.ts'
import type { KnowledgeBases } from '../knowledge-bases.ts'
import { percentile } from '../search/search-times.ts'
import { loggedCaller, type QueryLog } from './query-log.ts'

/** Default length of the period. */
const periodMs = 7 * 86_400_000

export interface InsightsParts {
  readonly pager: Pager
  readonly clock: Clock
  readonly bases: Pick<KnowledgeBases, 'get'>
  readonly queryLog: Pick<QueryLog, 'flushed'>
}

/** Summarizes the query log of a knowledge base. */
export class Insights {
  constructor(private readonly parts: InsightsParts) {}

  /**
   * Returns a summary of the searches of a period. Includes all searches that this process has recorded so far. With row-level
   * access, a caller that may not manage access gets a summary without the searches of others.
   *
   * @throws workspace_not_found, knowledge_base_not_found
   */
  async summarize(
    { workspaceId, knowledgeBaseId }: BaseKey,
    query: InsightsQuery,
    caller: Pick<Caller, 'auth' | 'rowAccess' | 'signal'>,
  ): Promise<QueryInsights> {
    const { bases, clock, queryLog } = this.parts
    const base = await bases.get(workspaceId, knowledgeBaseId)
    const { isEnabled } = await caller.rowAccess(workspaceId)
    const ownOnly = isEnabled && !managesAccess(workspaceId, caller)
    await queryLog.flushed()
    const until = timestamp(clock)
    const since = query.since ?? new Date(clock.now() - periodMs).toISOString()
    const { searches, complete } = await this.#read(base, since, caller.signal)
    const own = loggedCaller(caller.auth)
    const shown = ownOnly ? searches.filter(search => own !== null && search.caller === own) : searches
    return {
      workspaceId,
      knowledgeBaseId,
      queryLog: base.queryLog === true,
      since,
      until,
      complete,
      ownOnly,
      ...summarizeSearches(shown, query.limit),
    }
  }

  /** Returns the latest searches since a time, newest first. `complete` is false if there are more. */
  async #read({ workspaceId, knowledgeBaseId }: BaseKey, since: string, signal: AbortSignal) {
    const pacer = new WorkPacer(signal)
    const searches: LoggedSearch[] = []
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
    const newestFirst = { ...list, descending: true, through: since }
    for await (const slice of this.parts.pager.slices(tables.queryLog, newestFirst)) {
      for (const { row } of slice) {
        if (searches.length === limits.loggedSearchesRead) return { searches, complete: false }
        searches.push(row)
      }
      await pacer.yieldIfDue()
    }
    return { searches, complete: true }
  }
}

/** Returns true if the caller may manage access, and does not view the workspace as another principal. */
function managesAccess(workspaceId: string, caller: Pick<Caller, 'auth'>): boolean {
  if (caller.auth.viewedPrincipalId !== null) return false
  return decideAccess({ rule: needs('manage:access'), workspaceId }, caller).allow
}

/** Returns true if a search found nothing, or only passages that match neither its words nor its meaning. */
function hasNoGoodResults({ result }: LoggedSearch): boolean {
  if (result === null) return false
  const { hits, coverage, similarity } = result
  if (hits === 0) return true
  return coverage !== null && coverage < limits.goodCoverage && (similarity ?? 0) < limits.goodSimilarity
}

/** The searches with one question, newest first. */
interface QuestionSearches {
  readonly all: LoggedSearch[]
  readonly withoutGoodResults: LoggedSearch[]
}

/** @param searches  newest first */
function summarizeSearches(searches: readonly LoggedSearch[], limit: number) {
  const questions = [...groupBy(searches, search => normalizeQuestion(search.question)).values()].map(
    (all): QuestionSearches => ({ all, withoutGoodResults: all.filter(hasNoGoodResults) }),
  )
  const durations = searches.map(search => search.durationMs).sort((a, b) => a - b)
  return {
    searches: searches.length,
    callers: countCallers(searches),
    withoutGoodResults: searches.filter(hasNoGoodResults).length,
    duration:
      durations.length === 0
        ? null
        : {
            p50Ms: percentile(durations, 0.5),
            p95Ms: percentile(durations, 0.95),
            maxMs: durations.at(-1)!,
          },
    days: countByDay(searches),
    unanswered: questions
      .filter(({ withoutGoodResults }) => withoutGoodResults.length > 0)
      .sort((a, b) => b.withoutGoodResults.length - a.withoutGoodResults.length)
      .slice(0, limit)
      .map(({ withoutGoodResults }) => ({
        ...describeQuestion(withoutGoodResults),
        ...withoutGoodResults[0]!.result!,
      })),
    repeated: questions
      .filter(({ all }) => all.length > 1)
      .sort((a, b) => b.all.length - a.all.length)
      .slice(0, limit)
      .map(({ all }) => ({ ...describeQuestion(all), callers: countCallers(all) })),
    slow: questions
      .map(({ all }) => ({ all, slowest: all.reduce((a, b) => (b.durationMs > a.durationMs ? b : a)) }))
      .sort((a, b) => b.slowest.durationMs - a.slowest.durationMs)
      .slice(0, limit)
      .map(({ all, slowest: { durationMs, mode } }) => ({
        ...describeQuestion(all),
        maxMs: durationMs,
        mode,
      })),
  }
}

function describeQuestion(searches: readonly LoggedSearch[]) {
  const { question, at } = searches[0]!
  return { question, searches: searches.length, lastAt: at }
}

function countCallers(searches: readonly LoggedSearch[]): number {
  return new Set(searches.map(({ caller }) => caller).filter(caller => caller !== null)).size
}

/** @param searches  newest first */
function countByDay(searches: readonly LoggedSearch[]): QueryInsights['days'] {
  const byDay = groupBy(searches, ({ at }) => at.slice(0, 'YYYY-MM-DD'.length))
  return [...byDay].reverse().map(([day, ofDay]) => ({
    day,
    searches: ofDay.length,
    withoutGoodResults: ofDay.filter(hasNoGoodResults).length,
  }))
}

/** Returns a text that is equal for spellings of a question that differ in case, spaces, or punctuation at the end. */
function normalizeQuestion(question: string): string {
  const words = question.normalize('NFKC').toLowerCase().split(/\s+/u).join(' ').trim()
  return words.replace(/[\s?!.…]{1,20}$/u, '')
}
