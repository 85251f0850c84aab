import { type Clock, timestamp } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import type { Log } from '../../base/log.ts'
import type { PolicyDecision } from '../../contract/policy.ts'
import type { RowStore, Write } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { AuditLosses, AuditQueue } from '../audit-queue.ts'

/** Maximum number of decisions that wait to be stored. Additional decisions are lost, and counted. */
const queuedMax = 10_000
/** Maximum number of decisions per transaction. It is small, so that requests do not wait long. */
const decisionsPerGroupMax = 100
/** Maximum time until a decision is stored. A crash loses the decisions of this time. */
const delayMs = 1_000
/** A longer filter is not recorded, so that a decision needs at most a few kilobytes. */
const filterCharsMax = 4_000

/** A decision without the fields that the recorder adds. */
export type DecisionDraft = Omit<PolicyDecision, 'auditDay' | 'ts' | 'decisionId'>

export interface DecisionRecorderDependencies {
  readonly rows: Pick<RowStore, 'atomic'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Stores policy decisions in the background, so that a request never waits for its decisions.
 *
 * @see docs/decisions/0044-decision-audit.md
 */
export class DecisionRecorder {
  readonly #deps: DecisionRecorderDependencies
  readonly #losses: AuditLosses
  readonly #queue: AuditQueue<PolicyDecision>
  readonly #listeners = new Set<(decisions: number) => void>()

  constructor(deps: DecisionRecorderDependencies) {
    this.#deps = deps
    this.#losses = new AuditLosses(deps, 'policy decisions were lost')
    this.#queue = new AuditQueue({
      clock: deps.clock,
      losses: this.#losses,
      queuedMax,
      recordsPerGroupMax: decisionsPerGroupMax,
      delayMs,
      write: decisions => this.#store(decisions),
    })
  }

  /** Number of decisions that were not stored, because the queue was full or the store failed. */
  get lost(): number {
    return this.#losses.total
  }

  /** Adds a decision. Never throws or waits. */
  record({ compiledFilterJson, ...draft }: DecisionDraft): void {
    const ts = timestamp(this.#deps.clock)
    const isLong = compiledFilterJson !== null && compiledFilterJson.length > filterCharsMax
    this.#queue.add({
      ...draft,
      auditDay: ts.slice(0, 'YYYY-MM-DD'.length),
      ts,
      decisionId: newId(),
      compiledFilterJson: isLong ? null : compiledFilterJson,
    })
  }

  /** Resolves when all decisions recorded so far are stored or lost. */
  flushed(): Promise<void> {
    return this.#queue.flushed()
  }

  /** Calls `listener` when this process has stored decisions. Returns a function that removes the listener. */
  onStored(listener: (decisions: number) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    await this.flushed()
    this.#losses.close()
  }

  /**
   * Stores decisions, in one transaction per workspace. Omits those of workspaces that were deleted in the meantime.
   *
   * @throws the failed outcome or the error of a write
   */
  async #store(decisions: readonly PolicyDecision[]): Promise<void> {
    const workspaceIds = new Set(decisions.map(({ workspaceId }) => workspaceId))
    await Promise.all(
      [...workspaceIds].map(async workspaceId => {
        const inserts = decisions
          .filter(row => row.workspaceId === workspaceId)
          .map((row): Write => ({ op: 'insert', table: tables.policyAudit, row }))
        const outcome = await this.#deps.rows.atomic([
          { op: 'require', table: tables.workspaces, key: [workspaceId] },
          ...inserts,
        ])
        if (!outcome.ok && outcome.at > 0) throw outcome
      }),
    )
    for (const listener of this.#listeners) listener(decisions.length)
  }
}
