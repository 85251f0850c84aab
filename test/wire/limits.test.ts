import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { Ingest } from '../../src/contract/documents.ts'
import { freshName, ingest, makePlace, makeVectorPlace, type Place } from './fixtures.ts'
import { type Sent, useServer } from './harness.ts'
import { unknownId } from './shapes.ts'

const wire = useServer()
vi.setConfig({ testTimeout: 120_000 })

const mb = 1_000_000
const json = { 'content-type': 'application/json' }
let vectors: Place
let texts: Place

beforeAll(async () => {
  vectors = await makeVectorPlace(wire)
  texts = await makePlace(wire, { kind: 'mock' })
})

/** A JSON body of an exact size, padded with white space, which does not count as content. */
function padded(value: unknown, bytes: number): Buffer {
  const body = Buffer.alloc(bytes, ' ')
  body.write(JSON.stringify(value))
  return body
}

/** A body with a declared length, and the same body in chunks without one. */
function bothWays(body: Buffer): [way: string, sent: Sent][] {
  const parts = Array.from({ length: Math.ceil(body.length / mb) }, (_, index) => {
    return body.subarray(index * mb, (index + 1) * mb)
  })
  return [
    ['declared', { raw: body, headers: json }],
    ['chunked', { raw: Readable.from(parts), headers: json }],
  ]
}

async function expectStatus(line: string, sent: Sent, status: number, about = ''): Promise<void> {
  const reply = await wire.send(line, sent)
  expect(reply.status, `${line} ${about} → ${reply.text.slice(0, 300)}`).toBe(status)
}

describe('size of a body in bytes', () => {
  test('S8-01: workspace routes accept 10,000,000 bytes, with a declared length and in chunks', async () => {
    for (const way of [0, 1]) {
      const [name, sent] = bothWays(padded({ name: freshName('large') }, 10 * mb))[way]!
      await expectStatus('POST /api/v1/workspaces', sent, 201, name)
    }
  })

  test('S8-01 S7.3-payload_too_large S7.1-04: workspace routes reject one byte more with 413 and change nothing', async () => {
    const routes: [line: string, value: unknown][] = [
      ['POST /api/v1/workspaces', { name: 'over' }],
      [`PATCH ${vectors.workspace}`, { name: 'over' }],
      [`POST ${vectors.workspace}/knowledge-bases`, { name: 'over' }],
      [`POST ${vectors.kb}/documents`, { sourceDocId: 'over' }],
      [`POST ${vectors.kb}/records`, { records: [{ id: 'over', vector: [1, 0, 0] }] }],
      [`POST ${vectors.kb}/search`, { vector: [1, 0, 0] }],
    ]
    for (const [line, value] of routes)
      for (const [, sent] of bothWays(padded(value, 10 * mb + 1)))
        await wire.refused(line, sent, 413, 'payload_too_large', /10,?000,?000|10 MB/)
    expect((await wire.items('/api/v1/workspaces?limit=200')).map(item => item.name)).not.toContain('over')
    expect(await wire.items(`${vectors.kb}/documents`)).toEqual([])
    await wire.exchange(`POST ${vectors.kb}/search`, { vector: [1, 0, 0] }, 200, [])
  })

  test('S8-02: single and batch ingest accept 50,000,000 bytes', async () => {
    const text = padded({ text: 'Fifty megabytes of care.' }, 50 * mb)
    await expectStatus(`POST ${texts.kb}/ingest`, { raw: text, headers: json }, 201)
    const headers = { 'content-type': 'application/x-ndjson' }
    const raw = padded({ text: 'Fifty megabytes in a line.' }, 50 * mb)
    await expectStatus(`POST ${texts.kb}/ingest/batch`, { raw, headers }, 200)
  })

  test('S8-02 S7.3-payload_too_large: ingest rejects one byte more with 413 and creates no document', async () => {
    const before = await wire.items(`${texts.kb}/documents`)
    for (const [, sent] of bothWays(padded({ text: 'Too much.' }, 50 * mb + 1)))
      await wire.refused(`POST ${texts.kb}/ingest`, sent, 413, 'payload_too_large', /50,?000,?000|50 MB/)
    expect(await wire.items(`${texts.kb}/documents`)).toEqual(before)
  })

  test('a batch with a declared length of one byte more is rejected with 413', async () => {
    const headers = { 'content-type': 'application/x-ndjson' }
    const raw = padded({ text: 'Too much.' }, 50 * mb + 1)
    await wire.refused(`POST ${texts.kb}/ingest/batch`, { raw, headers }, 413, 'payload_too_large')
  })

  test('a body is rejected as soon as it exceeds the limit, before it ends', async () => {
    const endless = new Readable({
      read() {
        this.push(Buffer.alloc(64 * 1024, ' '))
      },
    })
    const started = Date.now()
    await wire.refused('POST /api/v1/workspaces', { raw: endless, headers: json }, 413, 'payload_too_large')
    expect(Date.now() - started).toBeLessThan(20_000)
  })
})

describe('length of a text in UTF-16 units', () => {
  const glider = '🛩' // Two UTF-16 units.

  test('ingest accepts 20,000,000', async () => {
    const text = ' '.repeat(20 * mb)
    const chunker = { maxChars: 20 * mb, minChars: 0, overlapChars: 0 }
    const sent = { json: { text, chunker } }
    await expectStatus(`POST ${texts.kb}/ingest`, sent, 201)
    const hash = createHash('sha256').update(text).digest('hex')
    expect((await wire.items(`${texts.kb}/documents`)).map(item => item.contentHash)).toContain(hash)
  })

  test('S8-04: ingest rejects 20,000,001 and creates no document', async () => {
    const before = await wire.items(`${texts.kb}/documents`)
    const text = 'x'.repeat(20 * mb + 1)
    await wire.refused(`POST ${texts.kb}/ingest`, { json: { text } }, 400, 'validation_error', /^text: /)
    // Like a request, but without sending 40 MB.
    expect(Ingest.safeParse({ text: glider.repeat(10 * mb) }).success).toBe(true)
    expect(Ingest.safeParse({ text: `${glider.repeat(10 * mb)}x` }).success).toBe(false)
    expect(await wire.items(`${texts.kb}/documents`)).toEqual(before)
  })

  test('S8-04: search accepts 8,192', async () => {
    for (const text of ['x'.repeat(8_192), glider.repeat(4_096)])
      await expectStatus(`POST ${texts.kb}/search`, { json: { text } }, 200)
    for (const text of ['x'.repeat(8_193), `${glider.repeat(4_096)}x`])
      await wire.refused(`POST ${texts.kb}/search`, { json: { text } }, 400, 'validation_error', /^text: /)
  })

  test('S8-04: a record accepts 16,384', async () => {
    const put = (text: string): Sent => ({ json: { records: [{ id: 'long', text }] } })
    for (const text of ['x'.repeat(16_384), glider.repeat(8_192)])
      await expectStatus(`POST ${texts.kb}/records`, put(text), 200)
    for (const text of ['x'.repeat(16_385), `${glider.repeat(8_192)}x`])
      await wire.refused(
        `POST ${texts.kb}/records`,
        put(text),
        400,
        'validation_error',
        /^records\.0\.text: /,
      )
  })
})

test('S8-05: a vector has at most 16,384 numbers, in records and searches', async () => {
  const { kb } = await makeVectorPlace(wire, 16_384)
  const longest = [1, ...Array(16_383).fill(0)]
  const over = [...longest, 0]
  await wire.exchange(`POST ${kb}/records`, { records: [{ id: 'longest', vector: longest }] }, 200, {
    upserted: 1,
  })
  await expectStatus(`POST ${kb}/search`, { json: { vector: longest } }, 200)
  const records = [
    { id: 'fine', vector: longest },
    { id: 'over', vector: over },
  ]
  await wire.refused(
    `POST ${kb}/records`,
    { json: { records } },
    400,
    'validation_error',
    /^records\.1\.vector: /,
  )
  await wire.refused(`POST ${kb}/search`, { json: { vector: over } }, 400, 'validation_error', /^vector: /)
  const stored = (await wire.send(`POST ${kb}/search`, { json: { vector: longest } })).body
  expect(stored).toMatchObject([{ id: 'longest' }])
})

describe('number of items', () => {
  test('an upsert accepts 500 records', async () => {
    const { kb } = await makeVectorPlace(wire)
    const records = Array.from({ length: 501 }, (_, index) => ({ id: `r${index}`, vector: [1, index, 0] }))
    await wire.refused(`POST ${kb}/records`, { json: { records } }, 400, 'validation_error', /^records: /)
    await wire.exchange(`POST ${kb}/search`, { vector: [1, 0, 0] }, 200, [])
    await wire.exchange(`POST ${kb}/records`, { records: records.slice(1) }, 200, { upserted: 500 })
  })

  test('a bulk delete accepts 100 documents', async () => {
    const path = `POST ${vectors.kb}/documents/bulk-delete`
    const documentIds = Array.from({ length: 101 }, (_, index) => {
      return `${unknownId.slice(0, -3)}${String(index).padStart(3, '0')}`
    })
    await wire.refused(path, { json: { documentIds } }, 400, 'validation_error', /^documentIds: /)
    await expectStatus(path, { json: { documentIds: documentIds.slice(1) } }, 200)
  })

  test('topK is from 1 to 1,000', async () => {
    for (const topK of [1, 1_000])
      await expectStatus(`POST ${vectors.kb}/search`, { json: { vector: [1, 0, 0], topK } }, 200)
    for (const topK of [0, -1, 1_001, 1e15])
      await wire.refused(
        `POST ${vectors.kb}/search`,
        { json: { vector: [1, 0, 0], topK } },
        400,
        'validation_error',
        /^topK: /,
      )
  })

  test('a page has at most 1,000 chunks or 200 items', async () => {
    const documentId = await ingest(wire, texts.kb, { text: freshName('listed') })
    const chunks = `GET ${texts.kb}/documents/${documentId}/chunks`
    for (const limit of [1, 1_000]) await expectStatus(`${chunks}?limit=${limit}`, {}, 200)
    for (const limit of [0, 1_001])
      await wire.refused(`${chunks}?limit=${limit}`, {}, 400, 'validation_error', /^limit: /)
    await expectStatus('GET /api/v1/workspaces?limit=200', {}, 200)
    await wire.refused('GET /api/v1/workspaces?limit=201', {}, 400, 'validation_error', /^limit: /)
  })

  test('a cursor has at most 512 characters, and a longer one is not decoded', async () => {
    for (const length of [512, 513])
      await wire.refused(`GET /api/v1/workspaces?cursor=${'A'.repeat(length)}`, {}, 400, 'invalid_cursor')
  })
})

describe('nesting depth', () => {
  /** A search body whose brackets nest to a depth, including the body. */
  function nested(depth: number): string {
    const inner = depth - 3 // Body, records, record.
    const payload = `{"deep":${'['.repeat(inner - 1)}${']'.repeat(inner - 1)}}`
    return `{"records":[{"id":"deep","vector":[1,0,0],"payload":${payload}}]}`
  }

  test('JSON nests at most 64 levels', async () => {
    await expectStatus(`POST ${vectors.kb}/records`, { raw: nested(64), headers: json }, 200)
    await wire.exchange(`DELETE ${vectors.kb}/records/deep`, undefined, 200, { deleted: true })
    await wire.refused(
      `POST ${vectors.kb}/records`,
      { raw: nested(65), headers: json },
      400,
      'validation_error',
    )
    await wire.exchange(`DELETE ${vectors.kb}/records/deep`, undefined, 200, { deleted: false })
  })

  test('brackets in text do not count', async () => {
    const text = `${'['.repeat(200)}"\\"${'{'.repeat(200)}`
    await expectStatus(`POST ${texts.kb}/search`, { json: { text } }, 200)
  })

  test('a filter nests at most 32 clauses', async () => {
    const filter = (depth: number): object => {
      return depth === 1 ? { a: 1 } : { $not: filter(depth - 1) }
    }
    const sent = (depth: number): Sent => ({ json: { vector: [1, 0, 0], filter: filter(depth) } })
    await expectStatus(`POST ${vectors.kb}/search`, sent(32), 200)
    await wire.refused(`POST ${vectors.kb}/search`, sent(33), 400, 'validation_error', /^filter/)
  })

  test('a filter has at most 1,000 nodes, which are names and list elements', async () => {
    const sent = (nodes: number): Sent => {
      const values = Array.from({ length: nodes - 2 }, (_, index) => index)
      return { json: { vector: [1, 0, 0], filter: { a: { $in: values } } } }
    }
    await expectStatus(`POST ${vectors.kb}/search`, sent(1_000), 200)
    await wire.refused(`POST ${vectors.kb}/search`, sent(1_001), 400, 'validation_error', /^filter/)
  })
})

test('S7.1-04: accepts 31 KB of headers and rejects 33 KB with 431 in the error envelope', async () => {
  const padding = (bytes: number): Sent => ({ headers: { 'x-padding': 'x'.repeat(bytes) } })
  await expectStatus('GET /healthz', padding(31 * 1024), 200)
  const reply = await wire.send('GET /healthz', padding(33 * 1024))
  expect(reply.status).toBe(431)
  expect(reply.body).toMatchObject({ error: { code: 'headers_too_large' } })
})
