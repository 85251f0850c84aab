import { describe, expect, test } from 'vitest'
import { sha256 } from '../../src/base/id.ts'
import { findContext, joinDocumentText } from '../../src/cli/passages/context.ts'
import { slicePart, widenToWords } from '../../src/cli/passages/markdown.ts'
import type { TextRange } from '../../src/cli/passages/matches.ts'
import type { Chunk } from '../../src/contract/documents.ts'
import { createChunker } from '../../src/knowledge/chunk/index.ts'
import { documentLines } from '../../src/tui/document/document-lines.ts'
import { chunkTexts } from '../harness/chunk-texts.ts'

async function* chunks(...texts: string[]): AsyncGenerator<Chunk> {
  for (const [chunkIndex, text] of texts.entries())
    yield { id: `${chunkIndex}`, chunkIndex, text, payload: {} }
}

/** Returns the location of a part in a text. */
function locationOf(text: string, part: string): TextRange {
  const start = text.indexOf(part)
  return { start, end: start + part.length }
}

describe('the text of a document', () => {
  test('joins the chunks without their overlaps, and locates the cited chunk', async () => {
    const all = chunks('One. Two. ', 'Two. Three. ', 'Four.')
    expect(await joinDocumentText(all, { chunkIndex: 1, isWhole: true, contentHash: null })).toEqual({
      text: 'One. Two. Three. Four.',
      cited: { start: 5, end: 17 },
    })
  })

  const rows = 'row\n'.repeat(300)
  const form = 'name:\n\n'.repeat(40)
  const sizes = { chunkUnit: null, maxChunkSize: 300, minChunkSize: null, overlapSize: 50 }
  test.each([
    ['equal lines', rows, { ...sizes, engine: 'langchain_ts', strategy: 'line' }],
    [
      'equal lines without overlap',
      rows,
      { ...sizes, engine: 'langchain_ts', strategy: 'line', overlapSize: 0 },
    ],
    [
      'equal lines in rows',
      rows,
      { ...sizes, engine: 'langchain_ts', strategy: 'line', chunkUnit: 'rows', maxChunkSize: 2 },
    ],
    [
      'blank lines',
      form,
      { ...sizes, engine: 'langchain_ts', strategy: 'line', overlapSize: 0, maxChunkSize: 6 },
    ],
    [
      'equal lines',
      `# Rows\n\n${rows}`,
      { ...sizes, engine: 'langchain_ts', strategy: 'recursive', overlapSize: 200 },
    ],
    ['equal sentences', 'Nothing new. '.repeat(90), { ...sizes, engine: 'workbase', strategy: 'sentence' }],
    ['equal paragraphs', `${form}${rows}${form}`, { ...sizes, engine: 'workbase', strategy: 'sentence' }],
  ])('keeps all %s of a text with a known hash', async (_what, text, service) => {
    const all = chunks(...chunkTexts(createChunker(service), text))
    const { text: found } = await joinDocumentText(all, {
      chunkIndex: 0,
      isWhole: true,
      contentHash: sha256(text),
    })
    expect(found).toBe(text)
  })

  test('keeps equal chunks and repeated text if the hash is unknown', async () => {
    const texts = (...parts: string[]) =>
      joinDocumentText(chunks(...parts), { chunkIndex: 0, isWhole: true, contentHash: null })
    expect((await texts('No change.', 'No change.', 'No change.')).text).toBe('No change.'.repeat(3))
    const service = { ...sizes, engine: 'langchain_ts', strategy: 'line', overlapSize: null }
    expect((await texts(...chunkTexts(createChunker(service), rows))).text).toBe(rows)
  })

  test('has no location for a deleted chunk', async () => {
    const wanted = { chunkIndex: 7, isWhole: false, contentHash: null }
    expect(await joinDocumentText(chunks('One.'), wanted)).toEqual({ text: 'One.' })
  })

  test('is read only to the end of the context', async () => {
    let read = 0
    async function* countingChunks() {
      for await (const chunk of chunks(
        'first',
        ...Array.from({ length: 50 }, (_, at) => `${at}`.repeat(200)),
      )) {
        read++
        yield chunk
      }
    }
    await joinDocumentText(countingChunks(), { chunkIndex: 0, isWhole: false, contentHash: null })
    expect(read).toBeLessThan(12)
    await joinDocumentText(countingChunks(), { chunkIndex: 0, isWhole: true, contentHash: null })
    expect(read).toBeGreaterThan(51)
  })
})

describe('the context of a passage', () => {
  const sections = '# Title\n\nIntro.\n\n## Second\n\nBefore it. The passage. After it.\n\n## Third\n\nEnd.\n'

  test('is limited to its section', () => {
    const { context: around, section } = findContext(sections, locationOf(sections, 'The passage.'), true)
    expect(sections.slice(around.start, around.end)).toBe(
      '## Second\n\nBefore it. The passage. After it.\n\n',
    )
    expect(section).toBe('Second')
  })

  test('includes every section that the passage overlaps', () => {
    const passage = 'After it.\n\n## Third\n\nEnd.'
    const { context: around, section } = findContext(sections, locationOf(sections, passage), true)
    expect(sections.slice(around.start)).toMatch(/^## Second/)
    expect(section).toBe('Third')
  })

  test('does not mistake a line of code for a heading', () => {
    const text = '# A\n\n```sh\n# no heading\n```\n\nThe passage.\n'
    const { context: around } = findContext(text, locationOf(text, 'The passage.'), true)
    expect(around).toEqual({ start: 0, end: text.length })
  })

  test('is cut between paragraphs in a long text', () => {
    const paragraphs = Array.from({ length: 60 }, (_, at) => `Paragraph ${at} has some words in it.`)
    const text = paragraphs.join('\n\n')
    const { context: around } = findContext(text, locationOf(text, paragraphs[30]!), false)
    const shown = text.slice(around.start, around.end).split('\n\n')
    expect(paragraphs).toEqual(expect.arrayContaining(shown))
    expect(shown.length).toBeGreaterThan(20)
    expect(shown.length).toBeLessThan(60)
  })
})

describe('a Markdown excerpt', () => {
  const code = 'Text.\n\n```sh\nfirst\nsecond\n```\n\nMore.\n'
  const table = '| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n'

  test('is code if it starts in a code block', () => {
    expect(slicePart(code, locationOf(code, 'second\n```'))).toBe('```sh\nsecond\n```')
    expect(slicePart(code, locationOf(code, 'More.'))).toBe('More.')
  })

  test('includes the header if it starts in a table', () => {
    expect(slicePart(table, locationOf(table, '| 3 | 4 |'))).toBe('| a | b |\n| --- | --- |\n| 3 | 4 |')
    expect(slicePart(table, { start: 0, end: 9 })).toBe('| a | b |')
  })

  test.each([
    ['words', 'Some wordy text here', 'ordy te', 'wordy text'],
    ['lines of code', code, 'irst\nsec', 'first\nsecond'],
    ['rows of a table', table, '1 | 2 |\n| 3', '| 1 | 2 |\n| 3 | 4 |'],
  ])('is extended to whole %s', (_what, text, part, whole) => {
    const { start, end } = widenToWords(text, locationOf(text, part))
    expect(text.slice(start, end)).toBe(whole)
  })
})

describe('a document in a terminal', () => {
  const text = '# Title\n\nBefore.\n\nThe passage.\n\nAfter \x1b[2Jit.\n'
  const look = { columns: 40, isMarkdown: true, dimsContext: true }
  const lines = (passage: TextRange | undefined, isMarkdown = true) =>
    documentLines(text, { start: 0, end: text.length }, passage, { ...look, isMarkdown })

  test('has a bar next to the passage and a dimmed context', () => {
    const shown = lines(locationOf(text, 'The passage.'))
    expect(shown.map(line => line.map(({ text }) => text).join(''))).toEqual([
      '    Title',
      '',
      '    Before.',
      '',
      '  ▌ The passage.',
      '',
      '    After it.',
    ])
    expect(shown.map(line => line.at(-1)?.tones)).toEqual([
      ['heading'],
      undefined,
      ['dim'],
      undefined,
      [],
      undefined,
      ['dim'],
    ])
  })

  test('has no bar without a cited passage', () => {
    const shown = lines(undefined).map(line => line.map(({ text }) => text).join(''))
    expect(shown).toContain('    The passage.')
    expect(shown.join()).not.toContain('▌')
  })

  test('keeps lines and indentation if it is not Markdown', () => {
    const plainText = 'a:\n    b: 1\n'
    const shown = documentLines(plainText, { start: 0, end: plainText.length }, undefined, {
      ...look,
      isMarkdown: false,
    })
    expect(shown.map(line => line.map(({ text }) => text).join(''))).toEqual(['    a:', '        b: 1'])
  })
})
