import { describe, expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { kb } from '../../src/contract/knowledge.ts'
import type { Outbound } from '../../src/models/outbound.ts'
import { sentence } from '../harness/fitted-spaces.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime, waitUntil } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'

const lexical = { lexicalWeight: 1 }

/** A provider with scripted responses: vectors of three numbers, or a failure. */
function provider() {
  const state = { failing: false, calls: 0, before: async () => {} }
  const outbound: Outbound = async (_url, init) => {
    state.calls++
    await state.before()
    if (state.failing) return new Response('out of order', { status: 400 })
    const { input } = JSON.parse(String(init.body)) as { input: string[] }
    const data = input.map((text, index) => ({ object: 'embedding', index, embedding: [1, text.length, 0] }))
    return Response.json({ object: 'list', model: 'm', data, usage: { prompt_tokens: 1, total_tokens: 1 } })
  }
  return { state, outbound }
}

/** A knowledge base that uses the provider. */
async function hostedBase(wb: TestRuntime): Promise<Base> {
  const { workspaceId } = await makeWorkspace(wb)
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, {
    provider: 'ollama',
    modelName: 'm',
  })
  return makeBase(wb, { workspaceId, embeddingServiceId })
}

/** Checks that documents, records and the index are consistent and contain exactly these texts. */
async function requireWhole(wb: TestRuntime, base: Base, texts: readonly string[]): Promise<void> {
  const ready = (await base.documents()).filter(({ status }) => status === 'ready')
  expect(ready).toHaveLength(texts.length)
  const { workspaceId } = base.params
  const file = storeFile(wb.dataDir)
  const collection = file.collection(workspaceId, base.name)!
  const stored = file.all('SELECT document_id AS id, text FROM record WHERE collection = ?', collection.id)
  expect(stored.map(({ text }) => text).sort()).toEqual([...texts].sort())
  expect(new Set(stored.map(({ id }) => id))).toEqual(new Set(ready.map(({ documentId }) => documentId)))
  expect(file.vectors(workspaceId, base.name).size).toBe(texts.length)
  expect(file.indexedRecords(collection.id)).toBe(texts.length)
}

describe('ingesting one text', () => {
  test('document, chunks and full text become visible together', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    let looking = true
    const looks: number[][] = []
    const watch = (async () => {
      const file = storeFile(wb.dataDir)
      while (looking) {
        looks.push(
          file.snapshot(() => {
            const { id } = file.collection(base.params.workspaceId, base.name)!
            const counts = ['documents', `record WHERE collection = ${id}`, `vec_${id}_0`].map(
              from => file.one(`SELECT count(*) AS n FROM ${from}`).n as number,
            )
            return [...counts, file.indexedRecords(id)]
          }),
        )
        await new Promise(setImmediate)
      }
    })()
    for (let n = 0; n < 20; n++) await base.ingest(sentence(n))
    looking = false
    await watch
    expect(looks.length).toBeGreaterThan(20)
    for (const [first, ...others] of looks) expect(others).toEqual([first, first, first])
  })

  test('white space only is ready with no chunks', async () => {
    const base = await makeBase(await open())
    const { document, chunks } = await base.ingest(' \n\t ')
    expect({ ...document, chunks }).toMatchObject({ status: 'ready', chunkTotal: 0, chunks: 0 })
    expect(await base.search('anything')).toEqual([])
    expect(await base.ingest(' \n\t ')).toMatchObject({ outcome: 'duplicate' })
  })

  const manual = `# Security\n\n## Revoke a key\n\n${'Keys of the team leave. '.repeat(20)}\n\n# Other\n`
  const revoke = 'Security > Revoke a key'

  test.each([
    ['a Markdown file', { sourceFilename: 'manual.md' }, ['Security', revoke, revoke]],
    ['Markdown by its type', { fileType: 'text/markdown' }, ['Security', revoke, revoke]],
    ['another file', { sourceFilename: 'manual.sh' }, [undefined, undefined, undefined]],
  ])('chunks of %s have the headings at their start, also after a change', async (_, fields, expected) => {
    const wb = await open()
    const base = await makeBase(wb)
    const { document } = await base.ingest(manual, { ...fields, chunker: { maxChars: 200, minChars: 10 } })
    const params = { ...base.params, documentId: document.documentId }
    const sections = async () =>
      (await wb.call(documents.chunks, { params })).map(({ payload }) => payload['chunk.section'])
    expect((await sections()).slice(0, 3)).toEqual(expected)
    await wb.call(documents.update, { params, body: { metadata: { year: 1958 } } })
    expect((await sections()).slice(0, 3)).toEqual(expected)
    const [hit] = await base.search('keys leave')
    expect(hit!.payload!['chunk.section']).toBe(expected[1])
  })

  test('the section of a chunk that repeats text is that of the new text', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const text = ['Revoke', 'Rotate', 'Expire']
      .map(name => `# ${name}\n\n${`${name} a key. `.repeat(9)}`)
      .join('\n\n')
    const { document } = await base.ingest(text, {
      fileType: 'text/markdown',
      chunker: { maxChars: 210, minChars: 10, overlapChars: 60 },
    })
    const params = { ...base.params, documentId: document.documentId }
    const chunks = await wb.call(documents.chunks, { params })
    expect(chunks[1]!.text).toMatch(/^Revoke a key\.[^#]*# Rotate/)
    expect(chunks.map(({ payload }) => payload['chunk.section'])).toEqual(['Revoke', 'Rotate', 'Expire'])
  })

  test('a job stores the headings of chunks too', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const body = { text: manual, fileType: 'text/markdown' }
    await wb.send(`POST ${base.path}/ingest?async=true`, body)
    await waitUntil(async () => (await base.documents())[0]!.status === 'ready')
    const [hit] = await base.search('keys leave')
    expect(hit!.payload!['chunk.section']).toBe('Security')
  })

  test('metadata and visibleTo are on every chunk, and reserved keys are set by the runtime', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const text = Array.from({ length: 60 }, (_, n) => sentence(n)).join(' ')
    const { document } = await base.ingest(text, {
      metadata: { title: 'Runs', year: 1958, checked: true, remark: null },
      visibleTo: ['zoe', 'ann', 'zoe'],
    })
    const params = { ...base.params, documentId: document.documentId }
    const chunks = await wb.call(documents.chunks, { params })
    expect(chunks.length).toBeGreaterThan(2)
    chunks.forEach((chunk, chunkIndex) => {
      expect(chunk.payload).toEqual({
        title: 'Runs',
        year: 1958,
        checked: true,
        remark: null,
        visible_to: ['ann', 'zoe'],
        knowledgeBaseId: base.params.knowledgeBaseId,
        documentId: document.documentId,
        chunkIndex,
        'chunker.id': 'sentence:1',
        chunkText: chunk.text,
      })
    })
  })

  test.each([
    [{ maxChars: 100, overlapChars: 100 }, 'overlapChars'],
    [{ maxChars: 100, minChars: 100 }, 'minChars'],
  ])(
    'an invalid chunker override is invalid_chunker and keeps the document as failed: %j',
    async (chunker, option) => {
      const wb = await open()
      const base = await makeBase(wb)
      await expect(base.ingest('Some text.', { chunker })).rejects.toMatchObject({
        code: 'invalid_chunker',
        message: expect.stringContaining(option),
      })
      const [document] = await base.documents()
      expect(document).toMatchObject({ status: 'failed', chunkTotal: null, ingestedAt: null })
      expect(document!.errorMessage).toContain(option)
      await requireWhole(wb, base, [])
      expect((await base.ingest('Some text.')).document.status).toBe('ready')
    },
  )

  test('S7.3-conflict: an existing ID is rejected without a change', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { document } = await base.ingest('The first.', { sourceFilename: 'a.md' })
    const before = storeFile(wb.dataDir).dump()
    const { documentId } = document
    for (const fields of [
      { documentId },
      { documentId, sourceFilename: 'a.md', overwriteOnNameConflict: true },
    ])
      await expect(base.ingest('The second.', fields)).rejects.toMatchObject({ code: 'conflict' })
    expect(storeFile(wb.dataDir).dump()).toBe(before)
  })

  test('S7.3-conflict: only one of two concurrent texts gets an ID', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const documentId = '5e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1'
    const outcomes = await Promise.allSettled([
      base.ingest('The first.', { documentId }),
      base.ingest('The second.', { documentId }),
    ])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'conflict' },
    })
    expect(await base.documents()).toHaveLength(1)
  })
})

describe('duplicates and name conflicts', () => {
  test.each([2, 20])(
    '%i concurrent ingests of one text create one document, and the others are duplicates of it',
    async count => {
      const wb = await open()
      const base = await makeBase(wb)
      const outcomes = await Promise.all(
        Array.from({ length: count }, (_, n) => base.ingest('One text.', { sourceFilename: `${n}.md` })),
      )
      const made = outcomes.filter(({ outcome }) => outcome === undefined)
      expect(made).toHaveLength(1)
      const { documentId } = made[0]!.document
      for (const { document, outcome } of outcomes.filter(one => one !== made[0]))
        expect({ outcome, id: document.documentId }).toEqual({ outcome: 'duplicate', id: documentId })
      await requireWhole(wb, base, ['One text.'])
    },
  )

  test('concurrent ingests of one text in two runtimes create one document', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const other = await open({ dataDir: wb.dataDir, threads: true })
    const { params } = base
    const texts = Array.from({ length: 10 }, (_, n) => sentence(n))
    const outcomes = await Promise.all(
      texts.flatMap(text => [base.ingest(text), other.call(documents.ingest, { params, body: { text } })]),
    )
    expect(outcomes.filter(one => 'outcome' in one && one.outcome === 'duplicate')).toHaveLength(10)
    await requireWhole(wb, base, texts)
  })

  test('S1-07: a text of another workspace is not a duplicate, even with the same knowledge base ID', async () => {
    const wb = await open()
    const theirs = await makeBase(wb)
    const secret = await theirs.ingest('A secret text.', { sourceFilename: 'secret.md' })
    const { knowledgeBaseId } = theirs.params
    const mine = await makeBase(wb, { knowledgeBaseId })
    expect(mine.params.workspaceId).not.toBe(theirs.params.workspaceId)
    const probe = await mine.ingest('A secret text.')
    expect(probe.outcome).toBeUndefined()
    expect(probe.document.documentId).not.toBe(secret.document.documentId)
    const named = await mine.ingest('Another text.', { sourceFilename: 'secret.md' })
    expect(named.outcome).toBeUndefined()
    expect(await theirs.documents()).toEqual([secret.document])
  })

  test('another text with an existing name is a name conflict and changes nothing', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { document } = await base.ingest('Old.', { sourceFilename: 'a.md' })
    const before = storeFile(wb.dataDir).dump()
    expect(await base.ingest('New.', { sourceFilename: 'a.md' })).toEqual({
      document,
      outcome: 'name_conflict',
    })
    expect(storeFile(wb.dataDir).dump()).toBe(before)
  })

  test('an overwrite replaces the document in one step', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const old = await base.ingest('Old words about kites.', { sourceFilename: 'a.md' })
    const counts: unknown[] = []
    let looking = true
    const watch = (async () => {
      const file = storeFile(wb.dataDir)
      while (looking) {
        counts.push(
          file.snapshot(() =>
            file.one('SELECT (SELECT count(*) FROM documents) AS d, (SELECT count(*) FROM record) AS r'),
          ),
        )
        await new Promise(setImmediate)
      }
    })()
    for (let n = 0; n < 10; n++)
      await base.ingest(`New words about rockets, ${n}.`, {
        sourceFilename: 'a.md',
        overwriteOnNameConflict: true,
      })
    looking = false
    await watch
    expect(new Set(counts.map(row => JSON.stringify(row)))).toEqual(new Set(['{"d":1,"r":1}']))
    await requireWhole(wb, base, ['New words about rockets, 9.'])
    expect(await base.search('kites', lexical)).toEqual([])
    const params = { ...base.params, documentId: old.document.documentId }
    await expect(wb.call(documents.show, { params })).rejects.toMatchObject({ code: 'document_not_found' })
  })

  test.each([
    ['onto a document', true],
    ['onto nothing', false],
  ])('twenty concurrent overwrites of one name leave one complete document: %s', async (_, isThere) => {
    const wb = await open()
    const base = await makeBase(wb)
    if (isThere) await base.ingest('Old.', { sourceFilename: 'a.md' })
    const texts = Array.from({ length: 20 }, (_, n) => sentence(n))
    const overwrite = { sourceFilename: 'a.md', overwriteOnNameConflict: true }
    const outcomes = await Promise.all(texts.map(text => base.ingest(text, overwrite)))
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(Array(20).fill(undefined))
    const [left, ...others] = await base.documents()
    expect(others).toEqual([])
    const at = outcomes.findIndex(({ document }) => document.documentId === left!.documentId)
    await requireWhole(wb, base, [texts[at]!])
  })

  test('only one of twenty concurrent texts gets a name', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const texts = Array.from({ length: 20 }, (_, n) => sentence(n))
    const outcomes = await Promise.all(texts.map(text => base.ingest(text, { sourceFilename: 'a.md' })))
    expect(outcomes.filter(({ outcome }) => outcome === 'name_conflict')).toHaveLength(19)
    expect(await base.documents()).toHaveLength(1)
  })

  test('a text that loses its name is not embedded again', async () => {
    const { state, outbound } = provider()
    const wb = await open({ outbound })
    const base = await hostedBase(wb)
    let first = true
    state.before = async () => {
      if (!first) return
      first = false
      await base.ingest('The quicker one.', { sourceFilename: 'a.md' })
    }
    const slow = await base.ingest('The slower one.', {
      sourceFilename: 'a.md',
      overwriteOnNameConflict: true,
    })
    expect(slow.outcome).toBeUndefined()
    expect(state.calls).toBe(2)
    await requireWhole(wb, base, ['The slower one.'])
  })
})

describe('a failed embedding', () => {
  test('keeps a failed document, which a successful retry with its name replaces', async () => {
    const { state, outbound } = provider()
    const wb = await open({ outbound })
    const base = await hostedBase(wb)
    state.failing = true
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(base.ingest('Some text.', { sourceFilename: 'a.md' })).rejects.toMatchObject({
        code: 'embedding_unavailable',
      })
    const failed = await base.documents()
    expect(failed).toMatchObject([
      { status: 'failed', sourceFilename: 'a.md', errorMessage: expect.any(String) },
    ])
    await requireWhole(wb, base, [])
    state.failing = false
    const { document } = await base.ingest('Some text.', { sourceFilename: 'a.md' })
    expect(await base.documents()).toEqual([document])
    await requireWhole(wb, base, ['Some text.'])
  })

  test('does not prevent a retry of the request with the same ID', async () => {
    const { state, outbound } = provider()
    const wb = await open({ outbound })
    const base = await hostedBase(wb)
    const documentId = '5e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1'
    state.failing = true
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(base.ingest('Some text.', { documentId })).rejects.toMatchObject({
        code: 'embedding_unavailable',
      })
    state.failing = false
    const { document } = await base.ingest('Some text.', { documentId })
    expect(document).toMatchObject({ documentId, status: 'ready' })
    expect(await base.documents()).toEqual([document])
  })

  test('of an overwrite keeps the old document unchanged', async () => {
    const { state, outbound } = provider()
    const wb = await open({ outbound })
    const base = await hostedBase(wb)
    const { document } = await base.ingest('Old.', { sourceFilename: 'a.md' })
    state.failing = true
    const overwrite = { sourceFilename: 'a.md', overwriteOnNameConflict: true }
    await expect(base.ingest('New.', overwrite)).rejects.toMatchObject({ code: 'embedding_unavailable' })
    expect((await base.documents()).filter(({ status }) => status === 'ready')).toEqual([document])
    await requireWhole(wb, base, ['Old.'])
    state.failing = false
    expect(await base.ingest('New.', overwrite)).toMatchObject({ chunks: 1 })
    await requireWhole(wb, base, ['New.'])
  })
})

describe('concurrent deletions and changes', () => {
  test('a knowledge base deleted during embedding is 404, and no data remains', async () => {
    const { state, outbound } = provider()
    const wb = await open({ outbound })
    const base = await hostedBase(wb)
    state.before = () => base.delete()
    await expect(base.ingest('Too late.')).rejects.toMatchObject({ code: 'knowledge_base_not_found' })
    const file = storeFile(wb.dataDir)
    expect(file.tablesContaining('Too late.')).toEqual([])
    expect(file.all('SELECT * FROM documents')).toEqual([])
  })

  test('a failure after the knowledge base was deleted leaves no orphaned document', async () => {
    const { state, outbound } = provider()
    const wb = await open({ outbound })
    const base = await hostedBase(wb)
    state.failing = true
    state.before = async () => {
      state.before = async () => {}
      await base.delete()
    }
    await expect(base.ingest('Too late.')).rejects.toThrow()
    expect(storeFile(wb.dataDir).all('SELECT * FROM documents')).toEqual([])
  })

  test('PATCH of a concurrently deleted document does not restore chunks', async () => {
    const late: { run?: () => Promise<unknown> } = {}
    const wb = await open({
      content: store => ({
        ...store,
        async read(...args) {
          const found = await store.read(...args)
          const { run } = late
          late.run = undefined
          await run?.()
          return found
        },
      }),
    })
    const base = await makeBase(wb)
    const { document } = await base.ingest('A text about gliders.')
    const params = { ...base.params, documentId: document.documentId }
    late.run = () => wb.call(documents.delete, { params, query: { permanently: 'true' } })
    await expect(
      wb.call(documents.update, { params, body: { metadata: { title: 'Gliders' } } }),
    ).rejects.toMatchObject({ code: 'document_not_found' })
    expect(await base.search('gliders')).toEqual([])
    expect(storeFile(wb.dataDir).tablesContaining('gliders')).toEqual([])
  })
})

describe('metadata that is too large for the number of chunks', () => {
  const metadata = { note: 'x'.repeat(60_000) }
  const text = 'The pump hums. '.repeat(1_200)
  const chunker = { maxChars: 15, minChars: 1, overlapChars: 0 }

  test('is rejected by ingest, and by a change that makes it larger', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const rejected = await wb.send(`POST ${base.path}/ingest`, { text, chunker, metadata })
    expect(rejected).toMatchObject({ status: 400, body: { error: { code: 'invalid_metadata' } } })
    expect((rejected.body.error as { message: string }).message).toMatch(/^metadata: each of the \d+ chunks/)
    const { document } = await base.ingest(text, { chunker, sourceFilename: 'notes.md' })
    const path = `${base.path}/documents/${document.documentId}`
    const larger = await wb.send(`PATCH ${path}`, { metadata })
    expect(larger).toMatchObject({ status: 400, body: { error: { code: 'invalid_metadata' } } })
    expect((await wb.send(`GET ${path}`)).body.metadata).toEqual({})
    expect((await wb.send(`PATCH ${path}`, { visibleTo: ['ann'] })).status).toBe(200)
  })
})

describe('changing a document', () => {
  test('metadata and visibleTo are applied to its chunks, and lexical search uses only the new title', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { document } = await base.ingest('A passage on flight.', {
      metadata: { title: 'Ornithopter', year: 1 },
    })
    await base.ingest('Another passage on flight.', { metadata: { title: 'Balloon' } })
    const params = { ...base.params, documentId: document.documentId }
    const before = await wb.call(documents.chunks, { params })
    await wb.call(documents.update, {
      params,
      body: { metadata: { title: 'Zeppelin', year: 2, place: 'Lake' }, visibleTo: ['ann'] },
    })
    expect(await wb.call(documents.chunks, { params })).toEqual([
      {
        ...before[0],
        payload: { ...before[0]!.payload, title: 'Zeppelin', year: 2, place: 'Lake', visible_to: ['ann'] },
      },
    ])
    expect(await base.search('ornithopter', lexical)).toEqual([])
    const found = await base.search('zeppelin', lexical)
    expect(found.map(({ payload }) => payload!.documentId)).toEqual([document.documentId])
    expect(await base.search('passage', { filter: { year: 2 } })).toHaveLength(1)
    await wb.call(documents.update, { params, body: { metadata: {}, visibleTo: null } })
    const [bare] = await wb.call(documents.chunks, { params })
    expect(Object.keys(bare!.payload).sort()).toEqual(
      ['chunkIndex', 'chunkText', 'chunker.id', 'documentId', 'knowledgeBaseId'].sort(),
    )
    expect(await base.search('zeppelin', lexical)).toEqual([])
  })

  test('a deleted document is not found by any search', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { document } = await base.ingest('A passage on gliders.')
    const params = { ...base.params, documentId: document.documentId }
    await wb.call(documents.delete, { params })
    for (const fields of [{}, lexical, { hybrid: false }])
      expect(await base.search('gliders', fields)).toEqual([])
    await requireWhole(wb, base, [])
    expect(await wb.call(kb.show, { params: base.params })).toMatchObject({ embedder: { chunks: 0 } })
    expect((await base.ingest('A passage on gliders.')).outcome).toBeUndefined()
  })
})
