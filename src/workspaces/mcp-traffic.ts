import { type Clock, timestamp } from '../base/clock.ts'
import type { TrafficEntry } from '../contract/connect.ts'

/** Maximum number of stored calls per workspace. */
const entriesMax = 256
const workspacesMax = 1_000
const retentionMs = 24 * 3_600_000

/**
 * Recent MCP tool calls to this process, by workspace. Stored in memory only.
 *
 * @see docs/connecting.md
 */
export class McpTraffic {
  /** Calls by workspace ID. The workspace with the most recent call is last. */
  readonly #calls = new Map<string, TrafficEntry[]>()

  constructor(private readonly clock: Clock) {}

  add(workspaceId: string, call: Omit<TrafficEntry, 'at'>): void {
    const at = timestamp(this.clock)
    const calls = [...(this.#calls.get(workspaceId) ?? []), { at, ...call }].slice(-entriesMax)
    this.#calls.delete(workspaceId)
    this.#calls.set(workspaceId, calls)
    const [oldest] = this.#calls.keys()
    if (this.#calls.size > workspacesMax) this.#calls.delete(oldest!)
  }

  /** Returns the stored calls of a workspace, newest first. */
  list(workspaceId: string): TrafficEntry[] {
    const since = this.clock.now() - retentionMs
    const calls = this.#calls.get(workspaceId) ?? []
    return calls.filter(({ at }) => Date.parse(at) > since).reverse()
  }
}
