import { performance } from 'node:perf_hooks'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Block,
  blocksOf,
  emptyReader,
  readPiece,
  unfinishedBlocks,
} from '../../src/tui/markdown/blocks.ts'
import { highlight } from '../../src/tui/markdown/highlight.ts'
import { renderBlock, renderText } from '../../src/tui/markdown/render.ts'
import { paintFor } from '../../src/tui/parts/paint.ts'
import { lineWidth } from '../../src/tui/parts/spans.ts'

const paint = paintFor(false)

function shown(blocks: readonly Block[], width: number): string {
  return blocks
    .flatMap(block => [...(block.gap ? [''] : []), ...renderBlock(block, width, highlight).map(paint)])
    .join('\n')
}

/** Reads pieces. Returns the finished blocks and the unfinished ones. */
function piecewise(pieces: readonly string[]): { taken: Block[]; left: Block[] } {
  let reader = emptyReader
  const taken: Block[] = []
  for (const piece of pieces) {
    const step = readPiece(reader, piece)
    reader = step.reader
    taken.push(...step.blocks)
  }
  return { taken, left: unfinishedBlocks(reader) }
}

const text = `# Laws

Thermal and **elastic** similarity [1][2] hold in \`code\`:

1. First

   with more
2. Second
   - nested
     \`\`\`ts
     const a = 1
     \`\`\`

> quoted
> on

| name | what |
|---|---:|
| alpha | a long cell that does not fit in a narrow place |

~~~
raw  text
~~~
after [a link](https://example.com/x)
- [x] done
- [ ] open

---
Setext
===
end &amp; all`

describe('Markdown in pieces', () => {
  test('is rendered like whole text, regardless of the division', () => {
    const whole = shown(blocksOf(text), 50)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 30 }), sizes => {
        const pieces: string[] = []
        for (let at = 0, turn = 0; at < text.length; turn++) {
          const size = sizes[turn % sizes.length]!
          pieces.push(text.slice(at, at + size))
          at += size
        }
        const { taken, left } = piecewise(pieces)
        expect(shown([...taken, ...left], 50)).toBe(whole)
      }),
      { numRuns: 60 },
    )
  })

  test('is rendered with formatting, links, tables and code', () => {
    expect(shown(blocksOf(text), 34)).toBe(
      [
        'Laws',
        '',
        'Thermal and elastic similarity',
        '[1][2] hold in code:',
        '',
        '1. First',
        '',
        '   with more',
        '2. Second',
        '   – nested',
        '       const a = 1',
        '',
        '│ quoted on',
        '',
        'name                          what',
        '─────  ───────────────────────────',
        'alpha    a long cell that does not',
        '             fit in a narrow place',
        '',
        '  raw  text',
        '',
        'after a link',
        '(https://example.com/x)',
        '• ☑ done',
        '• ☐ open',
        '',
        '────────────────────────',
        'Setext',
        'end & all',
      ].join('\n'),
    )
  })

  test('tables do not break words of usual length, and become lists on narrow screens', () => {
    const table = '| flag | does |\n| --- | --- |\n| `--insecure-storage` | keeps the login in a file |\n'
    expect(shown(blocksOf(table), 36)).toBe(
      [
        'flag                does',
        '──────────────────  ────────────────',
        '--insecure-storage  keeps the login',
        '                    in a file',
      ].join('\n'),
    )
    expect(shown(blocksOf(table), 24)).toBe(
      ['flag:', '  --insecure-storage', 'does: keeps the login', '  in a file'].join('\n'),
    )
  })

  test('paragraphs, items and code lines are output as soon as they are finished', () => {
    expect(piecewise(['one\ntwo\n']).taken).toEqual([])
    expect(piecewise(['one\ntwo\n\n']).taken).toHaveLength(1)
    expect(piecewise(['- a\n- b\n- c']).taken.map(block => 'source' in block && block.source)).toEqual([
      '- a\n',
    ])
    const { taken, left } = piecewise(['```ts\n', ...Array.from({ length: 40 }, (_, at) => `line ${at}\n`)])
    expect(taken.map(block => 'lines' in block && block.lines.length)).toEqual([16])
    expect(left).toMatchObject([{ kind: 'code', language: 'ts' }])
    expect(piecewise(['```\na\n```\n']).taken).toMatchObject([{ kind: 'code', lines: ['a'] }])
    expect(piecewise(['```\na\n', '```']).left).toMatchObject([{ kind: 'code', lines: ['a'] }])
  })

  test('no line is wider than the screen, for any input', () => {
    const words = fc.constantFrom(
      '**',
      '`',
      '[',
      '](',
      '|',
      '\n',
      '\n\n',
      '- ',
      '1. ',
      '> ',
      '```\n',
      '日本語',
      '👩‍👩‍👧',
      'e\u0301',
      'word',
      ' ',
      '---',
      'averyveryverylongwordwithoutend',
      '\t',
    )
    fc.assert(
      fc.property(fc.array(words, { maxLength: 60 }), fc.integer({ min: 4, max: 80 }), (parts, width) => {
        const { taken, left } = piecewise(parts)
        for (const block of [...taken, ...left, ...blocksOf(parts.join(''))])
          for (const line of renderBlock(block, width, highlight))
            expect(lineWidth(line)).toBeLessThanOrEqual(Math.max(width, 12))
      }),
      { numRuns: 300 },
    )
  })

  test('decoded entities cannot form control sequences [security rule 16]', () => {
    const planted = [
      '&#27;]0;owned&#7;',
      '&#x1b;[2J',
      '&#x9d;0;owned&#x9c;',
      '&#155;2J',
      '&#x202e;',
      '&amp;#27;[2J',
    ]
    for (const one of planted) {
      const places = `${one}\n\n# ${one}\n\n- **${one}** \`${one}\` [${one}](http://h/${one} "${one}") ![${one}](${one}) <b ${one}>\n\n> ${one}\n\n|${one}|\n|-|\n|${one}|\n\n<p>${one}`
      const drawn = renderText(places, 60).map(paint).join('\n')
      expect(drawn, one).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]/)
    }
  })

  test('the cost of a piece does not depend on the length of the answer', () => {
    const cost = (lines: number) => {
      let reader = emptyReader
      const piece = '- an item of a list\n\nA paragraph that stands for itself.\n\n```\ncode\n```\n\n'
      for (let at = 0; at < lines; at++) reader = readPiece(reader, piece).reader
      const began = performance.now()
      for (let at = 0; at < 300; at++) reader = readPiece(reader, piece).reader
      return performance.now() - began
    }
    cost(300)
    const short = Math.min(cost(0), cost(0), cost(0))
    const long = Math.min(cost(3_000), cost(3_000), cost(3_000))
    expect(long).toBeLessThan(3 * short + 5)
    // A block that does not end is not an exception.
    let reader = emptyReader
    for (let at = 0; at < 20_000; at++) reader = readPiece(reader, 'words without an end ').reader
    for (let at = 0; at < 20_000; at++) reader = readPiece(reader, '| a | b |\n').reader
    expect(reader.tail.length).toBeLessThan(8_000)
  })

  test('code is colored by its language, and not if the language is unknown', () => {
    const [line] = highlight(['const a = "b" // c'], 'ts')!
    expect(line!.map(({ text: word, tones }) => [word.trim(), tones[0]])).toEqual([
      ['const', 'keyword'],
      ['a =', 'code'],
      ['"b"', 'string'],
      ['', 'code'],
      ['// c', 'dim'],
    ])
    expect(highlight(['x'], 'klingon')).toBeUndefined()
    expect(highlight(['x'], 'constructor')).toBeUndefined()
  })
})

test.each(['>', '> ', '- ', '1. ', '* 1. >'])('%j can nest to any depth and is drawn unchanged', mark => {
  const deep = mark.repeat(3_999)
  expect(shown(blocksOf(`first\n\n${deep}`), 80)).toContain(mark.repeat(10).trim())
})

test('splits a long table after a row, and repeats its header in each part', () => {
  const head = '| name | text |\n|---|---|\n'
  const rows = Array.from({ length: 150 }, (_, index) => `| row ${index} | ${'word '.repeat(12)}|\n`)
  const { taken, left } = piecewise(['Intro\n\n', head, ...rows, '\nafter\n'])
  const sources = [...taken, ...left].map(block => (block.kind === 'markdown' ? block.source : ''))
  const tables = sources.filter(source => source.startsWith(head))
  expect(tables.length).toBeGreaterThan(1)
  expect(sources).toHaveLength(tables.length + 2)
  expect(
    tables
      .map(source => source.slice(head.length))
      .join('')
      .trimEnd(),
  ).toBe(rows.join('').trimEnd())
  for (const { length } of tables) expect(length).toBeLessThan(4_300)
})

test('a newline at the end of a whole text adds no line', () => {
  for (const source of ['~~~\na', 'a', '- a', '| a |\n|---|\n| b |'])
    expect(blocksOf(`${source}\n`)).toEqual(blocksOf(source))
})
