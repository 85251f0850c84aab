import { expect, test } from 'vitest'
import { sha256 } from '../../src/base/id.ts'
import { documents } from '../../src/contract/documents.ts'
import type { Job } from '../../src/contract/jobs.ts'
import { pdf, presentation, spreadsheet, wordFile } from '../formats/files.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import { waitForEnd } from '../jobs/ingest-jobs.ts'

async function stage() {
  const wb = await open({ server: true })
  const base = await makeBase(wb)
  const upload = (
    bytes: Uint8Array | string,
    name: string,
    fields: Record<string, string> = {},
    query = {},
  ) => {
    const body = new FormData()
    body.set('file', new File([bytes as never], name))
    for (const [field, value] of Object.entries(fields)) body.set(field, value)
    return wb.call(documents.ingestFile, { params: base.params, body, query })
  }
  const payloads = async (documentId: string) =>
    (await wb.call(documents.chunks, { params: { ...base.params, documentId } })).map(
      ({ payload }) => payload,
    )
  return { wb, base, upload, payloads }
}

const chunker = JSON.stringify({ maxChars: 120, minChars: 10, overlapChars: 0 })
const text = 'Keys are revoked by an administrator of the workspace, who can also create new ones.'
const handbook = () =>
  pdf(
    [
      [
        [20, 'Security'],
        [11, text],
      ],
      [[11, 'Backups are kept for thirty days. They are encrypted with the key of the team.']],
    ],
    { info: { Title: 'Handbook', Author: 'Ada' } },
  )

test('chunks of a PDF have their page and section, and the document its title, author and parser', async () => {
  const { upload, payloads } = await stage()
  const { document } = (await upload(await handbook(), 'handbook.pdf', { chunker })) as {
    document: { documentId: string; metadata: object }
  }
  expect(document.metadata).toMatchObject({ title: 'Handbook', author: 'Ada', ingestParser: 'structured' })
  const chunks = await payloads(document.documentId)
  expect(chunks.map(payload => [payload['chunk.page'], payload['chunk.section']])).toEqual([
    [1, 'Security'],
    [2, 'Security'],
  ])
})

test('a job keeps the pages and sections', async () => {
  const { wb, upload, payloads } = await stage()
  const fields = { chunker, metadata: '{"title":"My title"}' }
  const { job, document } = (await upload(await handbook(), 'handbook.pdf', fields, { async: 'true' })) as {
    job: Job
    document: { documentId: string; metadata: object }
  }
  expect(await waitForEnd(wb, job)).toMatchObject({ status: 'succeeded' })
  expect(document.metadata).toMatchObject({ title: 'My title' })
  expect((await payloads(document.documentId)).map(payload => payload['chunk.page'])).toEqual([1, 2])
})

test('chunks of slides and sheets have their place', async () => {
  const { upload, payloads } = await stage()
  const slides = (await upload(await presentation(), 'talk.pptx')) as { document: { documentId: string } }
  expect((await payloads(slides.document.documentId))[0]).toMatchObject({ 'chunk.slide': 1 })
  const sheets = (await upload(await spreadsheet('xlsx'), 'plan.bin')) as { document: { documentId: string } }
  expect((await payloads(sheets.document.documentId))[0]).toMatchObject({ 'chunk.sheet': expect.any(String) })
})

test('front matter of an uploaded Markdown file becomes metadata, unless the request has another value', async () => {
  const { upload } = await stage()
  const file = '---\nlang: en\nteam: docs\n---\n# Keys\n'
  const { document } = (await upload(file, 'keys.md', { metadata: '{"team":"platform"}' })) as {
    document: { metadata: object }
  }
  expect(document.metadata).toMatchObject({ lang: 'en', team: 'platform', title: 'Keys' })
})

test('files are compared by name and bytes', async () => {
  const { wb, base, upload } = await stage()
  const bytes = await handbook()
  await upload(bytes, 'handbook.pdf')
  await base.ingest('A note.', { sourceFilename: 'note.md' })
  const check = async (...files: [string, Uint8Array | string][]) => {
    const body = {
      files: files.map(([sourceFilename, content]) => ({ sourceFilename, fileHash: sha256(content) })),
    }
    return (await wb.call(documents.checkFiles, { params: base.params, body })).states
  }
  expect(
    await check(
      ['handbook.pdf', bytes],
      ['handbook.pdf', 'x'],
      ['other.pdf', bytes],
      ['note.md', 'A note.'],
      ['note.md', 'B'],
    ),
  ).toEqual(['unchanged', 'changed', 'new', 'unchanged', 'changed'])
})

test('native reads PDF, Word and Excel by name, without structure', async () => {
  const { upload } = await stage()
  const nativeOf = async (bytes: Uint8Array, name: string) => {
    const { document } = (await upload(bytes, name, { parser: 'native' })) as {
      document: { metadata: object }
    }
    return document.metadata
  }
  expect(await nativeOf(await handbook(), 'a.pdf')).toMatchObject({
    ingestParser: 'native',
    ingestParserVersion: expect.stringMatching(/^unpdf \d/),
  })
  expect(await nativeOf(await wordFile(), 'a.docx')).toMatchObject({ ingestParser: 'native' })
  expect(await nativeOf(await spreadsheet('xlsx'), 'a.xlsx')).toMatchObject({ ingestParser: 'native' })
  await expect(upload(await handbook(), 'a.bin', { parser: 'native' })).rejects.toMatchObject({
    code: 'unsupported_file_type',
  })
})

test('a file without text, an encrypted file, and an unknown format are named', async () => {
  const { upload } = await stage()
  await expect(upload(await pdf([[]]), 'scan.pdf')).rejects.toMatchObject({
    code: 'empty_document',
    message: expect.stringContaining('scanned'),
  })
  const locked = await pdf([[[11, 'secret']]], { userPassword: 'x' })
  await expect(upload(locked, 'locked.pdf')).rejects.toMatchObject({
    code: 'extraction_failed',
    message: expect.stringContaining('encrypted'),
  })
  await expect(upload(new Uint8Array([0, 1, 2, 255, 254, 0, 7]), 'a.xyz')).rejects.toMatchObject({
    code: expect.stringMatching(/unsupported_file_type|extraction_failed/),
  })
})
