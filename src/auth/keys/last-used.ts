import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { changeRow } from '../../storage/change.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ApiKeyRow, tables } from '../../storage/tables.ts'

/** A key's `lastUsedAt` is written at most this often. */
const restMs = 60_000
const keysMax = 10_000

type Key = Pick<ApiKeyRow, 'workspaceId' | 'keyId'>

interface Use {
  readonly key: Key
  /** When it was last used, in milliseconds since 1970; undefined once that is written. */
  unwrittenAt: number | undefined
  stopRest: () => void
}

/** When keys were last used: written in the background and seldom, and lost rather than waited for. */
export class LastUsed {
  /** Keys whose last write is less than a rest ago, that one first whose rest began first. */
  readonly #uses = new Map<string, Use>()
  readonly #writes = new Set<Promise<void>>()

  constructor(private readonly parts: { rows: RowStore; clock: Clock; log: Log }) {}

  /** A key was used now. */
  note(key: Key): void {
    const now = this.parts.clock.now()
    const known = this.#uses.get(key.keyId)
    if (known) {
      known.unwrittenAt = now
      return
    }
    if (this.#uses.size >= keysMax) this.#end(this.#uses.values().next().value!)
    this.#begin({ key, unwrittenAt: now, stopRest: () => {} })
  }

  /** Write what is known. */
  async close(): Promise<void> {
    for (const use of [...this.#uses.values()]) this.#end(use)
    await Promise.all(this.#writes)
  }

  /** Write a use, and rest. */
  #begin(use: Use): void {
    this.#write(use)
    this.#uses.set(use.key.keyId, use)
    use.stopRest = this.parts.clock.after(restMs, () => {
      this.#uses.delete(use.key.keyId)
      if (use.unwrittenAt !== undefined) this.#begin(use)
    })
  }

  #end(use: Use): void {
    use.stopRest()
    this.#uses.delete(use.key.keyId)
    if (use.unwrittenAt !== undefined) this.#write(use)
  }

  #write(use: Use): void {
    const writing = this.#keep(use.key, new Date(use.unwrittenAt!).toISOString())
    use.unwrittenAt = undefined
    this.#writes.add(writing)
    writing.finally(() => this.#writes.delete(writing))
  }

  /** A key that is gone stays so, and whatever else was changed meanwhile stands. */
  async #keep({ workspaceId, keyId }: Key, at: string): Promise<void> {
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
