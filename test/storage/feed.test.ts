import { expect, onTestFinished, test } from 'vitest'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { LateRows } from '../fakes/late-rows.ts'
import { feedSuite } from './feed.suite.ts'

async function openLateRows() {
  const store = await openEmbeddedStore({ path: ':memory:' })
  return { rows: new LateRows(store.rows), close: () => store.close() }
}

feedSuite('overlapping transactions', openLateRows)

test('a feed withholds rows while an earlier transaction is running, and no position skips that transaction', async () => {
  const { rows, close } = await openLateRows()
  onTestFinished(close)
  const insert = (auditId: string) =>
    rows.atomic([
      {
        op: 'insert',
        table: tables.audit,
        row: { auditId, at: '2026-01-01T00:00:00.000Z', action: 'kb.create', workspaceId: null },
      },
    ])
  const idsAfter = async (after: string) =>
    (await rows.feed.read(tables.audit, { index: 'byOrdinal', prefix: [], after, limit: 9 })).rows.map(
      ({ row }) => row.auditId,
    )
  const release = rows.holdNext()
  const slow = insert('slow')
  await insert('fast')
  const positions = [await rows.feed.end(tables.audit), (await rows.feed.positionOf(tables.audit, ['fast']))!]
  expect(await idsAfter(rows.feed.start())).toEqual([])
  release()
  await slow
  for (const position of [...positions, rows.feed.start()])
    expect(await idsAfter(position)).toEqual(['slow', 'fast'])
})
