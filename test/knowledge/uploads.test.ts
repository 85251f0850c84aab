import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { type DoclingServer, startDocling } from '../fakes/docling-server.ts'
import { type Base, makeBase } from '../harness/resources.ts'
import { open, scratchDir, type TestRuntime } from '../harness/runtime.ts'

const pdf = new File(['%PDF-1.7 …'], 'report.pdf', { type: 'application/pdf' })
const note = new File(['A note.'], 'note.md', { type: 'text/markdown' })

interface Stage {
  readonly docling: DoclingServer
  readonly wb: TestRuntime
  readonly base: Base
  upload(file: File, fields?: Record<string, string>): Promise<unknown>
}

async function stage(environment: Record<string, string> = {}): Promise<Stage> {
  const docling = await startDocling()
  onTestFinished(() => docling.close())
  const wb = await open({ environment: { DOCLING_URL: `${docling.url}/`, ...environment } })
  const base = await makeBase(wb)
  const upload = (file: File, fields: Record<string, string> = {}) => {
    const body = new FormData()
    body.set('file', file)
    for (const [name, value] of Object.entries(fields)) body.set(name, value)
    return wb.call(documents.ingestFile, { params: base.params, body })
  }
  return { docling, wb, base, upload }
}

describe('a document converter', () => {
  test('extracts the text of a binary file and adds itself to the metadata', async () => {
    const { docling, base, upload } = await stage()
    await expect(upload(pdf, { metadata: '{"team":"wing"}' })).resolves.toMatchObject({
      chunks: 1,
      document: {
        sourceFilename: 'report.pdf',
        fileType: 'application/pdf',
        fileSize: pdf.size,
        metadata: { team: 'wing', ingestParser: 'docling' },
      },
    })
    expect(docling.received).toEqual([
      {
        path: 'POST /v1/convert/file',
        fields: { to_formats: 'md', return_as_file: 'false' },
        fileName: 'report.pdf',
        fileType: 'application/pdf',
        bytes: Buffer.from('%PDF-1.7 …'),
      },
    ])
    expect((await base.search('wing', { lexicalWeight: 1 }))[0]?.payload?.chunkText).toContain('# Converted')
  })

  test('is used for text files only if it is named', async () => {
    const { docling, upload } = await stage()
    await expect(upload(note)).resolves.toMatchObject({ document: { metadata: { ingestParser: 'native' } } })
    expect(docling.received).toEqual([])
    const named = upload(new File(['Another.'], 'other.md'), { parser: 'docling' })
    await expect(named).resolves.toMatchObject({ document: { metadata: { ingestParser: 'docling' } } })
  })

  test('is not used with parser=native', async () => {
    const { docling, upload } = await stage()
    await expect(upload(pdf, { parser: 'native' })).rejects.toMatchObject({ code: 'extraction_failed' })
    expect(docling.received).toEqual([])
  })

  test('can return plain text only', async () => {
    const { docling, upload } = await stage()
    docling.script({ md: null, text: 'Plain words.' })
    await expect(upload(pdf)).resolves.toMatchObject({ chunks: 1 })
  })

  test.each([
    ['refuses', { status: 422, body: { detail: 'secret of the converter' } }, {}],
    ['breaks', { status: 500, body: {} }, {}],
    ['sends the asker elsewhere', { status: 307, body: {} }, {}],
    ['says nothing', { hang: true }, { DOCLING_TIMEOUT_MS: '50' }],
  ])(
    'docling_unavailable: a converter that %s is an error if it is named, and is skipped otherwise',
    async (_, script, environment) => {
      const { docling, upload, wb, base } = await stage(environment)
      docling.script(script)
      const told = { code: 'docling_unavailable', message: expect.not.stringContaining('secret') }
      await expect(upload(pdf, { parser: 'docling' })).rejects.toMatchObject(told)
      await expect(upload(pdf)).rejects.toMatchObject({ code: 'extraction_failed' })
      expect(await base.documents()).toEqual([])
      expect(readdirSync(join(wb.dataDir, 'uploads'))).toEqual([])
    },
  )

  test('docling_unavailable: no server is listening', async () => {
    const { docling, upload } = await stage()
    await docling.close()
    const refusal = { code: 'docling_unavailable', status: 503 }
    await expect(upload(pdf, { parser: 'docling' })).rejects.toMatchObject(refusal)
  })

  test.each([
    [{ md: 'a\u0000b' }],
    [{ md: 'a\ud861b' }],
    [{ md: null }],
    [{ body: 'something else' }],
    [{ body: { document: [] } }],
  ])('extraction_failed: a response of %j', async script => {
    const { docling, upload } = await stage()
    docling.script(script)
    await expect(upload(pdf)).rejects.toMatchObject({ code: 'extraction_failed', status: 422 })
  })

  test('empty_document: the converter found no text', async () => {
    const { docling, upload } = await stage()
    docling.script({ md: '\n' })
    await expect(upload(pdf)).rejects.toMatchObject({ code: 'empty_document', status: 422 })
  })
})

test('a server deletes the uploads of a killed process at startup, and no other files', async () => {
  const dataDir = join(scratchDir(), 'data')
  const folder = join(dataDir, 'uploads')
  mkdirSync(folder, { recursive: true })
  const gone = join(folder, '999999999-aa')
  const mine = join(folder, `${process.pid}-aa`)
  const busy = join(folder, `${process.ppid}-aa`)
  for (const path of [gone, mine, busy]) writeFileSync(path, 'left')
  await open({ dataDir })
  expect([gone, mine, busy].filter(existsSync)).toEqual([gone, mine, busy])
  await open({ dataDir, server: true })
  expect([gone, mine, busy].filter(existsSync)).toEqual([busy])
})
