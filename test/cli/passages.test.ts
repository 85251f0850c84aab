import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { words } from '../../src/base/words.ts'
import { excerpt, highlightMatches } from '../../src/cli/passages/excerpt.ts'
import { limitPerDocument, type Passage } from '../../src/cli/passages/find-passages.ts'
import { readMarkdown, sectionAt } from '../../src/cli/passages/markdown.ts'
import { stemsOf } from '../../src/cli/passages/matches.ts'
import { coverageBar, excerptWithSection, formatScores } from '../../src/cli/passages/print-passages.ts'
import { displayWidth } from '../../src/cli/terminal/terminal-text.ts'

const size = { width: 40, lines: 3 }
const filler = 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor '.repeat(8)

function markedExcerpt(text: string, question: string): string {
  return excerpt(text, stemsOf(question), size)
    .map(line => highlightMatches(line, word => `<${word}>`))
    .join(' ')
}

describe('excerpts', () => {
  test('shows a short passage in full', () => {
    expect(markedExcerpt('Keys rotate by replacement.', 'how do keys rotate')).toBe(
      '<Keys> <rotate> by replacement.',
    )
  })

  test('shows the part with most of the search terms, with marks and with ellipses at the cuts', () => {
    const text = `${filler} rotate. ${filler}. To rotate API keys, mint a successor key. ${filler}`
    const excerpted = markedExcerpt(text, 'how are api keys rotated')
    expect(excerpted).toContain('To <rotate> <API> <keys>, mint a successor <key>.')
    expect(excerpted).toMatch(/^… .* …$/)
  })

  test('does not mark stop words unless the question has no other words', () => {
    expect(markedExcerpt('what is it about', 'what is a whale')).toBe('what is it about')
    expect(markedExcerpt('to be or not', 'to be or not to be')).toBe('<to> <be> <or> <not>')
  })

  test('marks words regardless of case, accents and plural, as they are written', () => {
    expect(markedExcerpt('Die Ärzte, CAFÉS, cafe', 'café arzte')).toBe('Die <Ärzte>, <CAFÉS>, <cafe>')
  })

  test('breaks text without spaces between its words', () => {
    const lines = excerpt('检索增强生成系统使用知识库来回答问题'.repeat(20), stemsOf('知识库'), size)
    expect(lines.length).toBeLessThanOrEqual(3)
    for (const line of lines) expect(displayWidth(line.text)).toBeLessThanOrEqual(size.width)
  })

  test('puts table rows, list items and lines of code on separate lines, from their start', () => {
    const rows = ['a', 'b', 'c', 'd', 'e'].map(name => `| file \`${name}.lock\` | the runtime | ${name}s |`)
    const table = `| what | who | why |\n| --- | --- | --- |\n${rows.join('\n')}\n`
    const page = `${table}\nEnd.\n\n- one\n  more\n- two\n\nAfter.\n\`\`\`sh\nls\n\`\`\`\nLast.\n`
    const { text, lineStarts } = readMarkdown(page, '')
    const lines = (question: string) =>
      excerpt(text, stemsOf(question), { width: 60, lines: 3 }, lineStarts).map(line => line.text)
    expect(lines('ds')).toEqual([
      'file d.lock · the runtime · ds',
      'file e.lock · the runtime · es',
      'End. …',
    ])
    expect(lines('more')).toEqual(['- one more', '- two', 'After. …'])
    expect(lines('last')).toEqual(['After.', 'ls', 'Last.'])
  })

  const rows = Array.from({ length: 13 }, (_, at) => `Person${at},Town${at},555-01${at}`)

  test('contains the match after long words', () => {
    expect(markedExcerpt(`${rows.join('\n')}\nZelda,Quimper,555-9999`, 'quimper')).toContain(
      'Zelda,<Quimper>,',
    )
  })

  test.each(['text/csv', 'text/tab-separated-values'])('puts the rows of %s on separate lines', fileType => {
    const document = { fileType, sourceFilename: null, metadata: {} } as unknown
    const passage = { id: 'c', text: [...rows, 'Zelda,Quimper,1'].join('\n'), document } as Passage
    const lines = excerptWithSection(passage, stemsOf('town3'), { width: 60, lines: 3 }).lines
    expect(lines.map(({ text }) => text.split(' …')[0])).toEqual(rows.slice(3, 6))
  })

  test('breaks a row that is wider than a line between its cells', () => {
    const row = Array.from({ length: 40 }, (_, at) => `cell${at}`).join(',')
    const lines = excerpt(row, stemsOf('cell30'), size)
    expect(lines.map(({ text }) => text).join('')).toContain('cell30')
    for (const { text } of lines) expect(displayWidth(text)).toBeLessThanOrEqual(size.width)
  })

  test('keeps words whole, lines within the width, and marks on words of the question, for any text', () => {
    const word = fc.stringMatching(/^[a-z]{1,9}[.,]?$/)
    const texts = fc.array(word, { minLength: 1, maxLength: 200 }).map(all => all.join(' '))
    fc.assert(
      fc.property(
        texts,
        fc.array(word, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 16, max: 90 }),
        (text, asked, width) => {
          const stems = stemsOf(asked.join(' '))
          const lines = excerpt(text, stems, { width, lines: 3 })
          expect(lines.length).toBeLessThanOrEqual(3)
          const whole = new Set(text.split(' '))
          const marks: string[] = []
          for (const line of lines) {
            expect(displayWidth(line.text)).toBeLessThanOrEqual(width)
            for (const token of line.text.split(' ')) if (token !== '…') expect(whole).toContain(token)
            marks.push(...line.marks.map(({ start, end }) => line.text.slice(start, end)))
          }
          for (const mark of marks)
            expect([...stemsOf(mark)].some(stem => stems.has(stem)) || stems.has(words(mark)[0]!)).toBe(true)
        },
      ),
    )
  })
})

describe('limitPerDocument', () => {
  const hit = (document: string, index: number) => ({
    id: `${document}:${index}`,
    score: 1,
    payload: { documentId: document, chunkIndex: index },
  })
  const crowd = [
    ...Array.from({ length: 30 }, (_, index) => hit('a', index)),
    ...['b', 'c', 'd'].map(name => hit(name, 0)),
  ]

  test('limits a document to three of ten passages', () => {
    const chosen = limitPerDocument(crowd, 10)
    expect(chosen.map(({ id }) => id)).toEqual(['a:0', 'a:1', 'a:2', 'b:0', 'c:0', 'd:0'])
  })

  test('moves surplus passages to the next ten', () => {
    const many = [...crowd, ...Array.from({ length: 20 }, (_, index) => hit(`e${index}`, 0))]
    const chosen = limitPerDocument(many, 20).map(({ id }) => id)
    expect(chosen).toHaveLength(20)
    for (const from of [0, 10])
      expect(chosen.slice(from, from + 10).filter(id => id.startsWith('a:')).length).toBeLessThanOrEqual(3)
    expect(chosen.slice(10)).toContain('a:3')
  })

  test('counts documents with the same ID in two knowledge bases individually', () => {
    const hits = ['x', 'y'].flatMap(knowledgeBaseId =>
      [0, 1, 2, 3].map(index => ({ ...hit('a', index), knowledgeBaseId })),
    )
    expect(limitPerDocument(hits, 10)).toHaveLength(6)
  })

  test('counts records without a document individually', () => {
    const records = Array.from({ length: 5 }, (_, index) => ({ id: `r${index}`, score: 1 }))
    expect(limitPerDocument(records, 10)).toHaveLength(5)
  })
})

test('shows coverage in five steps, and fills the bar only at full coverage', () => {
  expect([1, 0.999, 0.8, 0.5, 0.2, 0.19, 0].map(coverage => coverageBar(coverage).join(''))).toEqual([
    '▮▮▮▮▮',
    '▮▮▮▮▯',
    '▮▮▮▮▯',
    '▮▮▯▯▯',
    '▮▯▯▯▯',
    '▯▯▯▯▯',
    '▯▯▯▯▯',
  ])
})

test('aligns numbers, and shows only the score without coverage', () => {
  expect(formatScores({ score: 0.5, coverage: 1 })).toBe('0.5000  100 %')
  expect(formatScores({ score: 1, coverage: 0.0768 })).toBe('1.0000    7 %')
  expect(formatScores({ score: 1, coverage: undefined })).toBe('1.0000')
})

describe('Markdown', () => {
  const text =
    '## Keys\n\nText with **bold** and [a link](x.html).\n\n```sh\n# no heading\n```\n\n### Rotation ###\n\n| a | b |\n| --- | --- |\n| c | `d` |\n'

  test('removes markup, and the heading that repeats the title', () => {
    expect(readMarkdown(text, 'Keys').text.replace(/\s+/g, ' ').trim()).toBe(
      'Text with bold and a link. # no heading Rotation: c · d',
    )
    expect(readMarkdown(text, 'Other').text).toMatch(/^Keys:/)
  })

  test('omits comments outside of code', () => {
    const page = 'one <!-- hidden --> two\n<!-- hidden -->\n```html\n<!-- shown -->\n```\n'
    expect(readMarkdown(page, '').text.split(/\s*\n/)).toEqual(['one  two', '<!-- shown -->', ''])
  })

  test('finds the last heading outside of code before a position', () => {
    const readable = readMarkdown(text, 'Keys')
    const at = (word: string) => sectionAt(readable, readable.text.indexOf(word))?.title
    expect([at('bold'), at('no heading'), at('d\n')]).toEqual(['Keys', 'Keys', 'Rotation'])
    expect(sectionAt(readMarkdown('no heading', ''), 3)).toBeUndefined()
  })
})

test.each([
  [
    'the headings of the chunk, if its text has none',
    'Keys leave.',
    'Security > Keys > Rotate',
    'Keys › Rotate',
  ],
  ['a heading before the match, if there is one', 'Before.\n\n## Leave\n\nKeys.', 'Security > Keys', 'Leave'],
  ['nothing, if the heading is the title', 'Keys leave.', 'Security', undefined],
  ['nothing for old chunks', 'Keys leave.', undefined, undefined],
])('a card shows %s', (_, text, section, expected) => {
  const document = { sourceFilename: 'security.md', metadata: { title: 'Security' } } as unknown
  const passage = { id: 'c', text, section, document } as Passage
  expect(excerptWithSection(passage, stemsOf('keys'), size).section).toBe(expected)
})
