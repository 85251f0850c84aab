import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import { Cursors, openCursors, Pager } from '../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { type DocumentRow, tables } from '../../src/storage/tables.ts'

const cursors = new Cursors('a key of a store')
const value = fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }), fc.integer(), fc.constant(null))
const position = fc.array(value, { minLength: 1, maxLength: 4 })
const refused = expect.objectContaining({ code: 'invalid_cursor' })

async function store() {
  const opened = await openEmbeddedStore({ path: ':memory:' })
  onTestFinished(() => opened.close())
  return opened.rows
}

describe('a cursor', () => {
  test('decodes to its position in the list that it was created for', () => {
    fc.assert(
      fc.property(fc.string(), position, (list, place) => {
        expect(cursors.decode(list, cursors.encode(list, place))).toEqual(place)
      }),
    )
  })

  test('is rejected for another list and by another store', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), position, (list, other, place) => {
        fc.pre(list !== other)
        const cursor = cursors.encode(list, place)
        expect(() => cursors.decode(other, cursor)).toThrow(refused)
        expect(() => new Cursors('another key').decode(list, cursor)).toThrow(refused)
      }),
    )
  })

  test('reveals neither its position nor the number of digits of a row', () => {
    const lengths = [1, 17, 2 ** 40].map(row => cursors.encode('list', [row]).length)
    expect(new Set(lengths).size).toBe(1)
    const bytes = Buffer.from(cursors.encode('list', ['alice', 123_456]), 'base64url').toString('latin1')
    expect(bytes).not.toMatch(/alice|123456/)
  })

  test('S7.3-invalid_cursor: is rejected if one character differs', () => {
    const cursor = cursors.encode('list', ['2026-01-01T00:00:00.000Z', 17])
    for (let at = 0; at < cursor.length; at++)
      for (const character of ['A', 'z', '-', '_', '=', '~', '']) {
        if (cursor[at] === character) continue
        const forged = cursor.slice(0, at) + character + cursor.slice(at + 1)
        expect(() => cursors.decode('list', forged), forged).toThrow(refused)
      }
  })

  const encoded = (made: unknown) => Buffer.from(JSON.stringify(made)).toString('base64url')
  test.each([
    ['nothing', ''],
    ['no JSON', Buffer.from('nothing').toString('base64url')],
    ['no signature', encoded([1, 2])],
    ['only a signature', Buffer.alloc(16).toString('base64url')],
    ['a wrong signature', Buffer.alloc(48).toString('base64url')],
    ['padding', `${cursors.encode('list', [1])}=`],
    ['white space', `${cursors.encode('list', [1])}\n`],
    ['more than there can be', cursors.encode('list', ['x'.repeat(limits.cursorChars)])],
  ])('S7.3-invalid_cursor: is rejected if it has %s', (_, cursor) => {
    expect(() => cursors.decode('list', cursor)).toThrow(refused)
  })
})

describe('the cursor key', () => {
  test('is created once and stored, so all processes accept the same cursors', async () => {
    const rows = await store()
    const [first, second] = await Promise.all([openCursors(rows), openCursors(rows)])
    const third = await openCursors(rows)
    const cursor = first.encode('list', [1])
    for (const each of [second, third]) expect(each.decode('list', cursor)).toEqual([1])
    expect(await rows.get(tables.settings, ['cursor-key'])).toMatchObject({
      row: { value: expect.stringMatching(/^[0-9a-f]{64}$/) },
    })
  })
})

describe('pages', () => {
  const list = { index: 'byFilename', prefix: ['w', 'k'] }

  async function documents(names: readonly (string | null)[]): Promise<RowStore> {
    const rows = await store()
    await rows.atomic(
      names.map((sourceFilename, n) => ({
        op: 'insert',
        table: tables.documents,
        row: { workspaceId: 'w', knowledgeBaseId: 'k', documentId: `d${n}`, sourceFilename },
      })),
    )
    return rows
  }

  /** Reads all pages and returns their IDs. */
  async function walked(
    page: (cursor: string | undefined) => Promise<{ items: DocumentRow[]; nextCursor: string | null }>,
  ): Promise<string[]> {
    const found: string[] = []
    let cursor: string | undefined
    do {
      const { items, nextCursor } = await page(cursor)
      found.push(...items.map(({ documentId }) => documentId))
      cursor = nextCursor ?? undefined
    } while (cursor !== undefined)
    return found
  }

  test('of rows from another query equal pages of the list', async () => {
    const name = fc.constantFrom(null, '', 'a', 'b', 'é', '\u{1f600}')
    await fc.assert(
      fc.asyncProperty(
        fc.array(name, { maxLength: 12 }),
        fc.integer({ min: 1, max: 4 }),
        async (names, limit) => {
          const rows = await documents(names)
          const pager = new Pager(rows, cursors)
          const stored = await rows.list(tables.documents, { ...list, limit: 100 })
          const shuffled = [...stored].sort((a, b) => ((a.ordinal * 7) % 5) - ((b.ordinal * 7) % 5))
          const listed = stored.map(({ row }) => row.documentId)
          expect(await walked(cursor => pager.page(tables.documents, list, { limit, cursor }))).toEqual(
            listed,
          )
          expect(
            await walked(cursor => pager.pageOfRows(tables.documents, list, shuffled, { limit, cursor })),
          ).toEqual(listed)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('can be descending and end at a value, and each of these lists has its own cursors', async () => {
    const pager = new Pager(await documents([null, 'a', 'b', 'c', 'b']), cursors)
    const down = { ...list, descending: true }
    const lists = [
      list,
      down,
      { ...down, through: 'b' },
      { ...down, through: 'a' },
      { ...list, through: 'b' },
    ]
    const all = await Promise.all(
      lists.map(each => walked(cursor => pager.page(tables.documents, each, { limit: 2, cursor }))),
    )
    expect(all).toEqual([
      ['d0', 'd1', 'd2', 'd4', 'd3'],
      ['d3', 'd4', 'd2', 'd1', 'd0'],
      ['d3', 'd4', 'd2'],
      ['d3', 'd4', 'd2', 'd1'],
      ['d1', 'd2', 'd4'],
    ])
    const made: (readonly [(typeof lists)[number], string])[] = []
    for (const each of lists)
      made.push([each, (await pager.page(tables.documents, each, { limit: 1 })).nextCursor!])
    for (const [of, cursor] of made)
      for (const each of lists.filter(other => other !== of))
        await expect(pager.page(tables.documents, each, { limit: 1, cursor })).rejects.toEqual(refused)
  })

  test('are shorter if rows are long, to limit memory', async () => {
    const rows = await store()
    const sourceFilename = 'x'.repeat(3_000_000)
    for (let n = 0; n < 7; n++)
      await rows.atomic([
        {
          op: 'insert',
          table: tables.documents,
          row: { workspaceId: 'w', knowledgeBaseId: 'k', documentId: `d${n}`, sourceFilename },
        },
      ])
    const pager = new Pager(rows, cursors)
    const all = { index: 'byKnowledgeBase', prefix: ['w', 'k'] }
    const sizes: number[] = []
    const found = await walked(async cursor => {
      const page = await pager.page(tables.documents, all, { limit: 200, cursor })
      sizes.push(page.items.length)
      return page
    })
    expect(found).toHaveLength(7)
    expect(new Set(found).size).toBe(7)
    expect(sizes).toEqual([3, 3, 1])
    const isOdd = (row: DocumentRow): row is DocumentRow => /[13579]$/.test(row.documentId)
    const kept = await walked(cursor =>
      pager.filteredPage(tables.documents, all, { limit: 200, cursor }, isOdd),
    )
    expect(kept).toEqual(['d1', 'd3', 'd5'])
  })

  test('end by the sizes of accepted rows only [security rule 4]', async () => {
    /** Lengths of the pages if a row with a name of the given length is omitted. */
    const pageLengths = async (omitted: number) => {
      const chars = [7_500_000, omitted, ...Array<number>(8).fill(300_000)]
      const pager = new Pager(await documents(chars.map(length => 'x'.repeat(length))), cursors)
      const isKept = (row: DocumentRow): row is DocumentRow => row.documentId !== 'd1'
      const all = { index: 'byKnowledgeBase', prefix: ['w', 'k'] }
      const lengths: number[] = []
      await walked(async cursor => {
        const page = await pager.filteredPage(tables.documents, all, { limit: 50, cursor }, isKept)
        lengths.push(page.items.length)
        return page
      })
      return lengths
    }
    expect(await pageLengths(0)).toEqual([2, 7])
    expect(await pageLengths(900_000)).toEqual([2, 7])
  })

  test('of a search that matches nothing let other work run', async () => {
    const names = Array.from({ length: 200 }, (_, n) => `n${n}`)
    const pager = new Pager(await documents(names), cursors)
    let isOtherWorkDone = false
    setImmediate(() => {
      isOtherWorkDone = true
    })
    const search = { select: async () => undefined, isExhausted: false }
    expect((await pager.searchPage(tables.documents, list, { limit: 1 }, search)).items).toEqual([])
    expect(isOtherWorkDone).toBe(true)
  })

  test('contain only the position of a visible row', async () => {
    const cursorBefore = async (next: string) => {
      const pager = new Pager(await documents(['a shown one', next]), cursors)
      return (await pager.page(tables.documents, list, { limit: 1 })).nextCursor
    }
    expect(await cursorBefore('hidden')).toBe(await cursorBefore('other'))
  })
})
