import { expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { folders } from '../../src/contract/folders.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { records } from '../../src/contract/records.ts'
import { type Base, baseIn, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { chunkPerParagraph, createHostedBase, textOf } from '../jobs/ingest-jobs.ts'

type Call = Pick<TestRuntime, 'call'>

/** Returns all lines of an exported file. */
async function exportLines({ call }: Call, { params }: Pick<Base, 'params'>): Promise<string[]> {
  const lines: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await call(kb.export, { params, query: { cursor } })
    lines.push(...page.lines)
    if (page.nextCursor === null) return lines
    cursor = page.nextCursor
  }
}

/** Imports a file in parts of a number of lines. */
async function importLines(
  wb: Call,
  workspaceId: string,
  [header, ...lines]: readonly string[],
  fields: { name?: string; partSize?: number } = {},
): Promise<Base> {
  const { name, partSize = 5 } = fields
  const body = { header: header!, name }
  const { knowledgeBase } = await wb.call(kb.beginImport, { params: { workspaceId }, body })
  const base = baseIn(wb, knowledgeBase)
  for (let at = 0; at < lines.length; at += partSize) {
    const part = { from: at + 1, lines: lines.slice(at, at + partSize) }
    await wb.call(kb.importLines, { params: base.params, body: part })
  }
  return base
}

async function contentOf({ call }: Call, base: Base) {
  const rows = await base.documents()
  return Promise.all(
    rows.map(async ({ workspaceId: _, knowledgeBaseId: __, updatedAt: ___, ...document }) => {
      const params = { ...base.params, documentId: document.documentId }
      const chunks = await call(documents.chunks, { params, query: { limit: 1_000 } })
      return {
        document,
        chunks: chunks.map(({ payload: { knowledgeBaseId: _, ...payload }, ...chunk }) => ({
          ...chunk,
          payload,
        })),
      }
    }),
  )
}

test('an import restores documents, chunks, metadata and searches, and asks no provider for vectors', async () => {
  const { wb, base, provider } = await createHostedBase()
  await base.ingest(textOf(12), { sourceFilename: 'a.md', metadata: { lang: 'en' }, ...chunkPerParagraph })
  const tail = `# Tail\n\n${textOf(3, 'tail')}`
  await base.ingest(tail, { sourceFilename: 'b.md', visibleTo: ['alice'], ...chunkPerParagraph })
  await wb.call(documents.create, { params: base.params, body: { sourceFilename: 'registered.md' } })
  await wb.send(`POST ${base.path}/records`, {
    records: [{ id: 'direct', vector: [1, 0, 0], payload: { k: [1] } }],
  })
  const lines = await exportLines(wb, base)
  expect(lines.filter(line => line.includes('"context":"Tail"'))).toHaveLength(3)
  const requests = provider.received.length
  const copy = await importLines(wb, base.params.workspaceId, lines, { name: 'copy' })
  expect(provider.received).toHaveLength(requests)
  expect(await contentOf(wb, copy)).toEqual(await contentOf(wb, base))
  expect((await copy.show()).importing).toBeUndefined()
  const found = (of: Base) => of.search('wing 3', { includeEmbeddings: true, lexicalWeight: 0.5 })
  const simplify = async (of: Base) =>
    (await found(of)).map(({ id, score, vector }) => ({ id, score, vector }))
  expect(await simplify(copy)).toEqual(await simplify(base))
  expect(await exportLines(wb, copy).then(all => all.slice(1, -1))).toEqual(lines.slice(1, -1))
  const again = await copy.ingest(tail, { sourceFilename: 'b.md' })
  expect(again.outcome).toBe('duplicate')
})

test('an import restores the descriptions of folders, and embeds them with new documents', async () => {
  const { wb, base, provider } = await createHostedBase()
  const body = { path: 'guides', description: 'for administrators' }
  await wb.call(folders.update, { params: base.params, body })
  await base.ingest('Rotate keys.', { sourceFilename: 'guides/keys.txt' })
  const copy = await importLines(wb, base.params.workspaceId, await exportLines(wb, base), { name: 'copy' })
  expect((await wb.call(folders.list, { params: copy.params })).items).toEqual([body])
  expect(await contentOf(wb, copy)).toEqual(await contentOf(wb, base))
  await copy.ingest('Roles.', { sourceFilename: 'guides/roles.txt' })
  expect(provider.embedded.at(-1)).toBe('for administrators\nRoles.')
})

test('an import into another workspace finds the services, or names the missing one', async () => {
  const wb = await open()
  const base = await makeBase(wb)
  await base.ingest('Gliders fly without engines.', { sourceFilename: 'glider.md' })
  const lines = await exportLines(wb, base)
  const other = await makeWorkspace(wb)
  const copy = await importLines(wb, other.workspaceId, lines)
  expect((await copy.search('gliders')).map(({ payload }) => payload?.chunkText)).toEqual([
    'Gliders fly without engines.',
  ])
  const { workspaceId } = other
  const { embeddingServiceId } = await makeMockService(wb, workspaceId)
  const mock = await makeBase(wb, { workspaceId, embeddingServiceId })
  const mockLines = await exportLines(wb, mock)
  const third = await makeWorkspace(wb)
  await expect(importLines(wb, third.workspaceId, mockLines)).rejects.toMatchObject({
    code: 'embedding_service_not_found',
    message: expect.stringContaining("model 'mock-embedder'"),
  })
})

test('an interrupted import is marked, skipped by searches of all knowledge bases, and continues', async () => {
  const { wb, base } = await createHostedBase()
  await base.ingest(textOf(9), chunkPerParagraph)
  const lines = await exportLines(wb, base)
  const { workspaceId } = base.params
  const begin = { params: { workspaceId }, body: { header: lines[0]!, name: 'copy' } }
  const { knowledgeBase, nextLine } = await wb.call(kb.beginImport, begin)
  expect({ nextLine, importing: knowledgeBase.importing }).toEqual({ nextLine: 1, importing: true })
  const { params } = baseIn(wb, knowledgeBase)
  await wb.call(kb.importLines, { params, body: { from: 1, lines: lines.slice(1, 4) } })
  const all = await wb.call(kb.searchMany, { params: { workspaceId }, body: { text: 'wing', topK: 100 } })
  expect(new Set(all.map(hit => hit.knowledgeBaseId))).toEqual(new Set([base.params.knowledgeBaseId]))
  expect((await wb.call(kb.beginImport, begin)).nextLine).toBe(4)
  await expect(wb.call(kb.export, { params })).rejects.toMatchObject({ code: 'conflict' })
  const documentId = /"documentId":"([^"]+)"/.exec(lines[1]!)![1]!
  const refused = [
    () => wb.call(documents.ingest, { params, body: { text: 'a' } }),
    () => wb.call(documents.create, { params, body: {} }),
    () => wb.call(documents.update, { params: { ...params, documentId }, body: { metadata: {} } }),
    () => wb.call(records.upsert, { params, body: { records: [{ id: `${documentId}:5`, text: 'a' }] } }),
    () => wb.call(records.delete, { params: { ...params, recordId: `${documentId}:0` } }),
  ]
  for (const write of refused) await expect(write()).rejects.toMatchObject({ code: 'conflict' })
  await expect(
    wb.call(kb.importLines, { params, body: { from: 6, lines: lines.slice(6) } }),
  ).rejects.toMatchObject({ code: 'conflict' })
  const rest = await wb.call(kb.importLines, { params, body: { from: 1, lines: lines.slice(1) } })
  expect(rest).toEqual({ nextLine: lines.length, isComplete: true })
  expect(await contentOf(wb, baseIn(wb, knowledgeBase))).toEqual(await contentOf(wb, base))
})

test('lines that were changed, removed, repeated or added are refused, and the knowledge base stays incomplete', async () => {
  const { wb, base } = await createHostedBase()
  await base.ingest(textOf(4), { ...chunkPerParagraph, metadata: { lang: 'en' } })
  const lines = await exportLines(wb, base)
  const { workspaceId } = base.params
  const damages: Record<string, string[]> = {
    changed: lines.map(line => line.replace('wing 2', 'wing 7')),
    removed: lines.toSpliced(3, 1),
    repeated: lines.toSpliced(3, 0, lines[3]!),
    'a chunk without a document': lines.toSpliced(1, 1),
    'no JSON': lines.with(2, '{'),
    'another vector length': lines.map(line => line.replace(/"vector":"[^"]*"/, '"vector":"AAAA"')),
    'a reserved key': lines.map(line => line.replace('"lang":"en"', '"visible_to":"*"')),
    'an inherited field': lines.map(line => line.replace('"fields":{', '"fields":{"$owner":"root",')),
    'an end in the middle': [...lines.slice(0, 2), lines.at(-1)!, ...lines.slice(2)],
  }
  for (const [name, damaged] of Object.entries(damages)) {
    const attempt = importLines(wb, workspaceId, damaged, { name: 'copy', partSize: 1_000 })
    await expect(attempt, name).rejects.toMatchObject({ code: 'archive_damaged' })
    const { items } = await wb.call(kb.list, { params: { workspaceId }, query: {} })
    const copy = items.find(item => item.name === 'copy')!
    expect(copy.importing).toBe(true)
    expect(await baseIn(wb, copy).documents()).toEqual([])
    await baseIn(wb, copy).delete()
  }
  for (const header of ['{}', 'text', lines[0]!.replace('"version":1', '"version":2')])
    await expect(importLines(wb, workspaceId, [header])).rejects.toMatchObject({
      code: 'archive_not_supported',
    })
})

test('a line with a value that a request could not contain is refused, before the checksum', async () => {
  const { wb, base } = await createHostedBase()
  await base.ingest(textOf(1))
  const [header, , chunk] = await exportLines(wb, base)
  const [vector] = /"vector":"[^"]*"/.exec(chunk!)!
  const { workspaceId } = base.params
  const { knowledgeBase } = await wb.call(kb.beginImport, {
    params: { workspaceId },
    body: { header: header!, name: 'copy' },
  })
  const { params } = baseIn(wb, knowledgeBase)
  const add = (payload: string, count = 1) => {
    const line = `{"record":{"id":"a","text":"a","payload":{"x":${payload}},"visibleTo":null,"ownerPrincipalId":null,${vector}}}`
    return wb.call(kb.importLines, { params, body: { from: 1, lines: Array(count).fill(line) } })
  }
  for (const payload of [`${'['.repeat(65)}${']'.repeat(65)}`, '"\\u0000"', '1e999', '{"__proto__":1}'])
    await expect(add(payload), payload).rejects.toMatchObject({ code: 'archive_damaged' })
  const large = `[${Array(1_000).fill('[]')}]`
  await expect(add(large, 1_001)).rejects.toMatchObject({
    code: 'archive_damaged',
    message: expect.stringContaining('larger than 1000000 arrays, objects, and keys'),
  })
  expect(await add('[[]]')).toEqual({ nextLine: 2, isComplete: false })
})

test('a document of several pages is exported once, and a change in the meantime is reported', async () => {
  const { wb, base } = await createHostedBase({}, 64)
  await base.ingest(textOf(40, 'x'.repeat(60_000)), {
    chunker: { maxChars: 65_000, minChars: 0, overlapChars: 0 },
  })
  const lines = await exportLines(wb, base)
  expect(lines.filter(line => line.startsWith('{"document"'))).toHaveLength(1)
  const copy = await importLines(wb, base.params.workspaceId, lines, { name: 'copy' })
  expect(await contentOf(wb, copy)).toEqual(await contentOf(wb, base))
  const { params } = base
  const page = await wb.call(kb.export, { params, query: {} })
  expect(page).toMatchObject({ isComplete: false, nextCursor: expect.any(String) })
  const [document] = await base.documents()
  await wb.call(documents.update, {
    params: { ...params, documentId: document!.documentId },
    body: { metadata: { changed: true } },
  })
  await expect(wb.call(kb.export, { params, query: { cursor: page.nextCursor! } })).rejects.toMatchObject({
    code: 'conflict',
  })
})
