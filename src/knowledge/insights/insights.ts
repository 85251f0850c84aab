import { decideAccess } from '../../access/authorize.ts'
import type { Caller } from '../../access/caller.ts'
import { CallerQueue } from '../../access/caller-queue.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import { WorkPacer } from '../../base/work-pacer.ts'
import { needs } from '../../contract/access.ts'
import type { InsightsQuery, QueryInsights } from '../../contract/insights.ts'
import { limits } from '../../contract/limits.ts'
import type { Pager, RowRange } from '../../storage/cursor.ts'
import { tables } from '../../storage/tables.ts'
import type { BaseKey } from '../document-key.ts'
import type { KnowledgeBases } from '../knowledge-bases.ts'
import { loggedCaller, type QueryLog } from './query-log.ts'
import { SearchTally } from './search-tally.ts'

/** Default length of the period. */
const periodMs = 7 * 86_400_000
/** Maximum number of summaries that are created at the same time. One reads up to about 10 MB. */
const summariesMax = 2

export interface InsightsParts {
  readonly pager: Pager
  readonly clock: Clock
  readonly bases: Pick<KnowledgeBases, 'get'>
  readonly queryLog: Pick<QueryLog, 'flushed'>
}

/** The part of a caller that a summary needs. */
type InsightsCaller = Pick<Caller, 'auth' | 'client' | 'reauthorize' | 'rowAccess' | 'signal'>

/** Summarizes the query log of a knowledge base. */
export class Insights {
  readonly #queue = new CallerQueue(summariesMax)

  constructor(private readonly parts: InsightsParts) {}

  /**
   * Returns a summary of the searches of a period. Includes all searches that this process has recorded so far. With row-level
   * access, a caller that may not manage access gets a summary of only its own searches.
   *
   * @throws workspace_not_found, knowledge_base_not_found
   * @throws overloaded  too many requests of the caller are waiting
   */
  summarize(key: BaseKey, query: InsightsQuery, caller: InsightsCaller): Promise<QueryInsights> {
    return this.#queue.runAuthorized(caller, key.workspaceId, () => this.#summarize(key, query, caller))
  }

  async #summarize(
    { workspaceId, knowledgeBaseId }: BaseKey,
    query: InsightsQuery,
    caller: InsightsCaller,
  ): Promise<QueryInsights> {
    const { bases, clock, queryLog } = this.parts
    const base = await bases.get(workspaceId, knowledgeBaseId)
    const { isEnabled } = await caller.rowAccess(workspaceId)
    const ownOnly = isEnabled && !managesAccess(workspaceId, caller)
    await queryLog.flushed()
    const until = timestamp(clock)
    const since = query.since ?? new Date(clock.now() - periodMs).toISOString()
    const all = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
    // An anonymous caller cannot be recognized, and no search has an empty name.
    const own = { index: 'byCaller', prefix: [...all.prefix, loggedCaller(caller.auth) ?? ''] }
    const { tally, complete } = await this.#read({ ...(ownOnly ? own : all), through: since }, caller.signal)
    return {
      workspaceId,
      knowledgeBaseId,
      queryLog: base.queryLog === true,
      since,
      until,
      complete,
      ownOnly,
      ...tally.summary(query.limit),
    }
  }

  /** Reads the latest searches of a list. `complete` is false if there are more. */
  async #read(list: RowRange, signal: AbortSignal): Promise<{ tally: SearchTally; complete: boolean }> {
    const pacer = new WorkPacer(signal)
    const tally = new SearchTally()
    let read = 0
    for await (const slice of this.parts.pager.slices(tables.queryLog, { ...list, descending: true })) {
      for (const { row } of slice) {
        if (read++ === limits.loggedSearchesRead) return { tally, complete: false }
        tally.add(row)
        await pacer.yieldIfDue()
      }
    }
    return { tally, complete: true }
  }
}

/** Returns true if the caller may manage access, and does not view the workspace as another principal. */
function managesAccess(workspaceId: string, caller: Pick<Caller, 'auth'>): boolean {
  if (caller.auth.viewedPrincipalId !== null) return false
  return decideAccess({ rule: needs('manage:access'), workspaceId }, caller).allow
}
