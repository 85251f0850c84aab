import { createHash } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import { isoMs } from './exactly.ts'
import { makePlace, makeWorkspace } from './fixtures.ts'
import { boundary, file, form, formBytes, formHeaders, type Part, text } from './forms.ts'
import { type Row, useServer } from './harness.ts'
import { document, notUuid, unknownId } from './shapes.ts'

const wire = useServer({ env: { DOCLING_URL: '' } })

const ready = { status: 'ready', ingestedAt: isoMs, chunkTotal: 1 }
const hashOf = (content: string) => createHash('sha256').update(content).digest('hex')

/** Names of pending files in the folder for uploads. */
function waiting(): string[] {
  try {
    return readdirSync(join(wire.serving.dataDir, 'uploads'))
  } catch {
    return []
  }
}

describe('uploading a file', () => {
  test('returns 201 with the document; name, type and size are those of the part', async () => {
    const { kb, workspaceId, knowledgeBaseId } = await makePlace(wire)
    const documentId = '5a1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d75'
    const sent = form(
      text('metadata', '{"team":"wing","year":1959}'),
      text('documentId', documentId),
      text('sourceDocId', '184'),
      text('ownerPrincipalId', 'ann'),
      text('visibleTo', '["bob","ann","bob"]'),
      text('parser', 'native'),
      file('A wing in supersonic flow.', { fileName: 'reports/wing “1”.md', type: 'text/markdown' }),
    )
    const reply = await wire.send(`POST ${kb}/ingest/file`, sent)
    expect(reply.status, reply.text).toBe(201)
    expect(reply.body).toEqual({
      document: expect.anything(),
      chunks: 1,
      astraQueries: [],
    })
    const stored = (reply.body as { document: Row }).document
    await wire.exchange(
      `GET ${kb}/documents/${documentId}`,
      undefined,
      200,
      document({
        workspaceId,
        knowledgeBaseId,
        documentId,
        sourceDocId: '184',
        sourceFilename: 'reports/wing “1”.md',
        fileType: 'text/markdown',
        fileSize: 26,
        contentHash: hashOf('A wing in supersonic flow.'),
        metadata: { team: 'wing', year: 1959, ingestParser: 'native' },
        visibleTo: ['ann', 'bob'],
        ownerPrincipalId: 'ann',
        ...ready,
      }),
    )
    expect((await wire.get(`${kb}/documents/${documentId}`)).updatedAt).toBe(stored.updatedAt)
    expect(waiting()).toEqual([])
  })

  test('makes its text searchable, as the same document as a JSON ingest of the text', async () => {
    const { kb } = await makePlace(wire)
    const first = await upload(kb, file('Vanishing hydrofoil.'))
    const hits = await wire.send(`POST ${kb}/search`, { json: { text: 'hydrofoil', lexicalWeight: 1 } })
    expect(hits.body).toMatchObject([
      { payload: { ingestParser: 'native', chunkText: 'Vanishing hydrofoil.' } },
    ])
    const again = await wire.send(`POST ${kb}/ingest`, { json: { text: 'Vanishing hydrofoil.' } })
    expect(again.status).toBe(200)
    expect(again.body).toEqual({ document: first, outcome: 'duplicate' })
  })

  test('removes a byte order mark and keeps the rest unchanged', async () => {
    const { kb } = await makePlace(wire)
    const content = '<p>Kept  as\r\nit is</p>\n'
    const page = file(`\ufeff${content}`, { fileName: 'page.html' })
    const { contentHash, fileSize } = await upload(kb, page, text('parser', 'native'))
    expect(contentHash).toBe(hashOf(content))
    expect(fileSize).toBe(Buffer.byteLength(content) + 3)
  })

  test.each([
    ['notes.txt', 'text/plain'],
    ['notes', 'text/x-unheard-of'],
    ['data.JSONL', 'application/octet-stream'],
    ['style.scss', 'application/octet-stream'],
    ['script.ps1', 'application/x-powershell'],
  ])('accepts %s of type %s as text', async (fileName, type) => {
    const { kb } = await makePlace(wire)
    expect(await upload(kb, file('Some text.', { fileName, type }))).toMatchObject({ fileType: type })
  })

  test('does not treat a name as a path', async () => {
    const { kb } = await makePlace(wire)
    const fileName = '../../../../serve.json'
    const stored = await upload(kb, file('Out of the way.', { fileName }))
    expect(stored.sourceFilename).toBe(fileName)
    expect(waiting()).toEqual([])
  })

  test('ignores unknown parts and further files, and names the former', async () => {
    const { kb } = await makePlace(wire)
    const reply = await wire.send(
      `POST ${kb}/ingest/file`,
      form(
        text('colour', 'red'),
        file('The first.'),
        file('The second.', { fileName: 'second.txt' }),
        { name: 'other', fileName: 'other.txt', body: 'Another part.' },
        text('__proto__', '{"polluted":true}'),
      ),
    )
    expect(reply.status, reply.text).toBe(201)
    expect(reply.headers['x-workbase-ignored']).toBe('colour, __proto__')
    expect((reply.body as { document: Row }).document).toMatchObject({ sourceFilename: 'notes.txt' })
    expect(await wire.items(`${kb}/documents`)).toHaveLength(1)
    expect({}).not.toHaveProperty('polluted')
  })

  test('accepts a JSON part with a file name, as generated clients send it', async () => {
    const { kb } = await makePlace(wire)
    const json = (name: string, body: string): Part => ({
      ...{ name, fileName: 'blob', type: 'application/json', body },
    })
    const metadata = json('metadata', '{"lang":"en"}')
    const sent = await wire.send(`POST ${kb}/ingest/file`, form(metadata, file('In English.')))
    expect((sent.body as { document: Row }).document).toMatchObject({ metadata: { lang: 'en' } })
    const twice = await wire.send(`POST ${kb}/ingest/file`, form(file('Twice.'), metadata, metadata))
    expect([twice.status, twice.text]).toEqual([400, expect.stringContaining('metadata: was sent more than')])
    const large = json('metadata', `{"x":"${'x'.repeat(1_000_000)}"}`)
    expect((await wire.send(`POST ${kb}/ingest/file`, form(file('Large.'), large))).status).toBe(413)
    expect(waiting()).toEqual([])
  })

  test('reports a name conflict; only overwrite with the text true replaces the document', async () => {
    const { kb } = await makePlace(wire)
    const first = await upload(kb, file('One.'))
    for (const overwrite of ['', 'false', 'TRUE', '1', 'yes']) {
      const sent = form(file('Two.'), text('overwriteOnNameConflict', overwrite))
      const reply = await wire.send(`POST ${kb}/ingest/file`, sent)
      expect([reply.status, reply.body]).toEqual([200, { document: first, outcome: 'name_conflict' }])
    }
    const second = await upload(kb, file('Two.'), text('overwriteOnNameConflict', 'true'))
    expect((await wire.items(`${kb}/documents`)).map(item => item.documentId)).toEqual([second.documentId])
  })

  test('accepts a chunker for one file', async () => {
    const { kb } = await makePlace(wire)
    const chunker = text('chunker', '{"maxChars":20,"minChars":0,"overlapChars":0,"maxLines":1}')
    const stored = await upload(kb, file('alpha beta gamma delta epsilon'), chunker)
    expect(stored.chunkTotal).toBe(2)
  })

  test.each([
    ['*', ['*']],
    ['"*"', ['*']],
    ['["*"]', ['*']],
    ['["ann"]', ['ann']],
    ['null', null],
  ])('S7.3-09: applies visibleTo %s', async (sent, stored) => {
    const { kb } = await makePlace(wire)
    expect((await upload(kb, file('Seen.'), text('visibleTo', sent))).visibleTo).toEqual(stored)
  })

  test('async=true creates a job, and other values do not', async () => {
    const { kb, workspace } = await makePlace(wire)
    for (const value of ['false', 'yes', ''])
      expect(
        (
          await wire.send(
            `POST ${kb}/ingest/file?async=${value}`,
            form(file(`Now ${value}.`, { fileName: `${value}.txt` })),
          )
        ).status,
      ).toBe(201)
    const reply = await wire.send(
      `POST ${kb}/ingest/file?async=true`,
      form(file('Later.', { fileName: 'later.txt' })),
    )
    expect(reply.status, reply.text).toBe(202)
    const { job, document: made } = reply.body as { job: Row; document: Row }
    expect(made).toMatchObject({ status: 'writing', sourceFilename: 'later.txt', fileSize: 6 })
    expect(reply.headers.location).toBe(`${workspace}/jobs/${job.jobId}`)
    await vi.waitUntil(
      async () => (await wire.get(`${kb}/documents/${made.documentId}`)).status === 'ready',
      {
        timeout: 20_000,
      },
    )
    expect(waiting()).toEqual([])
  })
})

describe('invalid uploads', () => {
  const whole = formBytes([file('x')])
  test.each([
    ['JSON', { json: { text: 'x' } }],
    ['no body', {}],
    ['no boundary', { raw: whole, headers: { 'content-type': 'multipart/form-data' } }],
    ['an empty boundary', { raw: whole, headers: { 'content-type': 'multipart/form-data; boundary=' } }],
    ['another boundary', { raw: whole, headers: { 'content-type': 'multipart/form-data; boundary=other' } }],
    [
      'a form of another kind',
      { raw: whole, headers: { 'content-type': `multipart/mixed; boundary=${boundary}` } },
    ],
    ['a form that breaks off', { raw: whole.subarray(0, whole.length - 12), headers: formHeaders }],
    ['a form that breaks off in a head', { raw: whole.subarray(0, 40), headers: formHeaders }],
    ['an empty body', { raw: '', headers: formHeaders }],
    ['a compressed body', { raw: whole, headers: { ...formHeaders, 'content-encoding': 'gzip' } }],
    ['too many parts', form(file('x'), ...Array.from({ length: 64 }, (_, at) => text(`p${at}`, 'x')))],
  ])('S7.3-invalid_multipart: rejects %s', async (_, sent) => {
    const { kb } = await makePlace(wire)
    await wire.refused(`POST ${kb}/ingest/file`, sent, 400, 'invalid_multipart')
    await nothingLeft(kb)
  })

  test.each([
    ['no part of that name', [text('metadata', '{}')]],
    ['a text part', [text('file', 'the text')]],
    ['an empty file name', [file('x', { fileName: '' })]],
    ['another name', [file('x', { name: 'upload' })]],
  ] as [string, Part[]][])('S7.3-missing_file: rejects %s', async (_, parts) => {
    const { kb } = await makePlace(wire)
    await wire.refused(`POST ${kb}/ingest/file`, form(...parts), 400, 'missing_file')
    await nothingLeft(kb)
  })

  test.each<[title: string, status: number, code: string, part: Part, message?: RegExp]>([
    ['S7.3-empty_file: zero bytes', 400, 'empty_file', file('')],
    ['S7.3-invalid_parser: another name', 400, 'invalid_parser', text('parser', 'magic'), /^parser: /],
    ['S7.3-invalid_metadata: no JSON', 400, 'invalid_metadata', text('metadata', '{'), /^metadata: /],
    ['S7.3-invalid_metadata: an array', 400, 'invalid_metadata', text('metadata', '[]'), /^metadata: /],
    [
      'S7.3-invalid_metadata: nesting',
      400,
      'invalid_metadata',
      text('metadata', '{"a":{}}'),
      /^metadata.a: /,
    ],
    ['S7.3-invalid_metadata: reserved', 400, 'invalid_metadata', text('metadata', '{"visible_to":"*"}')],
    ['S7.3-invalid_metadata: NUL', 400, 'invalid_metadata', text('metadata', '{"a":"\\u0000"}')],
    ['S7.3-invalid_metadata: __proto__', 400, 'invalid_metadata', text('metadata', '{"__proto__":"x"}')],
    ['S7.3-invalid_chunker: no JSON', 400, 'invalid_chunker', text('chunker', 'small'), /^chunker: /],
    ['S7.3-invalid_chunker: an array', 400, 'invalid_chunker', text('chunker', '[1]'), /^chunker: /],
    [
      'S7.3-invalid_chunker: a text',
      400,
      'invalid_chunker',
      text('chunker', '{"maxChars":"9"}'),
      /^chunker.maxChars: /,
    ],
    [
      'S7.3-invalid_chunker: a contradiction',
      400,
      'invalid_chunker',
      text('chunker', '{"maxChars":5,"overlapChars":9}'),
    ],
    ['S7.3-invalid_visible_to: empty', 400, 'invalid_visible_to', text('visibleTo', '[]'), /^visibleTo: /],
    ['S7.3-invalid_visible_to: no JSON', 400, 'invalid_visible_to', text('visibleTo', 'ann'), /^visibleTo: /],
    [
      'S7.3-invalid_visible_to: an object',
      400,
      'invalid_visible_to',
      text('visibleTo', '{}'),
      /^visibleTo: /,
    ],
    ['a document id that is no UUID', 400, 'validation_error', text('documentId', notUuid), /^documentId: /],
    ['a NUL in a text', 400, 'validation_error', text('sourceDocId', 'a\u0000b'), /^sourceDocId: /],
    [
      'a control character in the name',
      400,
      'validation_error',
      file('x', { fileName: 'a\u001b[31m.txt' }),
      /^file: /,
    ],
    [
      'unsupported_file_type: an image',
      415,
      'unsupported_file_type',
      file('x', { fileName: 'a.png', type: 'image/png' }),
      /a\.png/,
    ],
    [
      'unsupported_file_type: no extension',
      415,
      'unsupported_file_type',
      file('x', { fileName: '.txt/', type: 'application/x' }),
    ],
    ['extraction_failed: binary data', 422, 'extraction_failed', file('a\0b'), /binary/],
    ['empty_document: only white space', 422, 'empty_document', file('\ufeff \n\t')],
    [
      'docling_unavailable: none is configured',
      503,
      'docling_unavailable',
      text('parser', 'docling'),
      /configured/,
    ],
  ])('%s', async (_, status, code, part, message) => {
    const { kb } = await makePlace(wire)
    const parts = part.name === 'file' ? [part] : [file('Some text.'), part]
    await wire.refused(`POST ${kb}/ingest/file`, form(...parts), status, code, message)
    await nothingLeft(kb)
  })

  test.each([
    ['not UTF-8', Buffer.from([0x66, 0xff, 0xfe]), /UTF-8/],
    ['UTF-16, which is UTF-8 as well where all is ASCII', Buffer.from('text', 'utf16le'), /NUL/],
  ])('extraction_failed with parser=native: %s', async (_, bytes, message) => {
    const { kb } = await makePlace(wire)
    const parts = form(file(bytes), text('parser', 'native'))
    await wire.refused(`POST ${kb}/ingest/file`, parts, 422, 'extraction_failed', message)
    await nothingLeft(kb)
  })

  test('rejects a lone surrogate in the name, which a charset parameter can encode', async () => {
    const { kb } = await makePlace(wire)
    const [before, after] = formBytes([file('x')])
      .toString()
      .split('filename="notes.txt"')
    const raw = `${before}filename*=utf-16le''a%d8.txt${after}`
    const sent = { raw, headers: formHeaders }
    await wire.refused(`POST ${kb}/ingest/file`, sent, 400, 'validation_error', /^file: /)
    await nothingLeft(kb)
  })

  test('reports the first error in the order form, file, parser, text, other fields', async () => {
    const { kb } = await makePlace(wire)
    const bad = [
      text('visibleTo', '[]'),
      text('chunker', 'x'),
      text('metadata', 'x'),
      text('documentId', 'x'),
    ]
    const order: [Part[], number, string][] = [
      [[file(''), text('parser', 'magic'), ...bad], 400, 'empty_file'],
      [
        [file('x', { type: 'image/png', fileName: 'x.png' }), text('parser', 'magic'), ...bad],
        400,
        'invalid_parser',
      ],
      [[file('x', { type: 'image/png', fileName: 'x.png' }), ...bad], 415, 'unsupported_file_type'],
      [[file('a\0b'), ...bad], 422, 'extraction_failed'],
      [[file(' '), ...bad], 422, 'empty_document'],
      [[file('x'), ...bad], 400, 'invalid_metadata'],
      [[file('x'), ...bad.slice(0, 2)], 400, 'invalid_chunker'],
      [[file('x'), ...bad.slice(0, 1)], 400, 'invalid_visible_to'],
    ]
    for (const [parts, status, code] of order)
      await wire.refused(`POST ${kb}/ingest/file`, form(...parts), status, code)
    await wire.refused(`POST ${kb}/ingest/file`, form(...bad), 400, 'missing_file')
    await nothingLeft(kb)
  })

  test('checks the knowledge base before it reads the form', async () => {
    const workspace = await makeWorkspace(wire)
    const nowhere = `${workspace}/knowledge-bases/${unknownId}/ingest/file`
    await wire.refused(`POST ${nowhere}`, { json: {} }, 404, 'knowledge_base_not_found')
    const elsewhere = `/api/v1/workspaces/${unknownId}/knowledge-bases/${unknownId}/ingest/file`
    await wire.refused(`POST ${elsewhere}`, form(file('x')), 404, 'workspace_not_found')
    await wire.refused(
      `POST ${workspace}/knowledge-bases/${notUuid}/ingest/file`,
      form(file('x')),
      400,
      'validation_error',
    )
  })

  test('S7.3-payload_too_large: rejects more than 50 MB, declared or counted, a long text part and a long text', async () => {
    const { kb } = await makePlace(wire)
    const announced = { raw: 'x', headers: { ...formHeaders, 'content-length': '50000001' } }
    await expectTooLarge(kb, announced)
    const [head, end] = formBytes([file('\u0001')])
      .toString()
      .split('\u0001') as [string, string]
    const counted = Readable.from(
      (function* () {
        yield Buffer.from(head)
        for (let sent = 0; sent < 51; sent++) yield Buffer.alloc(1_000_000, 'a')
        yield Buffer.from(end)
      })(),
    )
    await wire.refused(
      `POST ${kb}/ingest/file`,
      { raw: counted, headers: formHeaders },
      413,
      'payload_too_large',
    )
    const long = form(file('x'), text('metadata', 'x'.repeat(1_000_001)))
    await wire.refused(`POST ${kb}/ingest/file`, long, 413, 'payload_too_large', /^metadata: /)
    const wordy = form(file(Buffer.alloc(20_000_001, 'a')))
    await wire.refused(`POST ${kb}/ingest/file`, wordy, 413, 'payload_too_large', /characters/)
    await nothingLeft(kb)
  })

  test('rejects a repeated text part as ambiguous', async () => {
    const { kb } = await makePlace(wire)
    const sent = form(file('x'), text('visibleTo', '["ann"]'), text('visibleTo', '*'))
    await wire.refused(`POST ${kb}/ingest/file`, sent, 400, 'validation_error', /^visibleTo: /)
    await nothingLeft(kb)
  })

  test('S7.3-conflict: rejects an existing ID', async () => {
    const { kb } = await makePlace(wire)
    const { documentId } = await upload(kb, file('Mine.'))
    const sent = form(file('Another.', { fileName: 'other.txt' }), text('documentId', String(documentId)))
    await wire.refused(`POST ${kb}/ingest/file`, sent, 409, 'conflict')
  })

  test('rejects a form of another site without reading it', async () => {
    const { kb } = await makePlace(wire)
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-site' },
    ]
    for (const headers of foreign) {
      const sent = { ...form(file('Planted.')), headers: { ...formHeaders, ...headers } }
      await wire.refused(`POST ${kb}/ingest/file`, sent, 403, 'forbidden_origin')
    }
    await nothingLeft(kb)
  })
})

test('stores a partial upload readable by the owner only, and deletes it when the sender disconnects', async () => {
  const { kb } = await makePlace(wire)
  const { hostname, port } = new URL(wire.serving.url)
  const socket = connect(Number(port), hostname)
  const head = formBytes([file('x')])
    .toString()
    .split('\r\n\r\n')[0]
  socket.write(
    `POST ${kb}/ingest/file HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Length: 9000000\r\n` +
      `Content-Type: ${formHeaders['content-type']}\r\n\r\n${head}\r\n\r\n`,
  )
  socket.write(Buffer.alloc(2_000_000, 'a'))
  await expect.poll(() => waiting().length === 1, { timeout: 5_000 }).toBe(true)
  const path = join(wire.serving.dataDir, 'uploads', waiting()[0]!)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
  socket.destroy()
  await expect.poll(() => waiting().length === 0, { timeout: 5_000 }).toBe(true)
  expect(await wire.items(`${kb}/documents`)).toEqual([])
})

async function upload(kb: string, ...parts: Part[]): Promise<Row> {
  const reply = await wire.send(`POST ${kb}/ingest/file`, form(...parts))
  expect(reply.status, reply.text).toBe(201)
  return (reply.body as { document: Row }).document
}

/** Sends less than the declared length, so the connection is closed afterwards. */
async function expectTooLarge(
  kb: string,
  { raw, headers }: { raw: string; headers: Record<string, string> },
) {
  const { hostname, port } = new URL(wire.serving.url)
  const socket = connect(Number(port), hostname)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST ${kb}/ingest/file HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${lines.join('')}\r\n${raw}`)
  const answer = await new Promise<string>(resolve => socket.once('data', data => resolve(String(data))))
  socket.destroy()
  expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  expect(answer).toContain('payload_too_large')
}

/** Checks that a rejected upload left no file, and a document only if chunking failed. */
async function nothingLeft(kb: string): Promise<void> {
  expect(waiting()).toEqual([])
  for (const item of await wire.items(`${kb}/documents`)) expect(item.status).toBe('failed')
}
