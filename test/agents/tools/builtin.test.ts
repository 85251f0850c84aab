import { expect, test } from 'vitest'
import { folders } from '../../../src/contract/folders.ts'
import { records } from '../../../src/contract/records.ts'
import { makeBase } from '../../harness/resources.ts'
import { builtInToolIds, setUpTools } from '../../harness/tools.ts'
import { unknownId } from '../../wire/shapes.ts'

/** Creates two knowledge bases, on birds and on ships. */
async function createLibrary() {
  const stage = await setUpTools()
  const { wb, workspaceId } = stage
  const birds = await makeBase(wb, { workspaceId, name: 'birds', description: 'all that flies' })
  const ships = await makeBase(wb, { workspaceId, name: 'ships' })
  const heron = await birds.ingest('The heron stands in shallow water and waits for fish.', {
    sourceFilename: 'heron.txt',
    metadata: { title: 'Herons', page: 7 },
  })
  const owl = await birds.ingest('The owl hunts mice at night.', { sourceFilename: 'owl.txt' })
  const barge = await ships.ingest('A barge carries gravel through shallow water.', {
    sourceFilename: 'barge.txt',
  })
  const callTool = async (name: string, args?: object, knowledgeBaseIds?: readonly string[]) => {
    const { content, outcome } = await stage.run(name, args, { knowledgeBaseIds })
    expect({ content, outcome }).toMatchObject({ outcome: 'success' })
    return JSON.parse(content)
  }
  return { ...stage, birds, ships, asked: callTool, documents: { heron, owl, barge } }
}

test('an agent without named tools has the seven built-in ones, and otherwise the existing ones of those named', async () => {
  const { toolsOf } = await setUpTools()
  const ids = async (toolIds: readonly string[]) => (await toolsOf(toolIds)).map(({ id }) => id)
  expect(await ids([])).toEqual(builtInToolIds)
  const named = ['search_kb', 'list_kbs', 'native:fetch', 'no_such', `mcp:${unknownId}:look`]
  expect(await ids(named)).toEqual(['list_kbs', 'search_kb'])
  const [one, ...others] = await toolsOf()
  expect(one!.hash).toMatch(/^sha256:[0-9a-f]{64}$/)
  expect(others.map(({ hash }) => hash)).not.toContain(one!.hash)
})

test('search_kb and list_documents show the description of a folder with its first item only', async () => {
  const { wb, asked, birds } = await createLibrary()
  const { params } = birds
  await birds.ingest('The stork stands on one leg.', { sourceFilename: 'wading/stork.txt' })
  await birds.ingest('The crane stands in the reeds.', { sourceFilename: 'wading/crane.txt' })
  const folder = { path: 'wading', description: 'birds with long legs' }
  await wb.call(folders.update, { params, body: folder })
  const { knowledgeBaseId } = params
  const { results } = await asked('search_kb', { query: 'stands', knowledgeBaseId, limit: 8 })
  const wading = (results as { sourceFilename: string; folder?: object }[]).filter(hit =>
    hit.sourceFilename.startsWith('wading/'),
  )
  expect(wading.map(hit => hit.folder)).toEqual([folder, undefined])
  const { documents } = await asked('list_documents', { knowledgeBaseId })
  expect((documents as { folder?: object }[]).map(row => row.folder)).toEqual([
    undefined,
    undefined,
    folder,
    undefined,
  ])
})

test('built-in tools describe the contents of the knowledge bases', async () => {
  const { asked, birds, ships, documents } = await createLibrary()
  const [b, s] = [birds, ships].map(({ params }) => params.knowledgeBaseId)
  expect(await asked('list_kbs')).toEqual({
    knowledgeBases: [
      { knowledgeBaseId: b, name: 'birds', description: 'all that flies' },
      { knowledgeBaseId: s, name: 'ships', description: null },
    ],
  })
  const { documentId } = documents.barge.document
  const barge = {
    knowledgeBaseId: s,
    documentId,
    sourceFilename: 'barge.txt',
    fileType: null,
    status: 'ready',
  }
  expect(await asked('list_documents', { knowledgeBaseId: s })).toEqual({ documents: [barge] })
  expect(await asked('list_documents')).toMatchObject({ documents: [{}, {}, barge] })
  expect(await asked('count_documents')).toEqual({
    total: 3,
    perKnowledgeBase: [
      { knowledgeBaseId: b, documentCount: 2 },
      { knowledgeBaseId: s, documentCount: 1 },
    ],
  })
  expect(await asked('summarize_kb', { knowledgeBaseId: s })).toEqual({
    summaries: [
      {
        knowledgeBaseId: s,
        name: 'ships',
        description: null,
        documentCount: 1,
        sampleDocuments: [{ documentId, sourceFilename: 'barge.txt' }],
      },
    ],
  })
  const heron = documents.heron.document
  const place = { knowledgeBaseId: b, documentId: heron.documentId }
  expect(await asked('get_document', place)).toEqual({
    ...place,
    sourceFilename: 'heron.txt',
    fileType: null,
    fileSize: heron.fileSize,
    chunkTotal: 1,
    status: 'ready',
    ingestedAt: heron.ingestedAt,
    metadata: { title: 'Herons', page: 7 },
  })
})

test('a search returns passages of all knowledge bases, best first, each with its source and number', async () => {
  const { asked, birds, cited, documents } = await createLibrary()
  const { results } = await asked('search_kb', { query: 'who waits in shallow water for fish', limit: 2 })
  const scores = results.map(({ score }: { score: number }) => score)
  expect(scores).toEqual([...scores].sort((a, b) => b - a))
  const { documentId } = documents.heron.document
  const { knowledgeBaseId } = birds.params
  expect(results).toHaveLength(2)
  expect(results[0]).toEqual({
    citation: 1,
    knowledgeBaseId,
    documentId,
    chunkId: `${documentId}:0`,
    chunkIndex: 0,
    title: 'Herons',
    sourceFilename: 'heron.txt',
    score: expect.any(Number),
    contentPreview: 'The heron stands in shallow water and waits for fish.',
  })
  expect(cited[0]).toMatchObject({ chunkId: `${documentId}:0`, title: 'Herons', page: 7 })
  const again = await asked('list_chunks', { knowledgeBaseId, documentId })
  expect(again).toEqual({
    documentId,
    knowledgeBaseId,
    chunkTotal: 1,
    offset: 0,
    returned: 1,
    chunks: [{ citation: 1, id: `${documentId}:0`, chunkIndex: 0, text: results[0].contentPreview }],
  })
})

test('a tool cannot reach other knowledge bases, whether or not they exist', async () => {
  const { asked, run, birds, ships, documents } = await createLibrary()
  const bound = [birds.params.knowledgeBaseId]
  const other = ships.params.knowledgeBaseId
  expect((await asked('list_kbs', {}, bound)).knowledgeBases).toMatchObject([{ name: 'birds' }])
  expect(await asked('count_documents', {}, bound)).toMatchObject({ total: 2 })
  expect((await asked('list_documents', {}, bound)).documents).toHaveLength(2)
  const { results } = await asked('search_kb', { query: 'gravel barge', limit: 8 }, bound)
  expect(results.map((hit: { knowledgeBaseId: string }) => hit.knowledgeBaseId)).not.toContain(other)
  const { documentId } = documents.barge.document
  for (const knowledgeBaseId of [other, unknownId])
    for (const [name, args] of [
      ['search_kb', { query: 'barge' }],
      ['list_documents', {}],
      ['count_documents', {}],
      ['summarize_kb', {}],
      ['get_document', { documentId }],
      ['list_chunks', { documentId }],
    ] as const) {
      const result = await run(name, { ...args, knowledgeBaseId }, { knowledgeBaseIds: bound })
      expect([name, result.outcome, result.content]).toEqual([
        name,
        'failure',
        `Error: knowledge base ${knowledgeBaseId} is not available to this agent`,
      ])
    }
})

test('an empty result is a sentence that says so', async () => {
  const { run, wb, workspaceId } = await setUpTools()
  const contentOf = async (name: string, args?: object) => (await run(name, args)).content
  for (const name of ['list_kbs', 'count_documents', 'summarize_kb'])
    expect(await contentOf(name)).toBe('There are no knowledge bases.')
  expect(await contentOf('search_kb', { query: 'x' })).toBe('There are no knowledge bases.')
  const { params } = await makeBase(wb, { workspaceId })
  expect(await contentOf('list_documents')).toBe('There are no documents.')
  expect(await contentOf('search_kb', { query: 'x' })).toBe('No passage was found.')
  const place = { knowledgeBaseId: params.knowledgeBaseId, documentId: unknownId }
  expect(await run('get_document', place)).toMatchObject({
    outcome: 'failure',
    content: `Error: document '${unknownId}' not found`,
  })
})

test.each([
  ['search_kb', {}, 'query'],
  ['search_kb', { query: 'x', limit: 9 }, 'limit'],
  ['search_kb', { query: 'x', topK: 3 }, 'topK'],
  ['search_kb', { query: 'x'.repeat(8_193) }, 'query'],
  ['list_kbs', { all: true }, 'all'],
  ['list_documents', { knowledgeBaseId: 'handbook' }, 'knowledgeBaseId'],
  ['list_chunks', { knowledgeBaseId: unknownId, documentId: unknownId, limit: 51 }, 'limit'],
  ['list_chunks', { knowledgeBaseId: unknownId, documentId: unknownId, offset: -1 }, 'offset'],
])('invalid arguments for %s cause an error that names them: %j', async (name, args, named) => {
  const { run } = await setUpTools()
  const { outcome, content } = await run(name, args)
  expect([outcome, content]).toEqual(['failure', expect.stringMatching(/^Error: /)])
  expect(content).toContain(named)
})

/** Creates a knowledge base with one document of 40 paragraphs, each a chunk of about 1,800 characters. */
async function createLongDocument() {
  const stage = await setUpTools()
  const base = await makeBase(stage.wb, { workspaceId: stage.workspaceId })
  const paragraph = (at: number) =>
    `Paragraph ${at}. ${'Words and more words. '.repeat(80)}Item ${at} weighs ${at}00 grams.`
  const text = Array.from({ length: 40 }, (_, at) => paragraph(at)).join('\n\n')
  const { document } = await base.ingest(text, { chunker: { maxChars: 2_000 } })
  const place = { knowledgeBaseId: base.params.knowledgeBaseId, documentId: document.documentId }
  const callTool = async (name: string, args: object, passageTokens?: number) =>
    JSON.parse((await stage.run(name, args, { passageTokens })).content)
  return { ...stage, asked: callTool, place }
}

test('a search returns whole chunks, even if the match is at the end of a long one', async () => {
  const { asked } = await createLongDocument()
  const { results } = await asked('search_kb', { query: 'what does item 17 weigh', limit: 3 })
  expect(results[0].contentPreview).toContain('Item 17 weighs 1700 grams.')
  expect(results[0].contentPreview.length).toBeGreaterThan(1_500)
  expect(results.map((hit: object) => 'truncated' in hit)).toEqual([false, false, false])
})

test('a search that does not fit cuts the lower hits around the match, marks them, and stays within its budget', async () => {
  const { run } = await createLongDocument()
  const search = { query: 'what does item 17 weigh', limit: 8 }
  for (const passageTokens of [512, 1_500, 4_000]) {
    const { content } = await run('search_kb', search, { passageTokens })
    expect(Buffer.byteLength(content)).toBeLessThanOrEqual(3 * passageTokens)
    const { results, truncated, total } = JSON.parse(content)
    expect(results[0].contentPreview).toContain('Item 17 weighs 1700 grams.')
    const cut = results.map((hit: { truncated?: true }) => hit.truncated === true)
    expect(cut).toEqual([...cut].sort())
    expect(cut.at(-1)).toBe(true)
    expect([truncated, total]).toEqual(results.length < 8 ? [true, 8] : [undefined, undefined])
  }
})

test('chunks are read whole from an offset, as many as fit, and the result contains the next offset', async () => {
  const { asked, run, place } = await createLongDocument()
  const all = await asked('list_chunks', { ...place, limit: 50 })
  expect(all.chunkTotal).toBe(40)
  expect(all.returned).toBe(all.chunks.length)
  expect(all).toMatchObject({ truncated: true, nextOffset: all.returned })
  expect(all.chunks.at(-1).text.length).toBeGreaterThan(1_500)
  expect(all.chunks.some((chunk: object) => 'truncated' in chunk)).toBe(false)
  expect(JSON.stringify(all).length).toBeLessThanOrEqual(3 * 8_000)
  const some = await asked('list_chunks', { ...place, limit: 2, offset: 3 })
  expect(some.chunks.map(({ chunkIndex }: { chunkIndex: number }) => chunkIndex)).toEqual([3, 4])
  expect(some).not.toHaveProperty('truncated')
  const small = await asked('list_chunks', { ...place, limit: 2, offset: 3 }, 512)
  expect(small).toMatchObject({ returned: 1, truncated: true, nextOffset: 4, chunks: [{ truncated: true }] })
  const beyond = await run('list_chunks', { ...place, offset: 10_000 })
  expect(beyond).toMatchObject({ outcome: 'success', content: 'The document has no chunk at offset 10000.' })
})

test('lists of many knowledge bases and documents contain the first ones and the total number', async () => {
  const stage = await setUpTools()
  const { wb, workspaceId } = stage
  const bases = []
  for (let count = 0; count < 27; count++) bases.push(await makeBase(wb, { workspaceId }))
  const body = { records: Array.from({ length: 3 }, (_, at) => ({ id: `r${at}`, text: `record ${at}` })) }
  await wb.call(records.upsert, { params: bases[0]!.params, body })
  const callTool = async (name: string, args = {}) => JSON.parse((await stage.run(name, args)).content)
  const listed = await callTool('list_kbs')
  expect([listed.knowledgeBases.length, listed.truncated, listed.total]).toEqual([25, true, 27])
  const summed = await callTool('summarize_kb')
  expect([summed.summaries.length, summed.truncated, summed.total]).toEqual([25, true, 27])
  const { results } = await callTool('search_kb', { query: 'record' })
  expect(results[0]).toMatchObject({ documentId: null, sourceFilename: null, chunkId: expect.any(String) })
})
