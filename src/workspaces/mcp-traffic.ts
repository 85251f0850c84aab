import { type Clock, timestamp } from '../base/clock.ts'
import type { TrafficEntry } from '../contract/connect.ts'

/** Maximum number of stored calls per workspace. */
const entriesMax = 256
const workspacesMax = 1_000
const retentionMs = 24 * 3_600_000

/** A call, and the subject that made it; null for an anonymous caller. */
interface RecordedCall {
  readonly subject: string | null
  readonly entry: TrafficEntry
}

/**
 * Recent MCP tool calls to this process, by workspace. Stored in memory only.
 *
 * @see docs/connecting.md
 */
export class McpTraffic {
  /** Calls by workspace ID. The workspace with the most recent call is last. */
  readonly #calls = new Map<string, RecordedCall[]>()

  constructor(private readonly clock: Clock) {}

  /** @param subject  name of the subject that made the call, from `subjectName` */
  add(workspaceId: string, subject: string | null, call: Omit<TrafficEntry, 'at'>): void {
    const entry = { at: timestamp(this.clock), ...call }
    const calls = [...(this.#calls.get(workspaceId) ?? []), { subject, entry }].slice(-entriesMax)
    this.#calls.delete(workspaceId)
    this.#calls.set(workspaceId, calls)
    const [oldest] = this.#calls.keys()
    if (this.#calls.size > workspacesMax) this.#calls.delete(oldest!)
  }

  /**
   * Returns the stored calls of a workspace, newest first.
   *
   * @param subject  returns only the calls of this subject; all calls if omitted
   */
  list(workspaceId: string, subject?: string | null): TrafficEntry[] {
    const since = this.clock.now() - retentionMs
    const calls = this.#calls.get(workspaceId) ?? []
    const selected = subject === undefined ? calls : calls.filter(call => call.subject === subject)
    return selected
      .map(({ entry }) => entry)
      .filter(({ at }) => Date.parse(at) > since)
      .reverse()
  }
}
