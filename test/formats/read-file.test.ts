import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { strFromU8, strToU8, unzipSync, zipSync } from 'fflate'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readFileText } from '../../src/formats/read-file.ts'
import { archive, book, openDocument, pdf, presentation, spreadsheet, wordFile } from './files.ts'

/** Reads a file with the given content. */
async function read(name: string, content: string | Uint8Array) {
  const folder = mkdtempSync(join(tmpdir(), 'wb-formats-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'file')
  writeFileSync(path, content)
  return readFileText(path, name, { canBeText: true, withProperties: false })
}

describe('a file is read by its content', () => {
  test('PDF, with headings by the size of fonts, paragraphs in one line, and without repeated lines', async () => {
    const long = 'Keys are revoked by an administrator of the workspace, who can also create new ones. '
      .repeat(4)
      .trim()
    const pages = [1, 2, 3].map(
      number =>
        [
          [11, `Page ${number} of 3`],
          [20, `Part ${number}`],
          [11, long],
        ] as [number, string][],
    )
    const { text, title, format } = await read('a.bin', await pdf(pages, { info: { Title: 'Handbook' } }))
    expect([format, title]).toEqual(['pdf', 'Handbook'])
    expect(text).toBe([1, 2, 3].map(number => `# Part ${number}\n\n${long}`).join('\n\n'))
  })

  test('Word, with headings, lists and tables', async () => {
    const { text, title } = await read('a.pdf', await wordFile())
    expect(title).toBe('Handbook')
    expect(text).toBe(
      '# Keys\n\nRevoke a **key**.\n\n- first\n- second\n\n| Plan | Price |\n| --- | --- |\n| Team\\|Pro | 30 |',
    )
  })

  test('PowerPoint, with titles, tables and notes', async () => {
    const { text, title } = await read('a.pptx', await presentation())
    expect(title).toBe('Strategy')
    expect(text).toBe(
      '## Goals\n\nGrow slowly.\n\n| Plan | Price |\n| --- | --- |\n| Team\\|Pro | 30 |\n\nNotes: Speak calmly.\n\n## Slide 2\n\nSecond slide.',
    )
  })

  test('PowerPoint, with each slide once', async () => {
    const files = unzipSync(await presentation())
    const list = strFromU8(files['ppt/presentation.xml']!)
    const [slide] = /<p:sldId [^>]*>/.exec(list)!
    files['ppt/presentation.xml'] = strToU8(list.replace(slide, slide.repeat(1_000)))
    const { places } = await read('a.pptx', Buffer.from(zipSync(files)))
    expect(places).toHaveLength(2)
  })

  test.each(['xlsx', 'ods', 'xls'] as const)('%s, with a table for each sheet', async type => {
    const { text } = await read('a', spreadsheet(type))
    expect(text).toBe(
      '## Plans\n\n| Plan | Price |\n| --- | --- |\n| Team\\|Pro | 30 |\n| Since | 2026-01-31 |\n| =SUM | 1.5 |',
    )
  })

  test('OpenDocument, with headings, nested lists and tables', async () => {
    expect(await read('a', openDocument())).toMatchObject({
      title: 'Guide',
      text: '## Keys\n\nRevoke  a key.\n\n- first\n  - inner\n\n| Plan | Price |\n| --- | --- |\n| Team | 30 |',
    })
  })

  test('EPUB, in the order of its chapters', async () => {
    expect(await read('a', book())).toMatchObject({
      title: 'A Book',
      text: '# One\n\nFirst chapter.\n\n# Two\n\nSecond chapter.',
    })
  })

  test('RTF, in any code page', async () => {
    const rtf = String.raw`{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}{\info{\title A title}}{\*\generator x;}Caf\u233?, \'cf\'f0\'e8\par two\tab words\par}`
    expect(await read('a', rtf)).toMatchObject({ title: 'A title', text: 'Café, При\n\ntwo words' })
  })

  test('HTML, without its frame, scripts and forms', async () => {
    const page = `<!-- x --><!doctype html><title>Keys</title><nav>menu</nav><header>top</header>
      <main><h1>Keys</h1><script>alert(1)</script><p>Revoke <a href="https://x.test/a">a key</a> of snake_case.</p><ol start=3><li>three<li>four</ol>
      <table><caption>Prices</caption><tr><th>Plan<th>Price<tr><td>Team<td>30</table><img alt="A picture" src="data:x"></main>`
    expect(await read('a.txt', page)).toMatchObject({
      title: 'Keys',
      text: '# Keys\n\nRevoke [a key](https://x.test/a) of snake_case.\n\n3. three\n4. four\n\nPrices\n\n| Plan | Price |\n| --- | --- |\n| Team | 30 |\n\nA picture',
    })
  })

  test('email, with its head, its HTML and the names of attachments', async () => {
    const message = [
      'From: Ada <ada@x.test>',
      'To: bob@x.test',
      'Subject: =?utf-8?q?Caf=C3=A9?=',
      'Date: Sat, 31 Jan 2026 10:00:00 +0000',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: text/html',
      '',
      '<p>See <b>this</b>.</p>',
      '--b',
      'Content-Type: application/pdf; name=a.pdf',
      'Content-Disposition: attachment; filename=a.pdf',
      '',
      'x',
      '--b--',
      '',
    ].join('\r\n')
    const text =
      '# Café\n\nFrom: Ada <ada@x.test>\nTo: bob@x.test\nDate: 2026-01-31T10:00:00Z\nAttachments: a.pdf\n\nSee **this**.'
    expect(await read('a.eml', message)).toMatchObject({ title: 'Café', text })
    const mailbox = `From ada@x.test Sat Jan 31 10:00:00 2026\n${message}\nFrom ada@x.test Sat Jan 31 10:00:00 2026\nSubject: Two\n\n>From here\n`
    expect((await read('inbox', mailbox)).text).toBe(`${text}\n\n# Two\n\nFrom here`)
  })

  test('a notebook, and subtitles', async () => {
    const cells = [
      { cell_type: 'markdown', source: ['# Study\n', 'Text.'] },
      { cell_type: 'code', source: 'print(1)', outputs: [{ text: ['1\n'] }, { data: { 'image/png': 'x' } }] },
    ]
    expect(
      await read('a.ipynb', JSON.stringify({ cells, metadata: { kernelspec: { language: 'python' } } })),
    ).toMatchObject({
      title: 'Study',
      text: '# Study\nText.\n\n```python\nprint(1)\n```\n\n```\n1\n```',
    })
    const cues =
      '1\n00:00:01,000 --> 00:00:02,000\n<i>Hello</i>\n\n2\n00:00:03,000 --> 00:00:04,000\nworld.\n\n3\n00:01:00,000 --> 00:01:02,000\nLater.\n'
    expect((await read('a.srt', cues)).text).toBe('[00:00:01] Hello world.\n\n[00:01:00] Later.')
  })

  test.each([
    ['UTF-8 with a mark', Buffer.from('\ufeffGrüße'), 'Grüße'],
    ['UTF-16', Buffer.from('\ufeffGrüße', 'utf16le'), 'Grüße'],
    ['UTF-16 without a mark', Buffer.from('Many words in English.', 'utf16le'), 'Many words in English.'],
    [
      'Latin-1',
      Buffer.from('Grüße aus Köln, schöne Füße und viele Bücher über Bäume'.repeat(5), 'latin1'),
      'Grüße aus Köln, schöne Füße und viele Bücher über Bäume'.repeat(5),
    ],
    [
      'Shift JIS',
      Buffer.from('93fa967b8cea82cc8abf8e9a82c68abf8e9a82cc93fa967b8cea', 'hex'),
      '日本語の漢字と漢字の日本語',
    ],
  ])('text in %s', async (_, bytes, expected) => {
    expect(await read('a.txt', bytes)).toMatchObject({ text: expected, title: null, format: 'text' })
  })
})

describe('a file is refused with its reason', () => {
  test.each([
    [
      'an encrypted PDF',
      () => pdf([[[11, 'secret']]], { userPassword: 'x' }),
      'extraction_failed',
      'the file is encrypted',
    ],
    [
      'a truncated PDF',
      async () => (await pdf([[[11, 'text']]])).subarray(0, 300),
      'extraction_failed',
      'the file is a damaged PDF',
    ],
    [
      'a truncated Word file',
      async () => (await wordFile()).subarray(0, 3_000),
      'extraction_failed',
      'the file is a damaged archive',
    ],
    ['binary data', async () => Buffer.from([1, 0, 2, 3, 0, 0, 0, 5]), 'extraction_failed', 'binary data'],
    [
      'a book with an invalid reference',
      async () =>
        archive({
          mimetype: 'application/epub+zip',
          'META-INF/container.xml': '<container><rootfile full-path="book.opf"/></container>',
          'book.opf': '<package><item id="a" href="%zz"/><itemref idref="a"/></package>',
        }),
      'extraction_failed',
      'a damaged archive',
    ],
    [
      'a book with too many chapters',
      async () => {
        const chapters = Array.from({ length: 41 }, (_, at) => `chapter-${at}`)
        return archive({
          mimetype: 'application/epub+zip',
          'META-INF/container.xml': '<container><rootfile full-path="book.opf"/></container>',
          'book.opf': `<package>${chapters.map(id => `<item id="${id}" href="${id}"/><itemref idref="${id}"/>`).join('')}</package>`,
          ...Object.fromEntries(chapters.map(id => [id, `<p>${' '.repeat(1_000_000)}`])),
        })
      },
      'extraction_failed',
      'has more than 40 MB of text',
    ],
    [
      'a page with too many attributes',
      async () =>
        Buffer.from(`<html><p ${Array.from({ length: 20_000 }, (_, at) => `a${at}=1`).join(' ')}>x</p>`),
      'extraction_failed',
      'too many attributes',
    ],
    [
      'a page whose elements are nested too deeply',
      async () => Buffer.from(`<html>${'<abbr>'.repeat(501)}x`),
      'extraction_failed',
      'nested too deeply',
    ],
    [
      'a page with too many open elements',
      async () => Buffer.from(`<html>${'<p><b>x'.repeat(20_000)}`),
      'extraction_failed',
      'nested too deeply',
    ],
    ['an unknown archive', async () => archive({ 'a.txt': 'x' }), 'unsupported_file_type', 'a format that'],
    [
      'an old Word file',
      async () => Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]),
      'extraction_failed',
      'an old format of Microsoft Office',
    ],
  ] as const)('%s', async (_, make, code, message) => {
    await expect(read('a.doc', await make())).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    })
  })
})

test.each([
  ['spaces', ' '.repeat(200_000), 'x y'],
  ['empty lines', '\n'.repeat(200_000), 'x\n\ny'],
  ['no-break spaces', '&nbsp;'.repeat(200_000), 'x y'],
])('a long run of %s in a page becomes short', async (_, run, text) => {
  expect((await read('a.html', Buffer.from(`<html><pre>x${run}y</pre>`))).text).toContain(text)
})
