import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createDeflate } from 'node:zlib'
import { strFromU8, strToU8, unzipSync, zipSync } from 'fflate'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FileReader } from '../../src/formats/file-reader.ts'
import { archive, book, openDocument, pdf, presentation, spreadsheet, wordFile } from './files.ts'

/** Error codes for files that cannot be read. */
const refusals = ['extraction_failed', 'empty_document', 'unsupported_file_type']
/** Maximum memory of the process that reads hostile files. */
const residentMegabytesMax = 1_500
/** Number of damaged copies of each file. */
const copies = 50

let folder: string
let reader: FileReader
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'wb-malformed-'))
  reader = new FileReader()
})
afterAll(async () => {
  await reader.close()
  rmSync(folder, { recursive: true })
})

/** Reads a file on a thread, and returns its text or the error. */
async function read(name: string, content: Uint8Array | string) {
  const path = join(folder, 'file')
  writeFileSync(path, content)
  const caller = { workspaceId: 'w', member: 'm', signal: new AbortController().signal }
  return reader.read({ path, name, type: '' }, { canBeText: true, withProperties: false }, caller).then(
    ({ text }) => ({ text }),
    (error: { code?: string; message: string }) => ({ code: error.code, message: error.message }),
  )
}

/** Returns a generator of numbers from 0 up to a maximum, which is the same in every run. */
function numbersFrom(seed: number) {
  let state = seed
  return (max: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * max)
  }
}

const page =
  '<!doctype html><title>Keys</title><main><h1>Keys</h1><p>Revoke <b>a key</b>.<ul><li>one<li>two</ul></main>'
const rtf = String.raw`{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\info{\title A title}}Some \b bold\b0  text\par}`
const message =
  'From: a@x.test\r\nSubject: Two\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nText.\r\n--b--\r\n'
const files: [name: string, make: () => Promise<Uint8Array> | Uint8Array | string][] = [
  [
    'a.pdf',
    () =>
      pdf([
        [
          [20, 'Part'],
          [11, 'Some text.'],
        ],
        [[11, 'Second page.']],
      ]),
  ],
  ['a.docx', wordFile],
  ['a.pptx', presentation],
  ['a.xlsx', () => spreadsheet('xlsx')],
  ['a.ods', () => spreadsheet('ods')],
  ['a.xls', () => spreadsheet('xls')],
  ['a.odt', openDocument],
  ['a.epub', book],
  ['a.html', () => page],
  ['a.rtf', () => rtf],
  ['a.eml', () => message],
  ['a.ipynb', () => '{"cells":[{"cell_type":"code","source":["a"],"outputs":[{"text":["1"]}]}]}'],
  ['a.srt', () => '1\n00:00:01,000 --> 00:00:02,000\nHello\n'],
]

describe.each(files)('%s', (name, make) => {
  test.each(['truncated', 'with changed bits'])('is read or refused %s', async kind => {
    const bytes = Buffer.from(await make())
    const next = numbersFrom(bytes.length)
    const codes = new Set<string | undefined>()
    for (let at = 0; at < copies; at++) {
      const copy = kind === 'truncated' ? bytes.subarray(0, (bytes.length * at) / copies) : Buffer.from(bytes)
      if (kind !== 'truncated')
        for (let flips = 0; flips <= at % 8; flips++) copy[next(copy.length)]! ^= 1 << next(8)
      const result = await read(name, copy)
      if ('code' in result) codes.add(result.code)
    }
    expect(refusals).toEqual(expect.arrayContaining([...codes]))
  })
})

test('a renamed file is read by its content', async () => {
  for (const [name, make] of files.slice(0, 8)) {
    const text = await read(name, Buffer.from(await make()))
    for (const other of ['a.txt', 'a.pdf', 'a.html', 'a'])
      expect([name, other, await read(other, Buffer.from(await make()))]).toEqual([name, other, text])
  }
})

/** Returns a PDF with the objects, which start with the catalog. */
function pdfOf(...objects: (string | Buffer)[]): Buffer {
  const parts = objects.flatMap((object, at) => [
    Buffer.from(`${at + 1} 0 obj\n`),
    Buffer.from(object),
    Buffer.from('\nendobj\n'),
  ])
  return Buffer.concat([Buffer.from('%PDF-1.7\n'), ...parts, Buffer.from('trailer << /Root 1 0 R >>\n%%EOF')])
}

function stream(dictionary: string, content: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`<< ${dictionary} /Length ${content.length} >>\nstream\n`),
    content,
    Buffer.from('\nendstream'),
  ])
}

const catalog = '<< /Type /Catalog /Pages 2 0 R >>'
const pages = '<< /Type /Pages /Kids [3 0 R] /Count 1 >>'
const pageWith = (content: string) =>
  `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents ${content} /Resources << /Font << /F 6 0 R >> /XObject << /X 5 0 R >> >> >>`
const font = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'

/** Returns 300 MB of spaces, compressed to a few MB. */
async function bomb(): Promise<Buffer> {
  const deflate = createDeflate({ level: 1 })
  const million = Buffer.alloc(1_000_000, 32)
  Readable.from(Array.from({ length: 300 }, () => million)).pipe(deflate)
  return Buffer.concat(await deflate.toArray())
}

/** Returns a Word file whose main file has a million characters, but declares another size. */
function dishonestArchive(declaredBytes: number): Buffer {
  const bytes = archive({ 'word/document.xml': ' '.repeat(1_000_000) })
  const size = Buffer.alloc(4)
  size.writeUInt32LE(1_000_000)
  for (let at = bytes.indexOf(size); at >= 0; at = bytes.indexOf(size)) bytes.writeUInt32LE(declaredBytes, at)
  return bytes
}

/** Returns a spreadsheet with a cell in the last row and column that the format has. */
function wideSpreadsheet(): Buffer {
  const entries = unzipSync(spreadsheet('xlsx'))
  const path = 'xl/worksheets/sheet1.xml'
  const sheet = strFromU8(entries[path]!)
    .replace(/<dimension ref="[^"]*"/, '<dimension ref="A1:XFD1048576"')
    .replace('</sheetData>', '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData>')
  return Buffer.from(zipSync({ ...entries, [path]: strToU8(sheet) }))
}

describe('a hostile file is refused or read with limits', () => {
  test.each<[string, string, () => Uint8Array | string | Promise<Uint8Array>]>([
    [
      'a PDF whose stream expands to 300 MB',
      'a.pdf',
      async () =>
        pdfOf(catalog, pages, pageWith('4 0 R'), stream('/Filter /FlateDecode', await bomb()), '<< >>', font),
    ],
    [
      'a PDF that declares a stream of 1 GB',
      'a.pdf',
      () =>
        pdfOf(
          catalog,
          pages,
          pageWith('4 0 R'),
          '<< /Length 1000000000 >>\nstream\nBT ET\nendstream',
          '<< >>',
          font,
        ),
    ],
    [
      'a PDF that declares a billion pages',
      'a.pdf',
      () =>
        pdfOf(
          catalog,
          '<< /Type /Pages /Kids [3 0 R] /Count 1000000000 >>',
          pageWith('4 0 R'),
          stream('', Buffer.from('BT ET')),
          '<< >>',
          font,
        ),
    ],
    [
      'a PDF whose pages contain themselves',
      'a.pdf',
      () => pdfOf(catalog, '<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>'),
    ],
    [
      'a PDF whose form contains itself',
      'a.pdf',
      () =>
        pdfOf(
          catalog,
          pages,
          pageWith('4 0 R'),
          stream('', Buffer.from('/X Do')),
          stream(
            '/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 5 0 R >> >>',
            Buffer.from('/X Do /X Do'),
          ),
          font,
        ),
    ],
    ['a Word file that declares 1 GB', 'a.docx', () => dishonestArchive(1_000_000_000)],
    ['a Word file that declares less than it contains', 'a.docx', () => dishonestArchive(1_000)],
    [
      'an archive in an archive',
      'a.zip',
      () => archive({ 'a.zip': archive({ 'b.docx': 'x' }).toString('latin1') }),
    ],
    [
      'entities that expand to a billion characters',
      'a.odt',
      () =>
        archive({
          mimetype: 'application/vnd.oasis.opendocument.text',
          'content.xml': `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">${'bcdefghij'.replace(/./g, (letter, at: number) => `<!ENTITY ${letter} "${`&${'abcdefghi'[at]};`.repeat(10)}">`)}]><a><body>&j;</body></a>`,
        }),
    ],
    [
      'entities of files in a Word file',
      'a.docx',
      () =>
        archive({
          'word/document.xml':
            '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>&x;</w:t></w:r></w:p></w:body></w:document>',
        }),
    ],
    ['a spreadsheet that declares all cells', 'a.xlsx', wideSpreadsheet],
    ['HTML with 100,000 nested elements', 'a.html', () => `<html>${'<div>'.repeat(100_000)}x`],
    ['RTF with 1,000,000 nested groups', 'a.rtf', () => `{\\rtf1 ${'{'.repeat(1_000_000)}`],
    [
      'an OpenDocument file with 100,000 nested elements',
      'a.odt',
      () =>
        archive({
          mimetype: 'application/vnd.oasis.opendocument.text',
          'content.xml': `${'<a>'.repeat(100_000)}${'</a>'.repeat(100_000)}`,
        }),
    ],
    [
      'a message with 1,000 nested parts',
      'a.eml',
      () =>
        `${Array.from({ length: 1_000 }, (_, at) => `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}\r\n`).join('')}\r\nx`,
    ],
    ['a notebook with 100,000 nested lists', 'a.ipynb', () => '['.repeat(100_000)],
    ['a CSV with 10,000 columns', 'a.csv', () => `${'a,'.repeat(10_000)}\n`.repeat(100)],
  ])('%s', async (_, name, make) => {
    const result = await read(name, await make())
    if ('code' in result) expect(refusals).toContain(result.code)
    else expect(result.text).not.toContain('root:')
    expect(process.resourceUsage().maxRSS / 1_000).toBeLessThan(residentMegabytesMax)
  })
})
