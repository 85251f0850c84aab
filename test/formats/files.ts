import { utils, write } from '@e965/xlsx'
import * as docx from 'docx'
import { strToU8, zipSync } from 'fflate'
import PDFDocument from 'pdfkit'
import pptxgen from 'pptxgenjs'

const table = [
  ['Plan', 'Price'],
  ['Team|Pro', '30'],
]

/** Returns a PDF in which each text has its font size, with a page for each list. */
export function pdf(
  pages: readonly (readonly [size: number, text: string][])[],
  options: PDFKit.PDFDocumentOptions = {},
) {
  const document = new PDFDocument({ autoFirstPage: false, ...options })
  for (const texts of pages) {
    document.addPage()
    for (const [size, text] of texts) document.fontSize(size).text(text).moveDown()
  }
  return new Promise<Buffer>((resolve, reject) => {
    const parts: Buffer[] = []
    document
      .on('data', part => parts.push(part))
      .on('end', () => resolve(Buffer.concat(parts)))
      .on('error', reject)
    document.end()
  })
}

export async function wordFile(): Promise<Buffer> {
  const { HeadingLevel, Paragraph, Table, TableCell, TableRow, TextRun } = docx
  const cell = (text: string) => new TableCell({ children: [new Paragraph(text)] })
  return docx.Packer.toBuffer(
    new docx.Document({
      title: 'Handbook',
      sections: [
        {
          children: [
            new Paragraph({ text: 'Keys', heading: HeadingLevel.HEADING_1 }),
            new Paragraph({
              children: [
                new TextRun('Revoke a '),
                new TextRun({ text: 'key', bold: true }),
                new TextRun('.'),
              ],
            }),
            new Paragraph({ text: 'first', bullet: { level: 0 } }),
            new Paragraph({ text: 'second', bullet: { level: 0 } }),
            new Table({ rows: table.map(row => new TableRow({ children: row.map(cell) })) }),
          ],
        },
      ],
    }),
  )
}

export async function presentation(): Promise<Buffer> {
  // The types of the package are those of its CommonJS build.
  const deck = new (pptxgen as unknown as typeof pptxgen.default)()
  deck.title = 'Strategy'
  deck.defineSlideMaster({
    title: 'MASTER',
    objects: [
      { placeholder: { options: { name: 'title', type: 'title', x: 1, y: 1, w: 8, h: 1 }, text: '' } },
    ],
  })
  const slide = deck.addSlide({ masterName: 'MASTER' })
  slide.addText('Goals', { placeholder: 'title' })
  slide.addText('Grow slowly.', { x: 1, y: 2 })
  slide.addTable(
    table.map(row => row.map(text => ({ text }))),
    { x: 1, y: 3 },
  )
  slide.addNotes('Speak calmly.')
  deck.addSlide().addText('Second slide.', { x: 1, y: 1 })
  return (await deck.write({ outputType: 'nodebuffer' })) as Buffer
}

/** @param type  extension of the format */
export function spreadsheet(type: 'xlsx' | 'ods' | 'xls'): Buffer {
  const book = utils.book_new()
  const rows = [...table, ['Since', new Date(Date.UTC(2026, 0, 31))], [], ['=SUM', 1.5]]
  utils.book_append_sheet(book, utils.aoa_to_sheet(rows, { UTC: true }), 'Plans')
  utils.book_append_sheet(book, utils.aoa_to_sheet([]), 'Empty')
  return write(book, { type: 'buffer', bookType: type === 'xls' ? 'biff8' : type }) as Buffer
}

export function archive(files: Readonly<Record<string, string>>): Buffer {
  return Buffer.from(
    zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)]))),
  )
}

const office = 'urn:oasis:names:tc:opendocument:xmlns:'

export function openDocument(): Buffer {
  return archive({
    mimetype: 'application/vnd.oasis.opendocument.text',
    'meta.xml': '<m xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Guide</dc:title></m>',
    'content.xml': `<office:document-content xmlns:office="${office}office:1.0" xmlns:text="${office}text:1.0" xmlns:table="${office}table:1.0">
      <office:body><office:text><text:h text:outline-level="2">Keys</text:h><text:p>Revoke<text:s text:c="2"/>a <text:span>key</text:span>.</text:p>
      <text:list><text:list-item><text:p>first</text:p><text:list><text:list-item><text:p>inner</text:p></text:list-item></text:list></text:list-item></text:list>
      <table:table><table:table-row><table:table-cell><text:p>Plan</text:p></table:table-cell><table:table-cell><text:p>Price</text:p></table:table-cell></table:table-row>
      <table:table-row><table:table-cell><text:p>Team</text:p></table:table-cell><table:table-cell><text:p>30</text:p></table:table-cell></table:table-row></table:table>
      </office:text></office:body></office:document-content>`,
  })
}

/** A book whose first chapter is also the last one. */
export function book(): Buffer {
  return archive({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml':
      '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
    'OPS/book.opf': `<package xmlns:dc="x"><metadata><dc:title>A Book</dc:title></metadata>
      <manifest><item id="b" href="two%20b.xhtml"/><item id="a" href="one.xhtml"/></manifest>
      <spine><itemref idref="a"/><itemref idref="b"/><itemref idref="a"/></spine></package>`,
    'OPS/one.xhtml': '<html><body><h1>One</h1><p>First chapter.</p></body></html>',
    'OPS/two b.xhtml': '<html><body><h1>Two</h1><p>Second chapter.</p></body></html>',
  })
}
