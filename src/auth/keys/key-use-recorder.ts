import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { changeRow } from '../../storage/change-row.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ApiKeyRow, tables } from '../../storage/tables.ts'

/** Minimum time between two writes of a key's `lastUsedAt`, in milliseconds. */
const writeIntervalMs = 60_000
const keysMax = 10_000

type UsedKey = Pick<ApiKeyRow, 'workspaceId' | 'keyId'>

interface KeyUse {
  readonly key: UsedKey
  /** Time of the last use in milliseconds since 1970; undefined once written. */
  unwrittenAt: number | undefined
  stopRest: () => void
}

/** Records when keys were last used. It writes in the background and rarely; a failed write is lost. */
export class KeyUseRecorder {
  /** Uses of keys that were written less than `writeIntervalMs` ago, the oldest write first. */
  readonly #uses = new Map<string, KeyUse>()
  readonly #writes = new Set<Promise<void>>()

  constructor(private readonly parts: { rows: RowStore; clock: Clock; log: Log }) {}

  /** Records a use of a key now. */
  record(key: UsedKey): void {
    const now = this.parts.clock.now()
    const known = this.#uses.get(key.keyId)
    if (known) {
      known.unwrittenAt = now
      return
    }
    if (this.#uses.size >= keysMax) this.#end(this.#uses.values().next().value!)
    this.#begin({ key, unwrittenAt: now, stopRest: () => {} })
  }

  /** Writes all pending uses. */
  async close(): Promise<void> {
    for (const use of [...this.#uses.values()]) this.#end(use)
    await Promise.all(this.#writes)
  }

  /** Writes a use, and schedules the next write. */
  #begin(use: KeyUse): void {
    this.#write(use)
    this.#uses.set(use.key.keyId, use)
    use.stopRest = this.parts.clock.after(writeIntervalMs, () => {
      this.#uses.delete(use.key.keyId)
      if (use.unwrittenAt !== undefined) this.#begin(use)
    })
  }

  #end(use: KeyUse): void {
    use.stopRest()
    this.#uses.delete(use.key.keyId)
    if (use.unwrittenAt !== undefined) this.#write(use)
  }

  #write(use: KeyUse): void {
    const writing = this.#storeUse(use.key, new Date(use.unwrittenAt!).toISOString())
    use.unwrittenAt = undefined
    this.#writes.add(writing)
    writing.finally(() => this.#writes.delete(writing))
  }

  /** Stores a time unless a later one is stored. Does not recreate a deleted key or undo other changes. */
  async #storeUse({ workspaceId, keyId }: UsedKey, at: string): Promise<void> {
    try {
      await changeRow(this.parts.rows, tables.apiKeys, [workspaceId, keyId], row => ({
        ...row,
        lastUsedAt: row.lastUsedAt !== null && row.lastUsedAt > at ? row.lastUsedAt : at,
      }))
    } catch (error) {
      this.parts.log.debug({ keyId, error }, 'when a key was last used is not known')
    }
  }
}
