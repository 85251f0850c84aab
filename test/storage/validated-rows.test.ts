import { describe, expect, test } from 'vitest'
import type { RowStore, Stored } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { withValidatedRows } from '../../src/storage/validated-rows.ts'

/** A store that returns a given text for every row. */
function storeOf(read: () => string): RowStore {
  const stored = () => {
    const text = read()
    return { row: JSON.parse(text), version: 1, ordinal: 7, text } as Stored<never>
  }
  return {
    get: async () => stored(),
    list: async () => [stored()],
    count: async () => 1,
    measure: async () => ({ rows: 1, bytes: 1 }),
    atomic: async () => ({ ok: true }),
    feed: {
      start: () => '0',
      end: async () => '7',
      positionOf: async () => '7',
      read: async () => ({ rows: [stored()], position: '7' }),
    },
  }
}

const setting = (value: unknown) => JSON.stringify({ name: 'theme', value })

describe('a row that changed on disk', () => {
  test('is damaged, although a row with its version and ordinal was valid before', async () => {
    let text = setting('dark')
    const rows = withValidatedRows(storeOf(() => text))
    const read = () => rows.get(tables.settings, ['theme'])
    expect((await read())?.row).toMatchObject({ value: 'dark' })
    expect((await read())?.row).toMatchObject({ value: 'dark' })
    text = setting(7)
    const damage = { code: 'control_plane_unavailable' }
    await expect(read()).rejects.toMatchObject(damage)
    await expect(read()).rejects.toMatchObject(damage)
    await expect(rows.list(tables.settings, { index: 'all', prefix: [], limit: 1 })).rejects.toMatchObject(
      damage,
    )
  })

  test('is damaged if it does not match the schema of its own table', async () => {
    const rows = withValidatedRows(storeOf(() => setting('dark')))
    await rows.get(tables.settings, ['theme'])
    await expect(rows.get(tables.agents, ['w', 'a'])).rejects.toMatchObject({
      code: 'control_plane_unavailable',
    })
  })
})

test('each read returns a separate object', async () => {
  const rows = withValidatedRows(storeOf(() => setting('dark')))
  const [first, second] = [
    await rows.get(tables.settings, ['theme']),
    await rows.get(tables.settings, ['theme']),
  ]
  expect(first!.row).not.toBe(second!.row)
})
