import { expect, test, vi } from 'vitest'
import { noPrincipal } from '../../src/access/row-access.ts'
import { Compactor } from '../../src/knowledge/compactor.ts'
import { KnowledgeBases } from '../../src/knowledge/knowledge-bases.ts'
import type { Visibility } from '../../src/storage/visibility.ts'
import { openAccess } from '../harness/open-access.ts'
import { all, only } from '../storage/content-data.ts'

function callerWhoSees(visibility: Visibility) {
  const rowAccess = async (workspaceId: string) => ({
    ...(await openAccess(noPrincipal, workspaceId)),
    visibility: () => visibility,
    seesAll: () => !visibility.filter,
  })
  return { rowAccess }
}

test('a caller who may see only some rows gets no statistics', async () => {
  const bases = new KnowledgeBases({} as never)
  vi.spyOn(bases, 'openContext').mockResolvedValue({} as never)
  const address = { workspaceId: 'w', knowledgeBaseId: 'k' }
  await expect(bases.stats(address, callerWhoSees(only('alice')))).rejects.toMatchObject({
    code: 'forbidden',
    status: 403,
  })
})

test('a caller who may see only some rows gets no sizes and no progress in the list', async () => {
  const base = { workspaceId: 'w', knowledgeBaseId: 'k', name: 'c' }
  const rows = { get: async () => ({ row: { kind: 'local' } }), count: async () => 7 }
  const bases = new KnowledgeBases({
    rows,
    pager: { page: async () => ({ items: [base], nextCursor: null }) },
    sentenceProgress: async () => ({ records: 4, embedded: 3 }),
    stores: { local: { storedBytes: async () => [{ text: 1, payload: 2, vectors: 3, postings: 4 }] } },
  } as never)
  const listFor = (visibility: Visibility) =>
    bases.listWithFigures('w', { limit: 10 } as never, callerWhoSees(visibility))
  const sentences = { state: 'embedding', embeddedChunks: 3, chunks: 4 }
  expect((await listFor(all)).items).toEqual([{ ...base, size: { documents: 7, bytes: 10 }, sentences }])
  expect((await listFor(only('alice'))).items).toEqual([base])
})

test('a caller who may see only some rows cannot compact', async () => {
  const bases = new KnowledgeBases({ rows: { get: async () => ({ row: {} }) } } as never)
  vi.spyOn(bases, 'openContext').mockResolvedValue({} as never)
  const compactor = new Compactor(bases, vi.fn())
  const caller = callerWhoSees(only('alice')) as never
  await expect(compactor.run({ workspaceId: 'w', knowledgeBaseId: 'k' }, caller)).rejects.toMatchObject({
    code: 'forbidden',
  })
})

test('an error during a compaction is the last event', async () => {
  const bases = new KnowledgeBases({ rows: { get: async () => ({ row: {} }) } } as never)
  const store = { compact: () => Promise.reject(new Error('secret')) }
  vi.spyOn(bases, 'openContext').mockResolvedValue({ base: {}, store, key: {} } as never)
  const reportFailure = () => ({
    status: 500,
    envelope: { error: { code: 'internal_error', message: 'it failed', requestId: 'r' } },
  })
  const compactor = new Compactor(bases, reportFailure as never)
  const caller = { ...callerWhoSees(all), can: async () => false, requestId: 'r' } as never
  const events = []
  for await (const event of await compactor.stream({ workspaceId: 'w', knowledgeBaseId: 'k' }, caller))
    events.push(event)
  expect(events).toEqual([{ id: '', event: 'error', data: { code: 'internal_error', message: 'it failed' } }])
})
