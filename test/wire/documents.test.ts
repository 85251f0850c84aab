import { describe, expect, test } from 'vitest'
import { anyText } from './exactly.ts'
import { ingest, makeKnowledgeBase, makePlace, makeVectorPlace } from './fixtures.ts'
import { file, form, text } from './forms.ts'
import { past, type Row, useServer } from './harness.ts'
import { document, notUuid, unknownId } from './shapes.ts'

const wire = useServer()

describe('registering documents', () => {
  test('POST stores the given fields and sets the others to null', async () => {
    const { kb, workspaceId, knowledgeBaseId } = await makePlace(wire, { kind: 'mock' })
    const sent = { sourceFilename: 'notes/a.md', metadata: { team: 'wing' } }
    await wire.exchange(
      `POST ${kb}/documents`,
      sent,
      201,
      document({ workspaceId, knowledgeBaseId, status: 'pending', ...sent }),
    )
    await wire.exchange(`POST ${kb}/documents`, {}, 201, document({ workspaceId, knowledgeBaseId }))
  })

  test('stores and returns every field that callers can set; visibleTo is sorted and unique', async () => {
    const { kb } = await makePlace(wire)
    const chosen = {
      documentId: '4f1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d74',
      sourceDocId: 'doc-7',
      sourceFilename: 'a.txt',
      fileType: 'text/plain',
      fileSize: 12,
      contentHash: 'abc',
      chunkTotal: 3,
      ingestedAt: '2026-04-22T10:11:12.345Z',
      status: 'failed',
      errorMessage: 'said so',
      metadata: { text: 'a', number: 1.5, flag: false, nothing: null },
      visibleTo: ['*'],
      ownerPrincipalId: 'ann',
    }
    const sent = { ...chosen, visibleTo: ['*', '*'] }
    const created = await wire.exchange(`POST ${kb}/documents`, sent, 201, document(chosen))
    await wire.exchange(`GET ${kb}/documents/${chosen.documentId}`, undefined, 200, created)
    await wire.exchange(`GET ${kb}/documents`, undefined, 200, { items: [created], nextCursor: null })
    const sorted = { visibleTo: ['ann', 'bob'] }
    await wire.exchange(`POST ${kb}/documents`, { visibleTo: ['bob', 'ann', 'bob'] }, 201, document(sorted))
  })

  test('registers a document without chunks and without a duplicate check', async () => {
    const { kb } = await makePlace(wire)
    const body = { contentHash: 'same', sourceFilename: 'same.txt' }
    const documentId = await wire.make(`${kb}/documents`, body, 'documentId')
    await wire.make(`${kb}/documents`, body, 'documentId')
    await wire.exchange(`GET ${kb}/documents/${documentId}/chunks`, undefined, 200, [])
  })

  test('S7.3-conflict: an existing ID in the knowledge base is 409', async () => {
    const { kb } = await makePlace(wire)
    const documentId = await wire.make(`${kb}/documents`, {}, 'documentId')
    await wire.refused(`POST ${kb}/documents`, { json: { documentId } }, 409, 'conflict')
  })

  test.each([
    ['nested', { a: { b: 1 } }],
    ['array', { a: [1] }],
    ['reserved knowledgeBaseId', { knowledgeBaseId: 'x' }],
    ['reserved documentId', { documentId: 'x' }],
    ['reserved chunkIndex', { chunkIndex: 0 }],
    ['reserved chunkText', { chunkText: 'x' }],
    ['reserved visible_to', { visible_to: '*' }],
    ['reserved chunker.id', { 'chunker.id': 'x' }],
    ['reserved chunk.section', { 'chunk.section': 'x' }],
  ])('S7.3-invalid_metadata S7.3-07: POST, PATCH and ingest reject %s metadata', async (_, metadata) => {
    const { kb } = await makePlace(wire)
    const path = `${kb}/documents/${await wire.make(`${kb}/documents`, {}, 'documentId')}`
    const before = await wire.items(`${kb}/documents`)
    await wire.refused(`POST ${kb}/documents`, { json: { metadata } }, 400, 'invalid_metadata', /metadata/)
    await wire.refused(`PATCH ${path}`, { json: { metadata } }, 400, 'invalid_metadata', /metadata/)
    await wire.refused(
      `POST ${kb}/ingest`,
      { json: { text: 'x', metadata } },
      400,
      'invalid_metadata',
      /metadata/,
    )
    expect(await wire.items(`${kb}/documents`)).toEqual(before)
  })

  test.each([['flat'], [5], [['a']]])(
    'S7.3-invalid_metadata S7.3-07: rejects metadata %j, which is not an object',
    async metadata => {
      const { kb } = await makePlace(wire)
      await wire.refused(`POST ${kb}/documents`, { json: { metadata } }, 400, 'invalid_metadata', /^metadata/)
    },
  )

  test.each([[[]], ['*'], ['ann'], [[1]], [['']], [{}]])('rejects visibleTo %j', async visibleTo => {
    const { kb } = await makePlace(wire)
    await wire.refused(
      `POST ${kb}/documents`,
      { json: { visibleTo } },
      400,
      'invalid_visible_to',
      /^visibleTo/,
    )
    await wire.refused(`POST ${kb}/ingest`, { json: { text: 'x', visibleTo } }, 400, 'invalid_visible_to')
    expect(await wire.items(`${kb}/documents`)).toEqual([])
  })

  test.each([
    ['documentId', notUuid],
    ['status', 'done'],
    ['fileSize', -1],
    ['chunkTotal', 0.5],
    ['ingestedAt', '2026-04-22'],
    ['ingestedAt', '2026-04-22T10:11:12.345+02:00'],
    ['sourceFilename', 5],
    ['errorMessage', {}],
  ])('S7.3-13: rejects %s = %j by name', async (field, value) => {
    const { kb } = await makePlace(wire)
    const json = { [field]: value }
    await wire.refused(`POST ${kb}/documents`, { json }, 400, 'validation_error', new RegExp(`^${field}: `))
  })

  test.each([
    ['sourceFilename', 4_096],
    ['sourceDocId', 1_000],
    ['fileType', 1_000],
    ['contentHash', 1_000],
    ['errorMessage', 10_000],
    ['ownerPrincipalId', 255],
  ])('limits %s to %i characters', async (field, max) => {
    const { kb } = await makePlace(wire)
    const json = { [field]: 'a'.repeat(max) }
    await wire.exchange(`POST ${kb}/documents`, json, 201, document(json))
    const longer = { json: { [field]: 'a'.repeat(max + 1) } }
    await wire.refused(`POST ${kb}/documents`, longer, 400, 'validation_error', new RegExp(`^${field}: `))
  })
})

describe('changing documents', () => {
  test('PATCH replaces the metadata and leaves other fields unchanged', async () => {
    const { kb } = await makePlace(wire, { kind: 'mock' })
    const body = { sourceFilename: 'a.md', metadata: { team: 'wing', year: 1959 } }
    const path = `${kb}/documents/${await wire.make(`${kb}/documents`, body, 'documentId')}`
    const before = await wire.get(path)
    await past(before.updatedAt)
    const patch = { metadata: { team: 'tail' } }
    const after = await wire.exchange(
      `PATCH ${path}`,
      patch,
      200,
      document({ ...before, ...patch, updatedAt: document().updatedAt }),
    )
    expect(String(after.updatedAt) > String(before.updatedAt)).toBe(true)
    await past(after.updatedAt)
    const touched = await wire.exchange(`PATCH ${path}`, {}, 200, {
      ...after,
      updatedAt: document().updatedAt,
    })
    expect(String(touched.updatedAt) > String(after.updatedAt)).toBe(true)
  })

  test('null clears a field; the ID is ignored and named in a header', async () => {
    const { kb } = await makePlace(wire)
    const body = { sourceDocId: 'a', fileSize: 1, visibleTo: ['*'], ownerPrincipalId: 'ann' }
    const documentId = await wire.make(`${kb}/documents`, body, 'documentId')
    const json = {
      sourceDocId: null,
      fileSize: null,
      visibleTo: null,
      ownerPrincipalId: null,
      documentId: unknownId,
    }
    const reply = await wire.send(`PATCH ${kb}/documents/${documentId}`, { json })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.headers['x-workbase-ignored']).toBe('documentId')
    expect(reply.body).toMatchObject({ documentId, sourceDocId: null, fileSize: null, visibleTo: null })
  })

  test('a new visibleTo is applied to the chunks', async () => {
    const { kb } = await makePlace(wire)
    const path = `${kb}/documents/${await ingest(wire, kb, { text: 'A passage.' })}`
    expect((await chunks(path))[0]!.payload).not.toHaveProperty('visible_to')
    expect((await wire.send(`PATCH ${path}`, { json: { visibleTo: ['bob', 'ann'] } })).status).toBe(200)
    expect((await chunks(path))[0]!.payload).toHaveProperty('visible_to', ['ann', 'bob'])
  })
})

test('new metadata replaces the metadata of the chunks completely', async () => {
  const { kb } = await makePlace(wire)
  const body = { text: 'A passage.', metadata: { team: 'wing', year: 1959 } }
  const path = `${kb}/documents/${await ingest(wire, kb, body)}`
  expect((await wire.send(`PATCH ${path}`, { json: { metadata: { team: 'tail' } } })).status).toBe(200)
  const [chunk] = await chunks(path)
  expect(chunk!.payload).toMatchObject({ team: 'tail', chunkText: 'A passage.' })
  expect(chunk!.payload).not.toHaveProperty('year')
  const hits = (filter: object) => wire.send(`POST ${kb}/search`, { json: { text: 'passage', filter } })
  expect((await hits({ team: 'wing' })).body).toEqual([])
  expect((await hits({ team: 'tail' })).body).toHaveLength(1)
})

test.each([[[]], ['*'], ['ann'], [[1]], [['']], [{}]])(
  'S7.3-invalid_visible_to S7.3-09: every route that accepts visibleTo rejects %j and changes nothing',
  async visibleTo => {
    const { kb } = await makePlace(wire)
    const path = `${kb}/documents/${await ingest(wire, kb, { text: 'A passage.', visibleTo: ['ann'] })}`
    const refused = (line: string, sent: object) =>
      wire.refused(line, sent, 400, 'invalid_visible_to', /^visibleTo/)
    await refused(`POST ${kb}/documents`, { json: { visibleTo } })
    await refused(`PATCH ${path}`, { json: { visibleTo } })
    await refused(`POST ${kb}/ingest`, { json: { text: 'x', visibleTo } })
    await refused(`POST ${kb}/ingest?async=true`, { json: { text: 'x', visibleTo } })
    if (visibleTo !== '*')
      await refused(`POST ${kb}/ingest/file`, form(file('x'), text('visibleTo', JSON.stringify(visibleTo))))
    expect(await wire.items(`${kb}/documents`)).toMatchObject([{ visibleTo: ['ann'] }])
    expect((await chunks(path))[0]!.payload).toHaveProperty('visible_to', ['ann'])
  },
)

describe('showing and deleting documents', () => {
  test('S7.3-document_not_found: an unknown ID is 404 for every method', async () => {
    const { kb } = await makePlace(wire)
    const path = `${kb}/documents/${unknownId}`
    const words = new RegExp(`^document '${unknownId}' not found$`)
    await wire.refused(`GET ${path}`, {}, 404, 'document_not_found', words)
    await wire.refused(`PATCH ${path}`, { json: {} }, 404, 'document_not_found')
    await wire.refused(`DELETE ${path}`, {}, 404, 'document_not_found')
    await wire.refused(`GET ${path}/chunks`, {}, 404, 'document_not_found')
  })

  test('S7.3-04 S7.3-document_not_found: IDs are unique within a knowledge base and can be reused in another', async () => {
    const { kb, workspace } = await makePlace(wire)
    const other = await makeKnowledgeBase(wire, workspace)
    const documentId = await ingest(wire, kb, { text: 'Mine alone.' })
    for (const line of [`GET`, `DELETE`])
      await wire.refused(`${line} ${other}/documents/${documentId}`, {}, 404, 'document_not_found')
    await wire.refused(`PATCH ${other}/documents/${documentId}`, { json: {} }, 404, 'document_not_found')
    await wire.refused(`GET ${other}/documents/${documentId}/chunks`, {}, 404, 'document_not_found')
    await wire.exchange(`POST ${other}/documents`, { documentId }, 201, document({ documentId }))
    await wire.exchange(`DELETE ${other}/documents/${documentId}`, undefined, 204, undefined)
    expect(await ingest(wire, other, { text: 'Mine alone.', documentId })).toBe(documentId)
    await wire.exchange(`DELETE ${other}/documents/${documentId}`, undefined, 204, undefined)
    await wire.get(`${kb}/documents/${documentId}`)
    expect(await chunks(`${kb}/documents/${documentId}`)).toMatchObject([{ text: 'Mine alone.' }])
  })

  test('rejects IDs that are not UUIDs', async () => {
    const { kb } = await makePlace(wire)
    await wire.refused(`GET ${kb}/documents/${notUuid}`, {}, 400, 'validation_error', /^documentId: /)
  })

  test('DELETE returns 204 and removes the document, its chunks and its hits', async () => {
    const { kb } = await makePlace(wire)
    const documentId = await ingest(wire, kb, { text: 'Vanishing hydrofoil.' })
    const search = { text: 'hydrofoil', lexicalWeight: 1 }
    expect((await wire.send(`POST ${kb}/search`, { json: search })).body).toHaveLength(1)
    await wire.exchange(`DELETE ${kb}/documents/${documentId}`, undefined, 204, undefined)
    await wire.refused(`GET ${kb}/documents/${documentId}`, {}, 404, 'document_not_found')
    await wire.refused(`GET ${kb}/documents/${documentId}/chunks`, {}, 404, 'document_not_found')
    await wire.exchange(`POST ${kb}/search`, search, 200, [])
  })

  test('bulk delete handles each ID once, in order, and returns 200 despite failures', async () => {
    const { kb } = await makePlace(wire)
    const first = await ingest(wire, kb, { text: 'First to go.' })
    const second = await wire.make(`${kb}/documents`, {}, 'documentId')
    const kept = await wire.make(`${kb}/documents`, {}, 'documentId')
    const missing = { documentId: unknownId, code: 'not_found', message: anyText }
    await wire.exchange(
      `POST ${kb}/documents/bulk-delete`,
      { documentIds: [second, unknownId, first, second] },
      200,
      {
        deleted: [second, first],
        failed: [missing],
      },
    )
    expect((await wire.items(`${kb}/documents`)).map(item => item.documentId)).toEqual([kept])
    await wire.exchange(`POST ${kb}/documents/bulk-delete`, { documentIds: [unknownId] }, 200, {
      deleted: [],
      failed: [missing],
    })
  })

  test.each([[[]], [[notUuid]], ['x'], [undefined]])('bulk delete rejects %j', async documentIds => {
    const { kb } = await makePlace(wire)
    const json = { documentIds }
    await wire.refused(`POST ${kb}/documents/bulk-delete`, { json }, 400, 'validation_error', /^documentIds/)
  })
})

describe('chunks of a document', () => {
  const text = 'alpha beta gamma delta epsilon'
  const chunker = { maxChars: 20, minChars: 0, overlapChars: 0 }

  test('returns an array in order, each chunk with the reserved keys and the metadata', async () => {
    const { kb, knowledgeBaseId } = await makePlace(wire, { kind: 'mock' })
    const documentId = await ingest(wire, kb, { text, chunker, metadata: { team: 'wing', year: 1959 } })
    const payload = {
      knowledgeBaseId,
      documentId,
      'chunker.id': 'recursive-char:1',
      team: 'wing',
      year: 1959,
    }
    const chunk = (chunkIndex: number, chunkText: string) => ({
      id: `${documentId}:${chunkIndex}`,
      chunkIndex,
      text: chunkText,
      payload: { ...payload, chunkIndex, chunkText },
    })
    await wire.exchange(`GET ${kb}/documents/${documentId}/chunks`, undefined, 200, [
      chunk(0, 'alpha beta gamma '),
      chunk(1, 'delta epsilon'),
    ])
  })

  test('paginates with limit and X-Next-Cursor', async () => {
    const { kb } = await makePlace(wire, { kind: 'mock' })
    const documentId = await ingest(wire, kb, { text, chunker: { ...chunker, maxChars: 7 } })
    const path = `${kb}/documents/${documentId}/chunks`
    const whole = await chunks(`${kb}/documents/${documentId}`)
    expect(whole.length).toBeGreaterThan(3)
    const seen: Row[] = []
    let cursor: string | undefined
    do {
      const reply = await wire.send(
        `GET ${path}?limit=1${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
      )
      expect(reply.body).toHaveLength(1)
      seen.push(...(reply.body as Row[]))
      cursor = reply.headers['x-next-cursor']
    } while (cursor && seen.length <= whole.length)
    expect(seen).toEqual(whole)
  })

  test('returns all chunks of a long document, a thousand per page', async () => {
    const { kb } = await makePlace(wire, { kind: 'mock' })
    const words = Array.from({ length: 2_500 }, (_, at) => `w${String(at).padStart(6, '0')} `).join('')
    const small = { maxChars: 8, minChars: 0, overlapChars: 0 }
    const path = `${kb}/documents/${await ingest(wire, kb, { text: words, chunker: small })}`
    const sizes: number[] = []
    const seen: unknown[] = []
    let query = ''
    do {
      const reply = await wire.send(`GET ${path}/chunks${query}`)
      const page = reply.body as Row[]
      sizes.push(page.length)
      seen.push(...page.map(chunk => chunk.chunkIndex))
      const cursor = reply.headers['x-next-cursor']
      query = cursor ? `?cursor=${encodeURIComponent(cursor)}` : ''
    } while (query && sizes.length < 5)
    expect(sizes).toEqual([1_000, 1_000, 500])
    expect(seen).toEqual(Array.from({ length: 2_500 }, (_, at) => at))
    await wire.refused(`GET ${path}/chunks?cursor=x`, {}, 400, 'invalid_cursor')
  })

  test('omits a record whose payload is not a document chunk', async () => {
    const { kb } = await makeVectorPlace(wire)
    const documentId = await wire.make(`${kb}/documents`, {}, 'documentId')
    const records = [{ id: `${documentId}:0`, vector: [1, 0, 0] }]
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 1 })
    await wire.exchange(`GET ${kb}/documents/${documentId}/chunks`, undefined, 200, [])
  })
})

async function chunks(path: string): Promise<{ payload: Row; [field: string]: unknown }[]> {
  const reply = await wire.send(`GET ${path}/chunks`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body as { payload: Row }[]
}
