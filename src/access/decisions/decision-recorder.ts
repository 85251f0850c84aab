import { type Clock, timestamp } from '../../base/clock.ts'
import { groupBy } from '../../base/group-by.ts'
import { newId } from '../../base/id.ts'
import type { Log } from '../../base/log.ts'
import type { PolicyDecision } from '../../contract/policy.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { BackgroundRecorder, insertRecords } from '../background-recorder.ts'

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
  readonly #recorder: BackgroundRecorder<PolicyDecision>

  constructor(deps: DecisionRecorderDependencies) {
    this.#deps = deps
    this.#recorder = new BackgroundRecorder(deps, 'policy decisions were lost', decisions =>
      this.#store(decisions),
    )
  }

  /** Number of decisions that were not stored, because the queue was full or the store failed. */
  get lost(): number {
    return this.#recorder.lost
  }

  /** Adds a decision. Never throws or waits. */
  record({ compiledFilterJson, ...draft }: DecisionDraft): void {
    const ts = timestamp(this.#deps.clock)
    const isLong = compiledFilterJson !== null && compiledFilterJson.length > filterCharsMax
    this.#recorder.add({
      ...draft,
      auditDay: ts.slice(0, 'YYYY-MM-DD'.length),
      ts,
      decisionId: newId(),
      compiledFilterJson: isLong ? null : compiledFilterJson,
    })
  }

  /** Resolves when all decisions recorded so far are stored or lost. */
  flushed(): Promise<void> {
    return this.#recorder.flushed()
  }

  /** Calls `listener` when this process has stored decisions. Returns a function that removes the listener. */
  onStored(listener: (decisions: number) => void): () => void {
    return this.#recorder.onStored(listener)
  }

  close(): Promise<void> {
    return this.#recorder.close()
  }

  /** Stores decisions, in one transaction per workspace. */
  async #store(decisions: readonly PolicyDecision[]): Promise<void> {
    const byWorkspace = groupBy(decisions, ({ workspaceId }) => workspaceId)
    await Promise.all(
      Array.from(byWorkspace, ([workspaceId, ofWorkspace]) => {
        const owner = { table: tables.workspaces, key: [workspaceId] }
        return insertRecords(this.#deps.rows, owner, tables.policyAudit, ofWorkspace)
      }),
    )
  }
}
