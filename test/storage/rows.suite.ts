import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ColumnValue, ListQuery, RowStore, Write } from '../../src/storage/rows.ts'
import { type DocumentRow, tables } from '../../src/storage/tables.ts'

export interface OpenRows {
  readonly rows: RowStore
  close(): Promise<void>
}

const { documents, settings, workspaces } = tables

function setting(name: string, value = ''): Write {
  return { op: 'insert', table: settings, row: { name, value } }
}

function workspace(id: string, fields: { name?: string; url?: string | null; createdAt?: string } = {}) {
  return {
    workspaceId: id,
    name: fields.name ?? `name of ${id}`,
    kind: 'local' as const,
    url: fields.url ?? null,
    keyspace: null,
    credentials: {},
    rlacEnabled: false,
    createdAt: fields.createdAt ?? '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
  }
}

function document(documentId: string, fields: Partial<DocumentRow> = {}): DocumentRow {
  return {
    workspaceId: 'w',
    knowledgeBaseId: 'k',
    documentId,
    sourceDocId: null,
    sourceFilename: null,
    fileType: null,
    fileSize: null,
    contentHash: null,
    chunkTotal: null,
    ingestedAt: null,
    updatedAt: '2026-01-01T00:00:00.000Z',
    status: 'ready',
    errorMessage: null,
    metadata: {},
    visibleTo: null,
    ownerPrincipalId: null,
    ingestKey: null,
    nameKey: null,
    ...fields,
  }
}

/** Tests for every row store. */
export function rowsSuite(driver: string, open: () => Promise<OpenRows>): void {
  describe(`rows: ${driver}`, () => {
    let store: OpenRows
    let rows: RowStore

    beforeEach(async () => {
      store = await open()
      rows = store.rows
    })
    afterEach(() => store.close())

    const insert = (row: DocumentRow): Write => ({ op: 'insert', table: documents, row })

    test('S1-11: a row is stored completely, counts its changes and keeps its position', async () => {
      const row = document('d1', { metadata: { title: 'Tïtle', n: 1.5, yes: true, none: null }, fileSize: 7 })
      expect(await rows.atomic([insert(row), insert(document('d2'))])).toEqual({ ok: true })
      const first = await rows.get(documents, ['w', 'k', 'd1'])
      const text = JSON.stringify(row)
      expect(first).toEqual({ row, version: 1, ordinal: expect.any(Number), text })
      const changed = { ...row, status: 'failed' as const }
      expect(await rows.atomic([{ op: 'replace', table: documents, row: changed }])).toEqual({ ok: true })
      expect(await rows.get(documents, ['w', 'k', 'd1'])).toEqual({
        ...first,
        row: changed,
        version: 2,
        text: JSON.stringify(changed),
      })
      const listed = await rows.list(documents, { index: 'byKnowledgeBase', prefix: ['w', 'k'], limit: 9 })
      expect(listed.map(({ row: { documentId } }) => documentId)).toEqual(['d1', 'd2'])
      expect(await rows.atomic([{ op: 'delete', table: documents, key: ['w', 'k', 'd1'] }])).toEqual({
        ok: true,
      })
      expect(await rows.get(documents, ['w', 'k', 'd1'])).toBeUndefined()
    })

    test('a position in the insertion order is never reused', async () => {
      await rows.atomic([insert(document('d1')), insert(document('d2'))])
      const before = await rows.get(documents, ['w', 'k', 'd2'])
      await rows.atomic([{ op: 'delete', table: documents, key: ['w', 'k', 'd2'] }, insert(document('d2'))])
      expect((await rows.get(documents, ['w', 'k', 'd2']))!.ordinal).toBeGreaterThan(before!.ordinal)
    })

    test('an insert that conflicts reports the key or the name of the unique set', async () => {
      await rows.atomic([insert(document('d1', { ingestKey: 'hash' }))])
      expect(await rows.atomic([insert(document('d1'))])).toEqual({ ok: false, at: 0, reason: 'exists' })
      expect(await rows.atomic([setting('a'), insert(document('d2', { ingestKey: 'hash' }))])).toEqual({
        ok: false,
        at: 1,
        reason: 'taken',
        unique: 'ingestKey',
      })
      expect(await rows.get(settings, ['a'])).toBeUndefined()
    })

    test('a null disables a unique set', async () => {
      expect(await rows.atomic([insert(document('d1')), insert(document('d2'))])).toEqual({ ok: true })
    })

    test('a replacement can keep its unique value, but not use that of another row', async () => {
      const [one, two] = [workspace('1', { name: 'one' }), workspace('2', { name: 'two' })]
      await rows.atomic([one, two].map(row => ({ op: 'insert', table: workspaces, row })))
      const replace = (row: object): Write => ({ op: 'replace', table: workspaces, row })
      expect(await rows.atomic([replace({ ...one, url: 'http://x' })])).toEqual({ ok: true })
      expect(await rows.atomic([replace({ ...one, name: 'two' })])).toMatchObject({
        reason: 'taken',
        unique: 'name',
      })
      expect(
        await rows.atomic([replace({ ...two, name: 'three' }), replace({ ...one, name: 'two' })]),
      ).toEqual({
        ok: true,
      })
    })

    test('an outdated version prevents replacement and deletion', async () => {
      const row = document('d1')
      await rows.atomic([insert(row), { op: 'replace', table: documents, row }])
      const key = ['w', 'k', 'd1']
      const stale = { ok: false, at: 0, reason: 'stale' }
      expect(await rows.atomic([{ op: 'replace', table: documents, row, version: 1 }])).toEqual(stale)
      expect(await rows.atomic([{ op: 'delete', table: documents, key, version: 1 }])).toEqual(stale)
      expect(await rows.atomic([{ op: 'replace', table: documents, row, version: 2 }])).toEqual({ ok: true })
      expect(await rows.atomic([{ op: 'delete', table: documents, key, version: 3 }])).toEqual({ ok: true })
      const absent = { ok: false, at: 0, reason: 'absent' }
      expect(await rows.atomic([{ op: 'replace', table: documents, row }])).toEqual(absent)
      expect(await rows.atomic([{ op: 'delete', table: documents, key }])).toEqual(absent)
    })

    test('the ordinal of a deleted row prevents changes of a new row with the same key', async () => {
      const row = document('d1')
      const key = ['w', 'k', 'd1']
      await rows.atomic([insert(row)])
      const { version, ordinal } = (await rows.get(documents, key))!
      await rows.atomic([{ op: 'delete', table: documents, key }, insert(row)])
      expect((await rows.get(documents, key))!.version).toBe(version)
      const stale = { ok: false, at: 0, reason: 'stale' }
      const revision = { version, ordinal }
      expect(await rows.atomic([{ op: 'replace', table: documents, row, ...revision }])).toEqual(stale)
      expect(await rows.atomic([{ op: 'delete', table: documents, key, ...revision }])).toEqual(stale)
      expect(await rows.atomic([{ op: 'require', table: documents, key, ...revision }])).toEqual(stale)
    })

    test('requirements of a unit are checked in order', async () => {
      const require: Write = { op: 'require', table: settings, key: ['a'] }
      const requireNone: Write = {
        op: 'requireNone',
        table: documents,
        index: 'byKnowledgeBase',
        prefix: ['w', 'k'],
      }
      expect(await rows.atomic([require])).toEqual({ ok: false, at: 0, reason: 'absent' })
      expect(await rows.atomic([setting('a'), require, requireNone])).toEqual({ ok: true })
      expect(await rows.atomic([{ ...require, version: 1 }])).toEqual({ ok: true })
      expect(await rows.atomic([{ ...require, version: 2 }])).toEqual({ ok: false, at: 0, reason: 'stale' })
      expect(await rows.atomic([insert(document('d1')), require, requireNone])).toEqual({
        ok: false,
        at: 2,
        reason: 'present',
      })
      expect(await rows.count(documents, 'byKnowledgeBase', ['w', 'k'])).toBe(0)
    })

    test('deleteAll deletes only rows with its prefix', async () => {
      await rows.atomic([
        insert(document('d1')),
        insert(document('d2')),
        insert(document('d3', { knowledgeBaseId: 'other' })),
        insert(document('d4', { workspaceId: 'other' })),
      ])
      const deleteAll: Write = {
        op: 'deleteAll',
        table: documents,
        index: 'byKnowledgeBase',
        prefix: ['w', 'k'],
      }
      expect(await rows.atomic([deleteAll, deleteAll])).toEqual({ ok: true })
      expect(await rows.count(documents, 'byKnowledgeBase', ['w', 'k'])).toBe(0)
      expect(await rows.count(documents, 'byKnowledgeBase', ['w'])).toBe(1)
      expect(await rows.count(documents, 'byKnowledgeBase', [])).toBe(2)
    })

    test('removeFromList removes a value from lists in rows with its prefix, and keeps their order', async () => {
      const agent = (agentId: string, knowledgeBaseIds: string[], workspaceId = 'w') => ({
        workspaceId,
        agentId,
        name: agentId,
        knowledgeBaseIds,
        createdAt: '2026-01-01T00:00:00.000Z',
      })
      const { agents } = tables
      const all = [
        agent('a1', ['z', 'k', 'b']),
        agent('a2', ['b']),
        agent('a3', ['k']),
        agent('a4', ['k'], 'other'),
        agent('a5', []),
      ]
      await rows.atomic(all.map(row => ({ op: 'insert', table: agents, row })))
      const prefix = ['w']
      const field = 'knowledgeBaseIds'
      const withdraw: Write = {
        op: 'removeFromList',
        table: agents,
        index: 'byWorkspace',
        prefix,
        field,
        value: 'k',
      }
      expect(await rows.atomic([withdraw, withdraw])).toEqual({ ok: true })
      const left = await Promise.all(
        all.map(({ workspaceId, agentId }) => rows.get(agents, [workspaceId, agentId])),
      )
      expect(left.map(stored => stored!.row.knowledgeBaseIds)).toEqual([['z', 'b'], ['b'], ['k'], ['k'], []])
      expect(left.map(stored => stored!.version)).toEqual([2, 1, 1, 1, 1])
    })

    test('100 concurrent units succeed or fail as a whole', async () => {
      const unit = (n: number): Write[] => [
        insert(document(`d${n}`, { ingestKey: `hash ${Math.floor(n / 2)}` })),
        setting(`s${n}`),
        ...(n % 4 === 2 ? [{ op: 'require', table: settings, key: ['nobody'] } as const] : []),
      ]
      const outcomes = await Promise.all(Array.from({ length: 100 }, (_, n) => rows.atomic(unit(n))))
      const expected = (n: number) => {
        if (n % 4 === 2) return { ok: false, at: 2, reason: 'absent' }
        return n % 4 === 1 ? { ok: false, at: 0, reason: 'taken', unique: 'ingestKey' } : { ok: true }
      }
      for (const [n, outcome] of outcomes.entries()) {
        expect(outcome, `unit ${n}`).toEqual(expected(n))
        expect(Boolean(await rows.get(settings, [`s${n}`])), `setting ${n}`).toBe(outcome.ok)
        expect(Boolean(await rows.get(documents, ['w', 'k', `d${n}`])), `document ${n}`).toBe(outcome.ok)
      }
    })

    test('a read sees all writes that have resolved', async () => {
      for (let n = 0; n < 20; n++) {
        await rows.atomic([setting(`s${n}`)])
        expect(await rows.get(settings, [`s${n}`])).toBeDefined()
      }
    })

    test('only one of two writes to one version succeeds', async () => {
      const row = { name: 'n', value: '' }
      await rows.atomic([{ op: 'insert', table: settings, row }])
      const race = ['a', 'b'].map(value =>
        rows.atomic([{ op: 'replace', table: settings, row: { ...row, value }, version: 1 }]),
      )
      expect((await Promise.all(race)).map(({ ok }) => ok).sort()).toEqual([false, true])
    })

    test.each([
      ['a NUL', 'a\0b'],
      ['a quote', `it's "x"; DROP TABLE settings --`],
      ['a long name', 'x'.repeat(100_000)],
      ['nothing', ''],
      ['a name of the language', '__proto__'],
    ])('a key can be %s', async (_, name) => {
      expect(await rows.atomic([setting(name, name), setting(`${name}.`)])).toEqual({ ok: true })
      expect((await rows.get(settings, [name]))!.row).toEqual({ name, value: name })
      expect(await rows.atomic([setting(name)])).toMatchObject({ reason: 'exists' })
    })

    test('text is ordered by code point', async () => {
      const stamps = ['\u{1F600}', '\ufb01', 'a', 'Z', 'é', '']
      const agents = stamps.map((createdAt, n) => ({
        workspaceId: 'w',
        agentId: `a${n}`,
        name: '',
        createdAt,
        llmServiceId: null,
      }))
      await rows.atomic(agents.map(row => ({ op: 'insert', table: tables.agents, row })))
      const listed = await rows.list(tables.agents, { index: 'byWorkspace', prefix: ['w'], limit: 9 })
      expect(listed.map(({ row }) => row.createdAt)).toEqual(['', 'Z', 'a', 'é', '\ufb01', '\u{1F600}'])
    })

    test('the pages of any list, in both directions, contain every row once and in order', async () => {
      const name = fc.constantFrom(null, null, 'a', 'b', 'c')
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.record({ sourceFilename: name, knowledgeBaseId: fc.constantFrom('k', 'l') }), {
            maxLength: 25,
          }),
          fc.nat(4),
          fc.boolean(),
          fc.nat(3),
          fc.option(fc.constantFrom('a', 'b', 'd'), { nil: undefined }),
          async (made, size, descending, matched, end) => {
            const through = matched === 2 ? end : undefined
            await rows.atomic([{ op: 'deleteAll', table: documents, index: 'byWorkspace', prefix: ['w'] }])
            await rows.atomic(made.map((fields, n) => insert(document(`d${n}`, fields))))
            const prefix: ColumnValue[] = ['w', 'k', null].slice(0, matched)
            const expected = made
              .map((fields, n) => ({ ...fields, n }))
              .filter(({ knowledgeBaseId, sourceFilename }) => {
                if (matched >= 2 && knowledgeBaseId !== 'k') return false
                if (matched >= 3 && sourceFilename !== null) return false
                if (through === undefined) return true
                return (
                  sourceFilename !== null &&
                  (descending ? sourceFilename >= through : sourceFilename <= through)
                )
              })
              .sort((a, b) => {
                const base = a.knowledgeBaseId.localeCompare(b.knowledgeBaseId)
                return base || (a.sourceFilename ?? '').localeCompare(b.sourceFilename ?? '') || a.n - b.n
              })
              .map(({ n }) => `d${n}`)
            const limit = size + 1
            const query = { prefix, limit, descending, through }
            expect(await paged(query)).toEqual(descending ? expected.reverse() : expected)
          },
        ),
        { numRuns: 100 },
      )
    })

    async function paged(query: Omit<ListQuery, 'index'>): Promise<string[]> {
      const { prefix, limit } = query
      const found: string[] = []
      let after: ColumnValue[] | undefined
      for (;;) {
        const page = await rows.list(documents, { index: 'byFilename', ...query, after })
        expect(page.length).toBeLessThanOrEqual(limit)
        found.push(...page.map(({ row }) => row.documentId))
        const last = page.at(-1)
        if (!last || page.length < limit) return found
        const { workspaceId, knowledgeBaseId, sourceFilename } = last.row
        after = [workspaceId, knowledgeBaseId, sourceFilename, last.ordinal].slice(prefix.length)
      }
    }

    test('the insertion order is a list, from which single rows can be deleted', async () => {
      const record = (auditId: string) => ({ auditId, at: auditId, action: 'kb.create', workspaceId: null })
      await rows.atomic(['c', 'a', 'b'].map(id => ({ op: 'insert', table: tables.audit, row: record(id) })))
      const list = async (query: Partial<ListQuery>) =>
        rows.list(tables.audit, { index: 'byOrdinal', prefix: [], limit: 9, ...query })
      const all = await list({})
      expect(all.map(({ row }) => row.auditId)).toEqual(['c', 'a', 'b'])
      const [first, second, third] = all.map(({ ordinal }) => ordinal) as [number, number, number]
      expect((await list({ after: [first], through: second })).map(({ ordinal }) => ordinal)).toEqual([
        second,
      ])
      expect((await list({ descending: true, limit: 1 }))[0]!.ordinal).toBe(third)
      await rows.atomic([{ op: 'deleteAll', table: tables.audit, index: 'byOrdinal', prefix: [second] }])
      expect((await list({})).map(({ row }) => row.auditId)).toEqual(['c', 'b'])
    })

    test('an unknown index or an invalid position throws instead of returning an empty list', async () => {
      await expect(rows.list(documents, { index: 'byMoon', prefix: [], limit: 1 })).rejects.toThrow(
        RangeError,
      )
      await expect(
        rows.list(documents, { index: 'byWorkspace', prefix: ['w'], after: ['x', 1], limit: 1 }),
      ).rejects.toThrow(RangeError)
      await expect(rows.get(documents, ['w'])).rejects.toThrow(RangeError)
    })
  })
}
