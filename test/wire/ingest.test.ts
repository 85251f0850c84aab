import { describe, expect, test } from 'vitest'
import { anyText, count, exactly, isoMs } from './exactly.ts'
import { ingest, makeKnowledgeBase, makePlace, makeWorkspace } from './fixtures.ts'
import { type Reply, type Row, useServer } from './harness.ts'
import { document, failure, notUuid, unknownId } from './shapes.ts'

const wire = useServer()

/** SHA-256 of `hello world`. */
const helloHash = 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9'
const ready = { status: 'ready', ingestedAt: isoMs }

describe('ingesting one text', () => {
  test('returns 201 with the document and its chunk count, without a remote query', async () => {
    const { kb, workspaceId, knowledgeBaseId } = await makePlace(wire, { kind: 'mock' })
    const done = await wire.exchange(`POST ${kb}/ingest`, { text: 'hello world' }, 201, {
      document: document({ workspaceId, knowledgeBaseId, contentHash: helloHash, chunkTotal: 1, ...ready }),
      chunks: 1,
      astraQueries: [],
    })
    const stored = done.document as Row
    await wire.exchange(`GET ${kb}/documents/${stored.documentId}`, undefined, 200, stored)
  })

  test('stores the given fields and always computes the hash', async () => {
    const { kb } = await makePlace(wire)
    const about = {
      documentId: '5a1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d75',
      sourceDocId: '184',
      sourceFilename: 'cran/184.txt',
      fileType: 'text/plain',
      fileSize: 4711,
      metadata: { title: 'similarity laws', year: 1959, checked: true, note: null },
      visibleTo: ['*'],
      ownerPrincipalId: 'ann',
    }
    const sent = { ...about, text: 'hello world', contentHash: 'made up', visibleTo: ['*', '*'] }
    await wire.exchange(`POST ${kb}/ingest`, sent, 201, {
      document: document({ ...about, contentHash: helloHash, chunkTotal: 1, ...ready }),
      chunks: 1,
      astraQueries: [],
    })
    await wire.exchange(`POST ${kb}/ingest?async=false`, { text: 'not later' }, 201, {
      document: document({ contentHash: anyText, chunkTotal: 1, ...ready }),
      chunks: 1,
      astraQueries: [],
    })
  })

  test('accepts text that is only white space', async () => {
    const { kb } = await makePlace(wire)
    await wire.exchange(`POST ${kb}/ingest`, { text: ' \n\t ' }, 201, {
      document: document({ contentHash: anyText, chunkTotal: count, ...ready }),
      chunks: count,
      astraQueries: [],
    })
  })

  test.each([
    ['text', {}],
    ['text', { text: '' }],
    ['text', { text: null }],
    ['text', { text: ['a'] }],
    ['documentId', { text: 'x', documentId: notUuid }],
    ['fileSize', { text: 'x', fileSize: -1 }],
    ['sourceFilename', { text: 'x', sourceFilename: 5 }],
    ['overwriteOnNameConflict', { text: 'x', overwriteOnNameConflict: 'true' }],
    ['chunker.maxChars', { text: 'x', chunker: { maxChars: 0 } }],
    ['chunker.minChars', { text: 'x', chunker: { minChars: -1 } }],
    ['chunker.overlapChars', { text: 'x', chunker: { overlapChars: '1' } }],
    ['chunker', { text: 'x', chunker: 'recursive' }],
  ])('S7.3-13 S7.3-validation_error: rejects %s by name and stores nothing', async (field, json) => {
    const { kb } = await makePlace(wire)
    const words = new RegExp(`^${field.replace('.', '\\.')}: `)
    await wire.refused(`POST ${kb}/ingest`, { json }, 400, 'validation_error', words)
    expect(await wire.items(`${kb}/documents`)).toEqual([])
  })

  test('accepts only true or false for async', async () => {
    const { kb } = await makePlace(wire)
    const json = { text: 'x' }
    await wire.refused(`POST ${kb}/ingest?async=maybe`, { json }, 400, 'validation_error', /async/)
    expect(await wire.items(`${kb}/documents`)).toEqual([])
  })

  test('rejects an overlap as long as the chunk as an invalid chunker', async () => {
    const { kb } = await makePlace(wire, { kind: 'mock' })
    const json = { text: 'x', chunker: { maxChars: 10, minChars: 0, overlapChars: 10 } }
    await wire.refused(`POST ${kb}/ingest`, { json }, 400, 'invalid_chunker', /overlapChars/)
    const minimum = { text: 'x', chunker: { maxChars: 10, minChars: 10, overlapChars: 0 } }
    await wire.refused(`POST ${kb}/ingest`, { json: minimum }, 400, 'invalid_chunker', /minChars/)
    await nothingHalfDone(kb)
  })

  test('rejects a chunking service with an unknown chunker, which can be stored', async () => {
    const workspace = await makeWorkspace(wire)
    const service = { name: 'fixed', engine: 'fixed', strategy: 'by-tokens', chunkUnit: 'tokens' }
    const chunkingServiceId = await wire.make(`${workspace}/chunking-services`, service, 'chunkingServiceId')
    const kb = await makeKnowledgeBase(wire, workspace, { chunkingServiceId })
    await wire.refused(`POST ${kb}/ingest`, { json: { text: 'x' } }, 400, 'invalid_chunker')
    await nothingHalfDone(kb)
  })
})

describe('duplicates and name conflicts', () => {
  test('an identical text is a duplicate, regardless of name, metadata and ID', async () => {
    const { kb } = await makePlace(wire)
    const first = await wire.send(`POST ${kb}/ingest`, {
      json: { text: 'Twice told.', sourceFilename: 'a.txt' },
    })
    const { document: existing } = first.body as { document: Row }
    for (const also of [
      {},
      { sourceFilename: 'b.txt' },
      { metadata: { other: 'yes' }, documentId: unknownId },
      { documentId: existing.documentId },
      { sourceFilename: 'a.txt', overwriteOnNameConflict: true },
    ])
      await wire.exchange(`POST ${kb}/ingest`, { text: 'Twice told.', ...also }, 200, {
        document: existing,
        outcome: 'duplicate',
      })
    expect(await wire.items(`${kb}/documents`)).toEqual([existing])
  })

  test('an identical text in another knowledge base is not a duplicate', async () => {
    const { kb, workspace } = await makePlace(wire)
    await ingest(wire, kb, { text: 'Shared.' })
    await ingest(wire, await makeKnowledgeBase(wire, workspace), { text: 'Shared.' })
  })

  test('another text with an existing name is a name conflict; names are compared exactly', async () => {
    const { kb } = await makePlace(wire)
    const first = await wire.send(`POST ${kb}/ingest`, { json: { text: 'One.', sourceFilename: 'a.txt' } })
    const { document: existing } = first.body as { document: Row }
    await wire.exchange(`POST ${kb}/ingest`, { text: 'Two.', sourceFilename: 'a.txt' }, 200, {
      document: existing,
      outcome: 'name_conflict',
    })
    await ingest(wire, kb, { text: 'Two.', sourceFilename: 'A.txt' })
    await ingest(wire, kb, { text: 'Three.', sourceFilename: '' })
    await ingest(wire, kb, { text: 'Four.', sourceFilename: '' })
    expect(await wire.items(`${kb}/documents`)).toHaveLength(4)
  })

  test('overwrite replaces the old document', async () => {
    const { kb } = await makePlace(wire)
    const old = await ingest(wire, kb, { text: 'About ornithopters.', sourceFilename: 'a.txt' })
    const json = { text: 'About autogyros.', sourceFilename: 'a.txt', overwriteOnNameConflict: true }
    const fresh = await ingest(wire, kb, json)
    expect(fresh).not.toBe(old)
    await wire.refused(`GET ${kb}/documents/${old}`, {}, 404, 'document_not_found')
    expect((await wire.items(`${kb}/documents`)).map(item => item.documentId)).toEqual([fresh])
    await wire.exchange(`POST ${kb}/search`, { text: 'ornithopters', lexicalWeight: 1 }, 200, [])
  })

  test('overwrite creates a document if none has the name', async () => {
    const { kb } = await makePlace(wire)
    await ingest(wire, kb, { text: 'Alone.', sourceFilename: 'a.txt', overwriteOnNameConflict: true })
    expect(await wire.items(`${kb}/documents`)).toHaveLength(1)
  })

  test('S7.3-conflict: an existing ID is 409, after the checks for duplicates and names, and no document is lost', async () => {
    const { kb } = await makePlace(wire)
    const documentId = await ingest(wire, kb, { text: 'Holder.', sourceFilename: 'a.txt' })
    await wire.refused(`POST ${kb}/ingest`, { json: { text: 'Other.', documentId } }, 409, 'conflict')
    const named = { text: 'Other.', documentId, sourceFilename: 'a.txt' }
    const conflict = await wire.send(`POST ${kb}/ingest`, { json: named })
    expect(conflict.body).toMatchObject({ outcome: 'name_conflict', document: { documentId } })
    const other = await ingest(wire, kb, { text: 'Second holder.' })
    const json = { ...named, documentId: other, overwriteOnNameConflict: true }
    await wire.refused(`POST ${kb}/ingest`, { json }, 409, 'conflict')
    expect((await wire.items(`${kb}/documents`)).map(item => item.documentId)).toEqual([documentId, other])
  })

  test('ten concurrent ingests of one text create one document', async () => {
    const { kb } = await makePlace(wire)
    const json = { text: 'Sent ten times at once.' }
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => wire.send(`POST ${kb}/ingest`, { json })),
    )
    expect(replies.map(reply => reply.status).sort()).toEqual([...Array(9).fill(200), 201])
    const ids = new Set(replies.map(reply => (reply.body as { document: Row }).document.documentId))
    expect(ids.size).toBe(1)
    expect(await wire.items(`${kb}/documents`)).toHaveLength(1)
  })

  test('a document that was registered without content counts in the name check', async () => {
    const { kb } = await makePlace(wire)
    const registered = await wire.make(`${kb}/documents`, { sourceFilename: 'known.txt' }, 'documentId')
    const reply = await wire.send(`POST ${kb}/ingest`, {
      json: { text: 'Known?', sourceFilename: 'known.txt' },
    })
    expect(reply.body).toMatchObject({ outcome: 'name_conflict', document: { documentId: registered } })
  })
})

describe('POST ingest/batch', () => {
  const headers = { 'content-type': 'application/x-ndjson' }

  test('S7.1-02: returns one outcome per line, in order, as a single ingest would', async () => {
    const { kb, workspaceId, knowledgeBaseId } = await makePlace(wire, { kind: 'mock' })
    const lines = [
      JSON.stringify({ text: 'hello world', sourceFilename: 'a.txt' }),
      JSON.stringify({ text: '' }),
      '{"text": ',
      JSON.stringify({ text: 'hello world' }),
      JSON.stringify({ text: 'another', sourceFilename: 'a.txt' }),
      JSON.stringify({ text: 'nested', metadata: { a: {} } }),
      JSON.stringify({ text: 'last one' }),
    ]
    const reply = await wire.send(`POST ${kb}/ingest/batch`, { raw: `${lines.join('\n')}\n`, headers })
    const outcomes = outcomesOf(reply)
    const stored = { workspaceId, knowledgeBaseId, chunkTotal: 1, ...ready }
    const first = document({ ...stored, sourceFilename: 'a.txt', contentHash: helloHash })
    exactly(outcomes, [
      { line: 1, status: 201, document: first, chunks: 1, astraQueries: [] },
      { line: 2, status: 400, ...failure('validation_error') },
      { line: 3, status: 400, ...failure('validation_error') },
      { line: 4, status: 200, document: first, outcome: 'duplicate' },
      { line: 5, status: 200, document: first, outcome: 'name_conflict' },
      { line: 6, status: 400, ...failure('invalid_metadata') },
      {
        line: 7,
        status: 201,
        document: document({ ...stored, contentHash: anyText }),
        chunks: 1,
        astraQueries: [],
      },
    ])
    expect((outcomes[1]!.error as Row).message).toMatch(/^text: /)
    expect(await wire.items(`${kb}/documents`)).toHaveLength(2)
  })

  test('does not require a newline at the end, and returns 300 lines in order', async () => {
    const { kb } = await makePlace(wire)
    const raw = Array.from({ length: 300 }, (_, index) =>
      JSON.stringify({ text: `Passage number ${index}.` }),
    ).join('\n')
    const outcomes = outcomesOf(await wire.send(`POST ${kb}/ingest/batch`, { raw, headers }))
    expect(outcomes.map(outcome => outcome.line)).toEqual(
      Array.from({ length: 300 }, (_, index) => index + 1),
    )
    expect(new Set(outcomes.map(outcome => outcome.status))).toEqual(new Set([201]))
  })

  test('creates one document for identical lines', async () => {
    const { kb } = await makePlace(wire)
    const raw = `${JSON.stringify({ text: 'The same.' })}\n`.repeat(20)
    const outcomes = outcomesOf(await wire.send(`POST ${kb}/ingest/batch`, { raw, headers }))
    expect(outcomes.filter(outcome => outcome.status === 201)).toHaveLength(1)
    expect(outcomes.filter(outcome => outcome.outcome === 'duplicate')).toHaveLength(19)
    expect(await wire.items(`${kb}/documents`)).toHaveLength(1)
  })

  test('rejects other media types', async () => {
    const { kb } = await makePlace(wire)
    await wire.refused(`POST ${kb}/ingest/batch`, { json: { text: 'x' } }, 400, 'validation_error')
    await wire.refused(`POST ${kb}/ingest/batch`, { raw: '{"text":"x"}' }, 400, 'validation_error')
    expect(await wire.items(`${kb}/documents`)).toEqual([])
  })

  test('returns 404 for an unknown knowledge base or workspace', async () => {
    const workspace = await makeWorkspace(wire)
    const raw = '{"text":"x"}\n'
    const nowhere = `${workspace}/knowledge-bases/${unknownId}/ingest/batch`
    await wire.refused(`POST ${nowhere}`, { raw, headers }, 404, 'knowledge_base_not_found')
  })

  function outcomesOf(reply: Reply): Row[] {
    expect(reply.status, reply.text).toBe(200)
    expect(reply.headers['content-type']).toMatch(/^application\/x-ndjson/)
    return reply.text
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line) as Row)
  }
})

/** Checks that a rejected ingest leaves no document, or a failed one, but none in progress. */
async function nothingHalfDone(kb: string): Promise<void> {
  for (const item of await wire.items(`${kb}/documents`)) expect(item.status).toBe('failed')
}
