import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FeedPosition, RowStore, Write } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'

const { audit } = tables

export interface OpenFeed {
  readonly rows: RowStore
  close(): Promise<void>
}

function record(auditId: string, workspaceId: string | null = null): Write {
  const row = { auditId, at: '2026-01-01T00:00:00.000Z', action: 'kb.create', workspaceId }
  return { op: 'insert', table: audit, row }
}

/** Tests the contract of a row feed. */
export function feedSuite(name: string, open: () => Promise<OpenFeed>): void {
  describe(`feed: ${name}`, () => {
    let store: OpenFeed
    let rows: RowStore

    beforeEach(async () => {
      store = await open()
      rows = store.rows
    })
    afterEach(() => store.close())

    const insert = (...ids: string[]) => rows.atomic(ids.map(id => record(id)))

    /** Reads slices after a position until one is empty. */
    async function readAfter(after: FeedPosition, limit = 2, workspaceId?: string) {
      const list =
        workspaceId === undefined
          ? { index: 'byOrdinal', prefix: [] }
          : { index: 'byWorkspace', prefix: [workspaceId] }
      const ids: string[] = []
      for (let position = after; ; ) {
        const slice = await rows.feed.read(audit, { ...list, after: position, limit })
        expect(slice.rows.length).toBeLessThanOrEqual(limit)
        ids.push(...slice.rows.map(({ row }) => row.auditId))
        position = slice.position
        if (slice.rows.length === 0) return { ids, position }
      }
    }

    test('contains every row once, in the order of consecutive transactions', async () => {
      await insert('c', 'a')
      await insert('b')
      const { ids, position } = await readAfter(rows.feed.start())
      expect(ids).toEqual(['c', 'a', 'b'])
      await insert('0')
      expect((await readAfter(position)).ids).toEqual(['0'])
    })

    test('a position after all rows is before rows that are committed later', async () => {
      const empty = await rows.feed.end(audit)
      await insert('a', 'b')
      const end = await rows.feed.end(audit)
      await insert('c')
      expect((await readAfter(end)).ids).toEqual(['c'])
      expect((await readAfter(empty)).ids).toEqual(['a', 'b', 'c'])
    })

    test('a position stays valid after its row was deleted, even if no row is left', async () => {
      await insert('a', 'b')
      const { position } = await readAfter(rows.feed.start())
      await rows.atomic([{ op: 'deleteAll', table: audit, index: 'byWorkspace', prefix: [] }])
      const end = await rows.feed.end(audit)
      await insert('c')
      expect((await readAfter(position)).ids).toEqual(['c'])
      expect((await readAfter(end)).ids).toEqual(['c'])
    })

    test('a feed of a prefix contains only its rows, and shares positions with the whole feed', async () => {
      await rows.atomic([record('a', 'w'), record('b'), record('c', 'w')])
      expect((await readAfter(rows.feed.start(), 1, 'w')).ids).toEqual(['a', 'c'])
      const position = (await rows.feed.positionOf(audit, ['b']))!
      expect((await readAfter(position, 9, 'w')).ids).toEqual(['c'])
    })

    test('continues after a given row', async () => {
      await insert('a', 'b')
      await insert('c')
      expect((await readAfter((await rows.feed.positionOf(audit, ['a']))!)).ids).toEqual(['b', 'c'])
      expect((await readAfter((await rows.feed.positionOf(audit, ['c']))!)).ids).toEqual([])
      expect(await rows.feed.positionOf(audit, ['x'])).toBeUndefined()
    })

    test('a reader sees each row of concurrent transactions once', async () => {
      let isDone = false
      const writers = Array.from({ length: 8 }, async (_, writer) => {
        for (let n = 0; n < 10; n++) await insert(`${writer}-${n}`, `${writer}-${n}+`)
      })
      const writing = Promise.all(writers).then(() => {
        isDone = true
      })
      const seen: string[] = []
      let position = rows.feed.start()
      for (let isLast = false; ; ) {
        isLast = isDone
        const next = await readAfter(position, 3)
        seen.push(...next.ids)
        position = next.position
        if (isLast) break
        await new Promise(setImmediate)
      }
      await writing
      expect(seen).toHaveLength(160)
      expect(new Set(seen).size).toBe(160)
    })
  })
}
