import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { changeRow } from '../../storage/change-row.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ApiKeyRow, tables } from '../../storage/tables.ts'

/** Minimum time between two writes of a key's `lastUsedAt`, in milliseconds. */
const writeIntervalMs = 60_000
const recentKeysMax = 10_000

type UsedKey = Pick<ApiKeyRow, 'workspaceId' | 'keyId'>

interface KeyUse {
  readonly key: UsedKey
  /** Time of the last use that has not been written yet, in milliseconds since 1970. */
  unwrittenAt: number | undefined
  cancelTimer: () => void
}

/** Records when keys were last used. Writes rarely and in the background, and does not retry a failed write. */
export class KeyUseRecorder {
  /** Uses by key ID, for keys whose last write was less than `writeIntervalMs` ago; the oldest write first. */
  readonly #uses = new Map<string, KeyUse>()
  readonly #writes = new Set<Promise<void>>()

  constructor(private readonly deps: { rows: RowStore; clock: Clock; log: Log }) {}

  /** Records that a key is being used now. */
  record(key: UsedKey): void {
    const now = this.deps.clock.now()
    const recentUse = this.#uses.get(key.keyId)
    if (recentUse) {
      recentUse.unwrittenAt = now
      return
    }
    if (this.#uses.size >= recentKeysMax) this.#endInterval(this.#uses.values().next().value!)
    this.#startInterval({ key, unwrittenAt: now, cancelTimer: () => {} })
  }

  /** Writes all pending uses. */
  async close(): Promise<void> {
    for (const use of [...this.#uses.values()]) this.#endInterval(use)
    await Promise.all(this.#writes)
  }

  /** Writes a use, and schedules the next write. */
  #startInterval(use: KeyUse): void {
    this.#write(use)
    this.#uses.set(use.key.keyId, use)
    use.cancelTimer = this.deps.clock.after(writeIntervalMs, () => {
      this.#uses.delete(use.key.keyId)
      if (use.unwrittenAt !== undefined) this.#startInterval(use)
    })
  }

  #endInterval(use: KeyUse): void {
    use.cancelTimer()
    this.#uses.delete(use.key.keyId)
    if (use.unwrittenAt !== undefined) this.#write(use)
  }

  #write(use: KeyUse): void {
    const write = this.#storeUse(use.key, new Date(use.unwrittenAt!).toISOString())
    use.unwrittenAt = undefined
    this.#writes.add(write)
    write.finally(() => this.#writes.delete(write))
  }

  /** Stores the time of a use, unless a later time is stored. Does not recreate a deleted key or undo other changes. */
  async #storeUse({ workspaceId, keyId }: UsedKey, usedAt: string): Promise<void> {
    try {
      await changeRow(this.deps.rows, tables.apiKeys, [workspaceId, keyId], row => ({
        ...row,
        lastUsedAt: row.lastUsedAt !== null && row.lastUsedAt > usedAt ? row.lastUsedAt : usedAt,
      }))
    } catch (error) {
      this.deps.log.debug({ keyId, error }, 'the last use of an API key could not be stored')
    }
  }
}
