import { describe, expect, test } from 'vitest'
import type { SearchExplanation } from '../../../src/contract/search-explanation.ts'
import { paintFor } from '../../../src/tui/parts/paint.ts'
import { cardHeight, cardLines } from '../../../src/tui/playground/cards.ts'
import { layoutPlayground } from '../../../src/tui/playground/layout.ts'
import { base, PlaygroundDriver, passage } from './playground-driver.ts'

const esc = '\x1b'
const paint = paintFor(false)

function layout(play: PlaygroundDriver) {
  const { above, below, side, header, field, resultRows, resultColumns, cursor } = layoutPlayground(
    play.state,
  )
  return {
    header: paint(header),
    field: field.lines.map(paint),
    above: above.map(paint),
    below: below.map(paint),
    side: side?.map(paint),
    resultRows,
    resultColumns,
    cursor,
  }
}

const sized = (columns: number, rows: number) =>
  new PlaygroundDriver({ size: { columns, rows }, bases: [base('papers')] }).type('heat').answer('a')

describe('the layout', () => {
  test('has the settings beside the passages from 90 columns on', () => {
    expect(layout(sized(90, 30))).toMatchObject({ resultColumns: 63, above: [''] })
    expect(layout(sized(90, 30)).side).toHaveLength(18)
    const narrow = layout(sized(89, 30))
    expect(narrow).toMatchObject({ resultColumns: 89, side: undefined })
    expect(narrow.above).toEqual([
      '  mode hybrid  weight auto  rerank off  filter none  limit 10  scores bars  explain line',
      '',
    ])
  })

  test.each([
    ['the question', '', true],
    ['a filter', `${esc}f`, true],
    ['a limit', `${esc}k`, true],
    ['a list to copy from', `${esc}c`, false],
    ['the knowledge bases', '\t', false],
    ['the help', `${esc}?`, false],
  ])('with %s shows the settings beside the passages, or a panel instead', (_name, typed, hasSide) => {
    expect(layout(sized(100, 30).type(typed)).side !== undefined).toBe(hasSide)
  })

  test.each([
    ['the question', '', { x: 6, y: 2 }],
    ['the settings', esc, undefined],
    ['a filter', `${esc}fab`, { x: 4, y: 2 }],
    ['a limit', `${esc}k`, { x: 2, y: 2 }],
    ['a list to copy from', `${esc}c`, undefined],
    ['the help', `${esc}?`, undefined],
    ['the knowledge bases', '\t', { x: 2, y: 2 }],
  ])('with %s has the cursor where text can be typed', (_name, typed, cursor) => {
    expect(layout(sized(100, 30).type(typed)).cursor).toEqual(cursor)
  })

  test('of a low screen has no frame and no command', () => {
    const { field, below, resultRows, cursor } = layout(sized(100, 14))
    expect([field, below.length, resultRows, cursor]).toEqual([['heat'], 3, 5, { x: 6, y: 2 }])
    const unframed = layout(sized(100, 13))
    expect([unframed.field, unframed.below.length, unframed.resultRows]).toEqual([['> heat'], 3, 6])
    expect(unframed.cursor).toEqual({ x: 6, y: 1 })
    expect(layout(sized(100, 11))).toMatchObject({ resultRows: 6 })
    expect(layout(sized(100, 12)).below).toHaveLength(3)
    expect(layout(sized(100, 11)).below).toHaveLength(1)
    expect(layout(sized(23, 30)).field).toEqual(['> heat'])
    expect(layout(sized(24, 30)).field).toEqual(['heat'])
    expect(layout(sized(100, 2))).toMatchObject({ resultRows: 0, cursor: undefined })
  })

  test('has the result at the end of the first line', () => {
    expect(layout(sized(40, 20)).header).toBe('  papers  demo            1 hit · 7 ms')
    expect(layout(sized(24, 20)).header).toBe('  papers… 1 hit · 7 ms')
  })

  test('shows the waiting time of a slow search from 151 ms on', () => {
    const headerAt = (nowMs: number) =>
      layout(new PlaygroundDriver().type('heat').event({ type: 'tick', nowMs })).header
    expect(headerAt(120 + 150)).not.toContain('searching')
    expect(headerAt(120 + 151)).toMatch(/ searching$/)
    expect(headerAt(120 + 999)).toMatch(/ searching$/)
    expect(headerAt(120 + 1_000)).toMatch(/ searching 1 s$/)
  })

  test('shows a notice instead of the keys, in at most two lines', () => {
    const play = sized(40, 20).event({ type: 'noted', text: 'word '.repeat(30) })
    expect(layout(play).below.slice(2)).toEqual(Array(2).fill(`  ${'word '.repeat(7).trim()}`))
  })
})

test.each([
  ['', '  esc settings  tab base  enter opens  up/down choose  ctrl+c leaves'],
  ['\r', '  esc settings  tab base  enter closes  up/down choose  ctrl+c leaves'],
  ['\x15', '  esc settings  tab base  ctrl+c leaves'],
  [esc, '  esc question  left/right weight  c copy  ? help  enter opens  up/down choose  q quit'],
  ['\t', '  enter applies  up/down choose  esc back'],
  [`${esc}f`, '  enter applies  esc back'],
  [`${esc}k`, '  enter applies  esc back'],
  [`${esc}c`, '  enter copies  up/down choose  esc back'],
  [`${esc}?`, '  up/down move  other keys back'],
])('after %j the last line lists the keys', (typed, keys) => {
  expect(layout(sized(100, 30).type(typed)).below.at(-1)).toBe(keys)
})

test('without a knowledge base, escape leaves', () => {
  const play = new PlaygroundDriver({ bases: [base('a'), base('b')] })
  expect(layout(play)).toMatchObject({
    field: ['type to filter the list'],
    header: expect.stringMatching(/^ {2}playground {2}demo/),
  })
  expect(layout(play).below.at(-1)).toBe('  enter applies  up/down choose  esc leaves')
  expect(layout(new PlaygroundDriver()).field).toEqual(['ask papers'])
})

test.each([
  ['\t\x1b[B\x1b[B\x1b[B\r', 'c'],
  ['\t\x1b[B\x1b[B\x1b[A\r', 'b'],
  ['\t\x1b[A\r', 'a'],
  ['\tB\r', 'b'],
  ['\t\x1b[Bx\x7f\r', 'a'],
  ['\tzz\r', 'a'],
])('after %j the knowledge base is %s', (typed, name) => {
  const bases = [base('a'), base('b'), base('c')]
  const play = new PlaygroundDriver({ bases, base: bases[0] }).type(typed)
  expect(play.state.base?.name).toBe(name)
})

test('typing in the list of knowledge bases selects the first match', () => {
  const bases = [base('papers'), base('handbook'), base('old_papers')]
  const play = new PlaygroundDriver({ bases, base: bases[1] }).type('\tp\r')
  expect(play.state.base?.name).toBe('papers')
})

test.each([
  ['1\r', 1],
  ['100\r', 100],
  ['101\r', 10],
  ['2.5\r', 10],
  ['\r', 10],
])('after %j in the limit, the limit is %i', (typed, limit) => {
  expect(sized(100, 30).type(`${esc}k`).type(typed).state.settings.limit).toBe(limit)
})

test.each([
  ['\r', 'wb'],
  ['\x1b[B\r', 'curl'],
  ['\x1b[B\x1b[B\x1b[B\r', 'TypeScript'],
  ['\x1b[A\r', 'wb'],
  ['t', 'TypeScript'],
])('after %j in the list of commands, %s is copied', (typed, label) => {
  expect(sized(100, 30).type(`${esc}c`).type(typed).effects.at(-1)).toMatchObject({ type: 'copy', label })
})

describe('a card', () => {
  const play = sized(60, 30)
  const options = {
    width: 40,
    isChosen: false,
    isOpen: false,
    showsNumbers: false,
    showsReasons: false,
    grades: new Map(),
  }
  const cards = (
    more: Parameters<typeof passage>[1],
    change: Partial<typeof options> = {},
    rank?: number | 'new',
  ) => {
    const results = {
      ...play.state.results!,
      passages: [passage('a', { text: 'what heat does', ...more })],
      rankChanges: new Map(rank === undefined ? [] : [['a', rank]]),
    }
    const lines = cardLines(results, 0, { ...options, ...change })
    expect(cardHeight(results, 0, { ...options, ...change })).toBe(lines.length)
    return lines.map(paint)
  }

  test('explains the rank in a line, or in a table', () => {
    const list = { weight: 0.5, rank: 1, score: 2, scaledScore: 1, contribution: 0.5 }
    const explanation: SearchExplanation = {
      fusedScore: 1,
      lists: [
        { name: 'lexical', ...list },
        { name: 'vector', ...list },
      ],
      weighting: null,
      words: [{ word: 'heat', match: 'word', terms: ['heat'], passages: 1, weight: 2, score: 2 }],
      filtered: false,
      rerank: { from: 3, to: 1, service: 'cohere' },
    }
    const wide = { width: 80 }
    expect(cards({ explanation }, wide)).toContain('     words #1 50 % · vectors #1 50 % · heat')
    expect(cards({ explanation }, { ...wide, showsReasons: true }).slice(-6)).toEqual([
      '     list     weight  rank  score  scaled   adds',
      '     words      50 %     1  2.000   1.000  0.500',
      '     vectors    50 %     1  2.000   1.000  0.500',
      '     matches  heat 2.000',
      '     reranked by cohere from 3 to 1',
      '',
    ])
  })

  test('has a title, an excerpt, a location and an empty line', () => {
    expect(cards({})).toEqual([
      '   1 a                             ▮▮▮▮▮',
      '     what heat does',
      '     chunk 0',
      '',
    ])
    expect(cards({ chunkIndex: null }, { isChosen: true })).toEqual([
      '›  1 a                             ▮▮▮▮▮',
      '     what heat does',
      '',
    ])
  })

  test.each([
    [2, '+2 '],
    [-1, '-1 '],
    [0, '0 '],
    ['new', 'new '],
  ] as const)('with the rank change %s shows "%s"', (rank, label) => {
    expect(cards({}, {}, rank)[0]).toMatch(new RegExp(` ${label.replace('+', '\\+')}▮▮▮▮▮$`))
  })

  test('shows the score as a number too, and no bar without coverage', () => {
    expect(cards({ score: 0.5, coverage: 0.42 }, { showsNumbers: true, showsReasons: false })[0]).toMatch(
      / 0\.5000 +42 % ▮▮▯▯▯$/,
    )
    expect(cards({ coverage: undefined })[0]).toMatch(/^ {3}1 a *$/)
  })

  test('shows the whole passage when it is open, with at most one empty line between paragraphs', () => {
    const text = `${'word '.repeat(20)}\n\n \nend`
    expect(cards({ text })).toHaveLength(5)
    const whole = cards({ text }, { isOpen: true })
    expect(whole.slice(-3)).toEqual(['     end', '     chunk 0', ''])
    expect(whole).toHaveLength(8)
  })
})
