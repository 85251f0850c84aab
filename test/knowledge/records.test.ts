import { describe, expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { records } from '../../src/contract/records.ts'
import { type Base, makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { failedStoreChecks } from '../harness/store-check.ts'
import { storeFile } from '../harness/store-file.ts'

const text = 'Gliders soar over warm fields. Balloons drift where the wind goes. Kites pull at their lines.'
const chunker = { maxChars: 40, minChars: 0, overlapChars: 0 }

interface Placed {
  readonly wb: TestRuntime
  readonly base: Base
  readonly documentId: string
}

/** A knowledge base with one document of three chunks. */
async function place(kind: 'local' | 'mock' = 'local'): Promise<Placed> {
  const wb = await open()
  const { workspaceId } = await makeWorkspace(wb, { kind })
  const base = await makeBase(wb, { workspaceId })
  const { document, chunks } = await base.ingest(text, { chunker, sourceFilename: 'flight.txt' })
  expect(chunks).toBe(3)
  return { wb, base, documentId: document.documentId }
}

const chunkTotal = async ({ wb, base, documentId }: Placed) =>
  (await wb.call(documents.show, { params: { ...base.params, documentId } })).chunkTotal

const remove = ({ wb, base }: Placed, id: string) =>
  wb.send(`DELETE ${base.path}/records/${encodeURIComponent(id)}`)

const put = ({ wb, base }: Placed, ids: readonly string[]) =>
  wb.call(records.upsert, {
    params: base.params,
    body: { records: ids.map(id => ({ id, text: `In the place of ${id}.` })) },
  })

describe.each(['local', 'mock'] as const)('a chunk in a %s workspace', kind => {
  test('is no longer counted by its document when its record is deleted', async () => {
    const here = await place(kind)
    expect(await remove(here, `${here.documentId}:1`)).toMatchObject({ status: 200, body: { deleted: true } })
    expect(await chunkTotal(here)).toBe(2)
    expect(await remove(here, `${here.documentId}:1`)).toMatchObject({ body: { deleted: false } })
    expect(await chunkTotal(here)).toBe(2)
    expect(await failedStoreChecks(here.wb.dataDir)).toEqual([])
  })

  test('is no longer counted by its document when other records replace it, which are not counted either', async () => {
    const here = await place(kind)
    const [first, second] = [`${here.documentId}:0`, `${here.documentId}:2`]
    await put(here, [first, 'another', second])
    expect(await chunkTotal(here)).toBe(1)
    await put(here, [first])
    await remove(here, second)
    expect(await chunkTotal(here)).toBe(1)
    expect(await failedStoreChecks(here.wb.dataDir)).toEqual([])
  })

  test('that was deleted allows its document to be ingested again', async () => {
    const here = await place(kind)
    const again = () =>
      here.base.ingest(text, { chunker, sourceFilename: 'flight.txt', overwriteOnNameConflict: true })
    expect(await again()).toMatchObject({ outcome: 'duplicate' })
    await remove(here, `${here.documentId}:1`)
    expect(await again()).toMatchObject({ chunks: 3 })
    expect(await here.base.documents()).toMatchObject([{ chunkTotal: 3 }])
    expect(await here.base.search('gliders balloons kites')).toHaveLength(3)
    expect(await failedStoreChecks(here.wb.dataDir)).toEqual([])
  })
})

test('concurrent deletes and replacements of chunks update the count once per chunk', async () => {
  const here = await place()
  await Promise.all([
    remove(here, `${here.documentId}:0`),
    remove(here, `${here.documentId}:0`),
    put(here, [`${here.documentId}:1`, 'another']),
    put(here, [`${here.documentId}:1`]),
    remove(here, 'another'),
  ])
  expect(await chunkTotal(here)).toBe(1)
  expect(await failedStoreChecks(here.wb.dataDir)).toEqual([])
})

test('deleting a document and its chunk concurrently leaves a consistent store', async () => {
  const here = await place()
  const { params } = here.base
  await Promise.all([
    here.wb.call(documents.delete, { params: { ...params, documentId: here.documentId } }),
    remove(here, `${here.documentId}:0`),
    put(here, [`${here.documentId}:1`]),
  ])
  expect(await here.base.documents()).toEqual([])
  const file = storeFile(here.wb.dataDir)
  expect(file.all('SELECT id FROM record')).toEqual([{ id: `${here.documentId}:1` }])
  file.close()
  expect(await failedStoreChecks(here.wb.dataDir)).toEqual([])
})
