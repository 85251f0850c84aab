import { LRUCache } from 'lru-cache'
import { BackgroundRecorder, insertRecords } from '../../access/background-recorder.ts'
import type { Caller } from '../../access/caller.ts'
import { deleteFirst, RecordRetention } from '../../access/record-retention.ts'
import { subjectName } from '../../access/subject.ts'
import { type Clock, stopwatch, timestamp } from '../../base/clock.ts'
import { cutUnits } from '../../base/cut-units.ts'
import { groupBy } from '../../base/group-by.ts'
import { newId } from '../../base/id.ts'
import type { Log } from '../../base/log.ts'
import type { LoggedSearch } from '../../contract/insights.ts'
import type { SearchHit } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Pager } from '../../storage/cursor.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { type BaseKey, baseKeyText } from '../document-key.ts'
import { limitsByWorkspace } from '../limits-by-workspace.ts'
import type { SearchedBase } from '../search/ranking.ts'

/**
 * Time in milliseconds during which the same question of the same caller counts as one search. Clients repeat a search with a
 * larger `topK` if the first hits are from few documents.
 */
const repetitionMs = 2_000
/** Maximum number of questions that are remembered to recognize repetitions. The oldest are forgotten first. */
const rememberedMax = 1_000

export interface QueryLogParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly log: Log
  readonly queryLog: {
    readonly retentionDays: number
    /** Maximum number of stored searches of all workspaces. */
    readonly searchesMax: number
  }
}

/** The part of a search request that decides whether and how it is recorded. */
interface SearchText {
  readonly text?: string | undefined
  readonly prefix?: boolean | undefined
}

/** The caller of a search. */
type LoggedCaller = Pick<Caller, 'auth' | 'client'>

interface SearchOutcome {
  /** Hits, best first. They name their knowledge base if there can be several. */
  readonly hits: readonly (SearchHit & { readonly knowledgeBaseId?: string })[]
  readonly searched: readonly SearchedBase[]
}

/** A search that is to be stored, with the number of knowledge bases that were searched together. */
interface QueuedSearch {
  readonly row: LoggedSearch
  readonly basesSearched: number
}

/**
 * Records the searches in knowledge bases whose query log is on, in the background, so that a search never waits for the log,
 * and never fails because of it.
 *
 * @see docs/decisions/0051-query-log.md
 */
export class QueryLog {
  readonly #parts: QueryLogParts
  readonly #recorder: BackgroundRecorder<QueuedSearch>
  readonly #retention: RecordRetention<LoggedSearch>
  /** Times of the last searches, by caller, knowledge base and question. */
  readonly #lastSearches = new LRUCache<string, number>({ max: rememberedMax })

  constructor(parts: QueryLogParts) {
    this.#parts = parts
    const { retentionDays, searchesMax } = parts.queryLog
    this.#recorder = new BackgroundRecorder(parts, 'searches were not recorded', searches =>
      this.#store(searches),
    )
    this.#retention = new RecordRetention(parts, {
      table: tables.queryLog,
      retentionDays,
      limits: () => limitsByWorkspace(parts, tables.queryLog, searchesMax),
      onStored: listener => this.#recorder.onStored(listener),
      failureWarning: 'old searches could not be deleted',
    })
  }

  /**
   * Runs a search, and records it if it succeeds. Omits searches without text, searches for a word that is still being typed,
   * repetitions, and searches of a caller that views the workspace as another principal.
   */
  async observe<T extends SearchOutcome>(
    request: SearchText,
    caller: LoggedCaller,
    search: () => Promise<T>,
  ): Promise<T> {
    const elapsedMs = stopwatch()
    const outcome = await search()
    const { text, prefix } = request
    if (text !== undefined && !prefix && caller.auth.viewedPrincipalId === null)
      this.#record(text, caller, outcome, elapsedMs())
    return outcome
  }

  #record(
    text: string,
    { auth, client }: LoggedCaller,
    { hits, searched }: SearchOutcome,
    durationMs: number,
  ): void {
    const caller = loggedCaller(auth)
    const question = cutUnits(text, limits.loggedQuestionChars)
    const at = timestamp(this.#parts.clock)
    const result = {
      hits: hits.length,
      coverage: highest([...searched, ...hits].map(({ coverage }) => coverage)),
      similarity: highest(searched.map(({ similarity }) => similarity)),
    }
    for (const { base, mode } of searched) {
      const { workspaceId, knowledgeBaseId } = base
      const isNew = base.queryLog && !this.#isRepetition([baseKeyText(base), caller ?? client, question])
      if (!isNew) continue
      const own = hits.filter(hit => (hit.knowledgeBaseId ?? knowledgeBaseId) === knowledgeBaseId)
      const row = {
        workspaceId,
        knowledgeBaseId,
        searchId: newId(),
        at,
        question,
        caller,
        mode,
        reranked: mode.endsWith('_rerank'),
        hits: own.length,
        score: own[0]?.score ?? null,
        result,
        durationMs,
      }
      this.#recorder.add({ row, basesSearched: searched.length })
    }
  }

  /** Returns true if the same search was recorded a moment ago. */
  #isRepetition(search: readonly string[]): boolean {
    const key = JSON.stringify(search)
    const now = this.#parts.clock.now()
    const last = this.#lastSearches.get(key)
    if (last !== undefined && now - last < repetitionMs) return true
    this.#lastSearches.set(key, now)
    return false
  }

  /** Resolves when all searches so far are stored or lost. */
  flushed(): Promise<void> {
    return this.#recorder.flushed()
  }

  /**
   * Deletes the searches of a knowledge base, in small transactions, because there can be many.
   *
   * @returns number of searches that were stored
   */
  async clear({ workspaceId, knowledgeBaseId }: BaseKey): Promise<number> {
    await this.flushed()
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
    const count = await this.#parts.rows.count(tables.queryLog, list.index, list.prefix)
    await deleteFirst(this.#parts.rows, tables.queryLog, list)
    return count
  }

  /** Deletes old searches now, and then regularly. Call it in only one process. */
  start(): void {
    this.#retention.start()
  }

  async close(): Promise<void> {
    await this.#retention.close()
    await this.#recorder.close()
  }

  /** Stores searches, in one transaction per knowledge base. Omits those of knowledge bases that were deleted meanwhile. */
  async #store(searches: readonly QueuedSearch[]): Promise<void> {
    const { rows } = this.#parts
    const byBase = groupBy(searches, ({ row }) => baseKeyText(row))
    await Promise.all(
      [...byBase.values()].map(async ofBase => {
        const { workspaceId, knowledgeBaseId } = ofBase[0].row
        const workspace = await rows.get(tables.workspaces, [workspaceId])
        // With row-level access, a reader must not learn from this knowledge base what another one contains.
        const isLimited = workspace?.row.rlacEnabled !== false
        await insertRecords(
          rows,
          { table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] },
          tables.queryLog,
          ofBase.map(({ row, basesSearched }) =>
            isLimited && basesSearched > 1 ? { ...row, result: null } : row,
          ),
        )
      }),
    )
  }
}

/** Returns the name under which the searches of a caller are recorded; null for an anonymous caller. */
export function loggedCaller(auth: Caller['auth']): string | null {
  const principalId = auth.viewedPrincipalId ?? auth.subject?.principalId ?? null
  return principalId === null ? subjectName(auth) : `principal:${principalId}`
}

/** Returns the highest of the numbers; null if there are none. */
function highest(numbers: readonly (number | null | undefined)[]): number | null {
  const known = numbers.filter(number => typeof number === 'number')
  return known.length === 0 ? null : Math.max(...known)
}
