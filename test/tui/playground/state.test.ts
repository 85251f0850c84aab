import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { displayWidth } from '../../../src/cli/terminal/terminal-text.ts'
import { equivalents } from '../../../src/tui/playground/equivalents.ts'
import { requestOf } from '../../../src/tui/playground/request.ts'
import { base, keysOf, PlaygroundDriver, searchResults } from './playground-driver.ts'

const [up, down, pageDown, esc, enter] = ['\x1b[A', '\x1b[B', '\x1b[6~', '\x1b', '\r']

describe('the question', () => {
  test('is searched after a pause in typing, and not again if it is unchanged', () => {
    const play = new PlaygroundDriver().type('heat')
    expect(play.effects).toMatchObject([
      { type: 'stop' },
      { type: 'search', serial: 1, delayMs: 120, request: { body: { text: 'heat', topK: 10 } } },
    ])
    play.type(' ')
    expect(play.state.serial).toBe(1)
    play.answer('a').type('s\x7f')
    expect(play.effects.at(-1)).toEqual({ type: 'stop' })
    expect(play.state.pending).toBeUndefined()
    play.type('\x15')
    expect(play.state).toMatchObject({ results: undefined, pending: undefined })
    expect(play.effects.at(-1)).toEqual({ type: 'stop' })
  })

  test('from the command line is searched immediately, and pasted text becomes one line', () => {
    expect(new PlaygroundDriver({ question: 'heat' }).effects).toMatchObject([{ type: 'search', delayMs: 0 }])
    expect(new PlaygroundDriver().type('\x1b[200~two\nlines\x1b[201~').request).toMatchObject({
      text: 'two lines',
    })
  })

  test('keeps the old passages until the new ones arrive, and ignores late ones', () => {
    const play = new PlaygroundDriver().type('a').answer('one').type('b').type('c')
    expect(play.state.serial).toBe(3)
    play.event({ type: 'searched', serial: 2, results: searchResults('late') })
    expect(play.state.results?.passages).toMatchObject([{ id: 'one' }])
    play.event({ type: 'failed', serial: 2, failure: { isUnavailable: false, code: 'x', message: 'late' } })
    expect(play.state).toMatchObject({ failure: undefined, pending: {} })
    expect(play.answer('two').state.results?.passages).toMatchObject([{ id: 'two' }])
  })

  test('stays after an error, and is retried while the runtime is unreachable', () => {
    const play = new PlaygroundDriver().type('a').answer('one').type('b')
    const away = { isUnavailable: true, code: undefined, message: 'nothing answers' }
    play.event({ type: 'failed', serial: 2, failure: away }, { type: 'failed', serial: 2, failure: away })
    expect(play.effects.slice(-2)).toMatchObject([
      { type: 'search', serial: 2, delayMs: 500 },
      { type: 'search', serial: 2, delayMs: 1000 },
    ])
    expect(play.screen).toContain('the runtime is unreachable, retrying; the question is kept')
    const refused = { isUnavailable: false, code: 'rerank_not_supported', message: 'it has no index' }
    play.event({ type: 'failed', serial: 2, failure: refused })
    expect(play.screen).toContain('✗ it has no index (rerank_not_supported)')
    expect(play.lines[2]).toContain('│ ab')
    expect(play.type('c').answer('two').screen).not.toContain('✗')
  })
})

describe('the settings', () => {
  test.each([
    ['h', { hybrid: true, lexicalWeight: 1 }],
    ['hh', { hybrid: false }],
    ['hhh', {}],
    ['w', { hybrid: true, lexicalWeight: 0.5 }],
    ['ww', {}],
    ['\x1b[C\x1b[C', { hybrid: true, lexicalWeight: 0.7 }],
    ['\x1b[D'.repeat(9), { hybrid: true, lexicalWeight: 0 }],
    ['r', { rerank: true }],
    ['dg', { diversity: 0.3, groupBy: 'document' }],
    ['dddd', {}],
    ['nn', { neighbors: 2 }],
    ['k25\r', { topK: 25 }],
    ['flang=en year=1960\r', { filter: { $and: [{ lang: 'en' }, { year: { $in: [1960, '1960'] } }] } }],
    ['f{"lang":"en"}\r', { filter: { lang: 'en' } }],
    ['fyear >= 1960 and lang = en\r', { filter: { $and: [{ year: { $gte: 1960 } }, { lang: 'en' }] } }],
    ['flang=en\rf\x15\r', {}],
    ['h/and more', { text: 'heatand more', hybrid: true, lexicalWeight: 1 }],
  ])('esc and %j search with %j', (typed, more) => {
    const play = new PlaygroundDriver().type(`heat${esc}`).type(typed)
    const body = JSON.parse(JSON.stringify(requestOf(play.state)!.body))
    expect(body).toEqual({ text: 'heat', topK: 10, ...more })
  })

  test.each([
    ['flang\r', 'type a condition such as year >= 2024, or a JSON object'],
    ['f{"lang\r', 'this is not a complete JSON object'],
    ['k0\r', 'a number from 1 to 100'],
    ['h\x1b[C', 'the weight applies to hybrid mode only'],
    ['z', 'press esc to go back to the question'],
  ])('esc and %j show the message: %s', (typed, told) => {
    expect(new PlaygroundDriver().type(`heat${esc}`).type(typed).screen).toContain(told)
  })

  test('start with vector search without lexical search, and with a reranker suppress its note', () => {
    const play = new PlaygroundDriver({
      bases: [base('bare', { isLexical: false, hasReranker: true })],
    }).type('heat')
    expect(play.request).toEqual({ text: 'heat', topK: 10, rerank: false })
    expect(play.type(`${esc}`).type('hr').request).toMatchObject({ hybrid: true, rerank: true })
  })

  test('show how far a passage moved since the last search of the question with other settings', () => {
    const play = new PlaygroundDriver()
      .type('heat')
      .answer('a', 'b', 'c')
      .type(`${esc}`)
      .type('h')
      .answer('c', 'a', 'd')
    expect([...play.state.results!.rankChanges]).toEqual([
      ['c', 2],
      ['a', -1],
      ['d', 'new'],
    ])
    expect(play.screen).toMatch(/1 c .* \+2 ▮▮▮▮▮/)
    expect(play.type('/s').answer('a').state.results!.rankChanges.size).toBe(0)
  })
})

describe('passages', () => {
  test('are selected with arrow keys, and opened with enter or their number', () => {
    const play = new PlaygroundDriver()
      .type('heat')
      .answer('a', 'b', 'c')
      .type(`${down}${down}${down}${up}${enter}`)
    expect(play.state).toMatchObject({ selectedIndex: 1, isOpen: true })
    expect(play.type(down).state).toMatchObject({ selectedIndex: 2, isOpen: false })
    expect(play.type('\x1b1').state).toMatchObject({ selectedIndex: 0, isOpen: true })
    expect(play.type(pageDown).state).toMatchObject({ selectedIndex: 2, isOpen: false })
    expect(new PlaygroundDriver().type(`${enter}${down}`).state).toMatchObject({
      selectedIndex: 0,
      isOpen: false,
    })
  })

  test('that are longer than the screen scroll to their end before the next one is selected', () => {
    const play = new PlaygroundDriver({ size: { columns: 40, rows: 16 } }).type('word')
    const long = { ...searchResults('long', 'next') }
    const text = Array.from({ length: 40 }, (_, line) => `word ${line}`).join('\n')
    const passages = long.passages.map(one => ({ ...one, text }))
    play.event({ type: 'searched', serial: 1, results: { ...long, passages } }).type(enter)
    expect(play.screen).toContain('word 0')
    for (let presses = 0; presses < 10; presses++) play.type(pageDown)
    expect(play.state.selectedIndex).toBe(1)
    play.type(`${up}${enter}`)
    for (let presses = 0; presses < 60 && play.state.selectedIndex === 0; presses++) play.type(down)
    expect(play.state).toMatchObject({ selectedIndex: 1, isOpen: false })
  })
})

describe('the knowledge base', () => {
  const bases = [base('papers'), base('handbook'), base('old_papers')]

  test('is selected from a list with a typed filter', () => {
    const play = new PlaygroundDriver({ bases })
    expect(play.type('pap').screen).toMatch(/› papers\n {2}old_papers/)
    play.type(`${down}${enter}`).type('heat')
    expect(play.state).toMatchObject({ base: { name: 'old_papers' }, panel: undefined })
    play.answer('a').type('\thand\r')
    expect(play.state).toMatchObject({ base: { name: 'handbook' }, results: undefined })
    expect(play.effects.at(-1)).toMatchObject({
      type: 'search',
      delayMs: 0,
      request: { base: { name: 'handbook' } },
    })
  })

  test('stays if the list is closed; without a selection, closing exits', () => {
    expect(new PlaygroundDriver({ bases }).type(esc).effects.at(-1)).toEqual({ type: 'leave' })
    expect(new PlaygroundDriver().type('\t\t').state).toMatchObject({
      panel: undefined,
      base: { name: 'papers' },
    })
  })
})

describe('the equivalent command', () => {
  const texts = (play: PlaygroundDriver) =>
    equivalents(play.state, requestOf(play.state)!).map(({ text }) => text)

  test('is shown as a command, curl and TypeScript, with the name of a key but no key', () => {
    const play = new PlaygroundDriver().type(`it's "hot"!${esc}`).type('hflang=en\rk5\r')
    const [wb, curl, typescript] = texts(play)
    expect(wb).toBe(`wb kb search papers 'it'\\''s "hot"!' --mode lexical --filter '{"lang":"en"}' --limit 5`)
    expect(curl).toContain('-H "authorization: Bearer $WB_API_KEY"')
    expect(curl).toContain(`"text":"it'\\''s \\"hot\\"!"`)
    expect(curl).toContain('https://wb.example/api/v1/workspaces/')
    expect(typescript).toContain(`authorization: 'Bearer ' + env.WB_API_KEY`)
  })

  test('is copied, and is printed at exit if there is no clipboard', () => {
    const play = new PlaygroundDriver().type(`heat${esc}`).type('cc')
    const effect = play.effects.at(-1)
    expect(effect).toMatchObject({ type: 'copy', label: 'curl' })
    play.event({ type: 'notCopied', text: 'curl …', reason: 'no clipboard program was found' })
    expect(play.state.uncopiedText).toBe('curl …')
    expect(play.screen).toContain('no clipboard program was found; the text is printed when you leave')
  })

  test('a question that starts like a flag is not a flag', () => {
    const play = new PlaygroundDriver({ question: '--all' })
    expect(texts(play)[0]).toBe('wb kb search papers -- --all')
  })
})

test('ctrl+c exits from any view, and q exits from the settings', () => {
  for (const typed of ['', 'heat', esc, '\t', `${esc}?`, `${esc}f`])
    expect(new PlaygroundDriver().type(typed).type('\x03').effects.at(-1)).toEqual({ type: 'leave' })
  expect(new PlaygroundDriver().type(esc).type('q').effects.at(-1)).toEqual({ type: 'leave' })
})

test('an older result never replaces a newer one, in any order of events', () => {
  const size = fc.record({ columns: fc.integer({ min: 8, max: 130 }), rows: fc.integer({ min: 3, max: 40 }) })
  const keys = [
    'heat',
    ' ',
    '\x7f',
    '\x15',
    up,
    down,
    pageDown,
    esc,
    enter,
    '\t',
    '\x1b1',
    'hwrkec?ibf',
    '9\r',
  ]
  const happening = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...keys).map(typed => ({ typed })) },
    { weight: 3, arbitrary: fc.record({ answers: fc.nat(6), hits: fc.integer({ min: 0, max: 12 }) }) },
    { weight: 1, arbitrary: fc.record({ fails: fc.nat(6), isUnavailable: fc.boolean() }) },
    { weight: 1, arbitrary: size.map(size => ({ size })) },
  )
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 60 }), all => {
      const play = new PlaygroundDriver({ bases: [base('papers'), base('handbook')] }).type('pap\r')
      for (const [at, one] of all.entries()) {
        const before = play.state
        if ('typed' in one) play.event(...keysOf(one.typed))
        else if ('size' in one) play.event({ type: 'resized', size: one.size })
        else if ('answers' in one) {
          const serial = before.serial - one.answers
          const ids = Array.from({ length: one.hits }, (_, at) => `${serial}-${at}`)
          play.event({ type: 'searched', serial, results: searchResults(...ids) })
          if (one.answers > 0) expect(play.state).toBe(before)
        } else {
          const failure = { isUnavailable: one.isUnavailable, code: undefined, message: 'no' }
          play.event({ type: 'failed', serial: before.serial - one.fails, failure })
          if (one.fails > 0) expect(play.state).toBe(before)
        }
        const { state } = play
        const { results, pending, failure } = state
        if (results && before.results) expect(results.serial).toBeGreaterThanOrEqual(before.results.serial)
        if (results && !pending && !failure) expect(results.request).toEqual(requestOf(state))
        expect(state.selectedIndex).toBeLessThan(Math.max(1, results?.passages.length ?? 0))
        // Drawing a screen with Ink takes milliseconds.
        if (at % 8 > 0 && at < all.length - 1) continue
        const { lines } = play
        expect(lines.length).toBeLessThan(Math.max(2, state.size.rows))
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(state.size.columns)
      }
    }),
    { numRuns: 150 },
  )
})
