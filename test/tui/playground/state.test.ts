import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { displayWidth } from '../../../src/cli/terminal/terminal-text.ts'
import { equivalents } from '../../../src/tui/playground/equivalents.ts'
import { requestOf } from '../../../src/tui/playground/request.ts'
import { base, found, keysOf, Play } from './play.ts'

const [up, down, pageDown, esc, enter] = ['\x1b[A', '\x1b[B', '\x1b[6~', '\x1b', '\r']

describe('the question', () => {
  test('is asked when a person has stopped to type, once for the same words', () => {
    const play = new Play().type('heat')
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

  test('that was given with the command is asked at once; what is pasted is one line', () => {
    expect(new Play({ question: 'heat' }).effects).toMatchObject([{ type: 'search', delayMs: 0 }])
    expect(new Play().type('\x1b[200~two\nlines\x1b[201~').request).toMatchObject({ text: 'two lines' })
  })

  test('keeps the old passages until the new ones are here, and drops those that come late', () => {
    const play = new Play().type('a').answer('one').type('b').type('c')
    expect(play.state.serial).toBe(3)
    play.event({ type: 'searched', serial: 2, results: found('late') })
    expect(play.state.results?.passages).toMatchObject([{ id: 'one' }])
    play.event({ type: 'failed', serial: 2, failure: { isUnavailable: false, code: 'x', message: 'late' } })
    expect(play.state).toMatchObject({ failure: undefined, pending: {} })
    expect(play.answer('two').state.results?.passages).toMatchObject([{ id: 'two' }])
  })

  test('stays when it is refused, and is asked again while the runtime is away', () => {
    const play = new Play().type('a').answer('one').type('b')
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
    ['k25\r', { topK: 25 }],
    ['flang=en year=1960\r', { filter: { $and: [{ lang: 'en' }, { year: { $in: [1960, '1960'] } }] } }],
    ['f{"lang":"en"}\r', { filter: { lang: 'en' } }],
    ['fyear >= 1960 and lang = en\r', { filter: { $and: [{ year: { $gte: 1960 } }, { lang: 'en' }] } }],
    ['flang=en\rf\x15\r', {}],
    ['h/and more', { text: 'heatand more', hybrid: true, lexicalWeight: 1 }],
  ])('esc and %j ask with %j', (typed, more) => {
    const play = new Play().type(`heat${esc}`).type(typed)
    const body = JSON.parse(JSON.stringify(requestOf(play.state)!.body))
    expect(body).toEqual({ text: 'heat', topK: 10, ...more })
  })

  test.each([
    ['flang\r', 'type a condition such as year >= 2024, or a JSON object'],
    ['f{"lang\r', 'this is not a complete JSON object'],
    ['k0\r', 'a number from 1 to 100'],
    ['h\x1b[C', 'the weight applies to hybrid mode only'],
    ['z', 'press esc to go back to the question'],
  ])('esc and %j are told: %s', (typed, told) => {
    expect(new Play().type(`heat${esc}`).type(typed).screen).toContain(told)
  })

  test('of a knowledge base without words begin with vectors; one with a reranker is not told of it each time', () => {
    const play = new Play({ bases: [base('bare', { isLexical: false, hasReranker: true })] }).type('heat')
    expect(play.request).toEqual({ text: 'heat', topK: 10, rerank: false })
    expect(play.type(`${esc}`).type('hr').request).toMatchObject({ hybrid: true, rerank: true })
  })

  test('show how far a passage moved since the same question was asked otherwise', () => {
    const play = new Play().type('heat').answer('a', 'b', 'c').type(`${esc}`).type('h').answer('c', 'a', 'd')
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
  test('are chosen by arrows, and opened by enter or their number', () => {
    const play = new Play().type('heat').answer('a', 'b', 'c').type(`${down}${down}${down}${up}${enter}`)
    expect(play.state).toMatchObject({ selectedIndex: 1, isOpen: true })
    expect(play.type(down).state).toMatchObject({ selectedIndex: 2, isOpen: false })
    expect(play.type('\x1b1').state).toMatchObject({ selectedIndex: 0, isOpen: true })
    expect(play.type(pageDown).state).toMatchObject({ selectedIndex: 2, isOpen: false })
    expect(new Play().type(`${enter}${down}`).state).toMatchObject({ selectedIndex: 0, isOpen: false })
  })

  test('that are longer than the screen are read to their end before the next one is chosen', () => {
    const play = new Play({ size: { columns: 40, rows: 16 } }).type('word')
    const long = { ...found('long', 'next') }
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

  test('is chosen from a list, by what is typed', () => {
    const play = new Play({ bases })
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

  test('stays when the list is left; where none was chosen yet, that leaves', () => {
    expect(new Play({ bases }).type(esc).effects.at(-1)).toEqual({ type: 'leave' })
    expect(new Play().type('\t\t').state).toMatchObject({ panel: undefined, base: { name: 'papers' } })
  })
})

describe('what finds the same', () => {
  const texts = (play: Play) => equivalents(play.state, requestOf(play.state)!).map(({ text }) => text)

  test('is a command, curl and TypeScript, with the name of a key and no key', () => {
    const play = new Play().type(`it's "hot"!${esc}`).type('hflang=en\rk5\r')
    const [wb, curl, typescript] = texts(play)
    expect(wb).toBe(`wb kb search papers 'it'\\''s "hot"!' --mode lexical --filter '{"lang":"en"}' --limit 5`)
    expect(curl).toContain('-H "authorization: Bearer $WB_API_KEY"')
    expect(curl).toContain(`"text":"it'\\''s \\"hot\\"!"`)
    expect(curl).toContain('https://wb.example/api/v1/workspaces/')
    expect(typescript).toContain(`authorization: 'Bearer ' + env.WB_API_KEY`)
  })

  test('is copied, and printed at the end where nothing takes it', () => {
    const play = new Play().type(`heat${esc}`).type('cc')
    const effect = play.effects.at(-1)
    expect(effect).toMatchObject({ type: 'copy', label: 'curl' })
    play.event({ type: 'notCopied', text: 'curl …', reason: 'no clipboard program was found' })
    expect(play.state.uncopiedText).toBe('curl …')
    expect(play.screen).toContain('no clipboard program was found; the text is printed when you leave')
  })

  test('a question that begins like a flag is none', () => {
    const play = new Play({ question: '--all' })
    expect(texts(play)[0]).toBe('wb kb search papers -- --all')
  })
})

test('ctrl+c leaves from wherever one is, as q does from the settings', () => {
  for (const typed of ['', 'heat', esc, '\t', `${esc}?`, `${esc}f`])
    expect(new Play().type(typed).type('\x03').effects.at(-1)).toEqual({ type: 'leave' })
  expect(new Play().type(esc).type('q').effects.at(-1)).toEqual({ type: 'leave' })
})

test('whatever comes in whatever order, an older answer never takes the place of a newer one', () => {
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
      const play = new Play({ bases: [base('papers'), base('handbook')] }).type('pap\r')
      for (const [at, one] of all.entries()) {
        const before = play.state
        if ('typed' in one) play.event(...keysOf(one.typed))
        else if ('size' in one) play.event({ type: 'resized', size: one.size })
        else if ('answers' in one) {
          const serial = before.serial - one.answers
          const ids = Array.from({ length: one.hits }, (_, at) => `${serial}-${at}`)
          play.event({ type: 'searched', serial, results: found(...ids) })
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
        // Ink takes milliseconds for a screen.
        if (at % 8 > 0 && at < all.length - 1) continue
        const { lines } = play
        expect(lines.length).toBeLessThan(Math.max(2, state.size.rows))
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(state.size.columns)
      }
    }),
    { numRuns: 150 },
  )
})
