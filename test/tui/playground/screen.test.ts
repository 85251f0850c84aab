import { createElement } from 'react'
import { describe, expect, test } from 'vitest'
import type { Passage } from '../../../src/cli/passages/find-passages.ts'
import { paintFor } from '../../../src/tui/parts/paint.ts'
import { PaintContext } from '../../../src/tui/parts/rows.tsx'
import { PlaygroundScreen } from '../../../src/tui/playground/app.tsx'
import { rowsOf } from '../frame.ts'
import { base, PlaygroundDriver, passage, searchResults } from './playground-driver.ts'

const esc = '\x1b'

function painted({ state }: PlaygroundDriver, hasColors = true): string {
  const screen = createElement(PlaygroundScreen, { state })
  const inContext = createElement(PaintContext, { value: paintFor(hasColors) }, screen)
  return rowsOf(inContext, state.size.columns).join('\n')
}

describe('playground screen', () => {
  test('shows the question on top, the settings next to the passages, and the equivalent command below', () => {
    const play = new PlaygroundDriver({ size: { columns: 100, rows: 16 } }).type('heat').answer('a', 'b')
    expect(`\n${play.screen}\n`).toBe(`
  papers  demo                                                                       2 hits · 7 ms
╭──────────────────────────────────────────────────────────────────────────────────────────────────╮
│ heat                                                                                             │
╰──────────────────────────────────────────────────────────────────────────────────────────────────╯

›  1 a                                                              ▮▮▮▮▮ │ esc settings
     what a says                                                          │
     chunk 0                                                              │ h mode    hybrid
                                                                          │ w weight  auto
   2 b                                                              ▮▮▯▯▯ │ r rerank  off
     what b says                                                          │ f filter  none
     chunk 0                                                              │ k limit   10

  wb kb search papers heat
  esc settings  tab base  enter opens  up/down choose  ctrl+c leaves
`)
  })

  test('with 40 columns shows the settings above the passages', () => {
    const play = new PlaygroundDriver({ size: { columns: 40, rows: 16 } })
      .type('heat')
      .answer('a')
      .type(`${esc}`)
    expect(`\n${play.screen}\n`).toBe(`
  papers  demo            1 hit · 7 ms
╭──────────────────────────────────────╮
│ heat                                 │
╰──────────────────────────────────────╯
  h mode hybrid  w weight auto
  r rerank off  f filter none
  k limit 10  e scores bars

›  1 a                             ▮▮▮▮▮
     what a says
     chunk 0

  wb kb search papers heat
  esc question  left/right weight
  c copy  ? help  enter opens
`)
  })

  test('with 40 columns and 20 rows shows the help in pages', () => {
    const play = new PlaygroundDriver({ size: { columns: 40, rows: 20 } }).type(`${esc}?`)
    expect(play.screen).toContain('enter      shows the whole passage')
    expect(play.screen).not.toContain('q          leaves')
    for (let press = 0; press < 10; press++) play.type('\x1b[6~')
    expect(play.screen).toContain('q          leaves')
    expect(play.type('\x1b[A').screen).toContain('shows all keys')
    expect(play.type('x').screen).toContain('Type a question')
  })

  test('highlights words of the question, in any form, in excerpts and in the whole passage', () => {
    const play = new PlaygroundDriver().type('refund')
    const passages = [passage('a', { text: 'All Refunds go back.\n\nThat is a refund.' })]
    play.event({ type: 'searched', serial: 1, results: { passages, tookMs: 1 } })
    for (const typed of ['', '\r'])
      expect(painted(play.type(typed))).toMatch(/\x1b\[1mRefunds\x1b\[22m[\s\S]*\x1b\[1mrefund\x1b\[22m/)
    expect(painted(play, false)).not.toContain('\x1b')
  })

  test('renders a whole passage of a Markdown file', () => {
    const play = new PlaygroundDriver().type('refund')
    const text = '## Terms\n\n- **Refunds** are paid\n- within `14` days'
    const document = { sourceFilename: 'terms.md', metadata: {} } as Passage['document']
    play.event({
      type: 'searched',
      serial: 1,
      results: { passages: [passage('a', { text, document })], tookMs: 1 },
    })
    expect(play.type('\r').screen).toMatch(
      /\n +Terms +│\n +│.*\n +• Refunds are paid +│.*\n +• within 14 days +│/,
    )
    expect(painted(play)).toMatch(/\x1b\[1mRefunds\x1b\[22m/)
  })

  test('dims the old passages until the new ones arrive', () => {
    const play = new PlaygroundDriver().type('heat').answer('a')
    const title = '\x1b[35m\x1b[1ma\x1b[22m\x1b[39m'
    expect(painted(play)).toContain(title)
    expect(painted(play.type('s'))).not.toContain(title)
    expect(painted(play)).toMatch(/\x1b\[2m +what a says\x1b\[22m/)
    expect(painted(play.answer('a'))).toContain(title)
  })

  test('wraps the description of the knowledge base within the screen', () => {
    const bases = [base('papers', { description: 'word '.repeat(20).trim() })]
    const { screen } = new PlaygroundDriver({ size: { columns: 40, rows: 16 }, bases })
    expect(screen).toContain(`\n  ${'word '.repeat(7).trim()}\n`)
    expect(screen).not.toContain('…')
  })

  test('suggests what to try if nothing was found', () => {
    const play = new PlaygroundDriver().type('heat').answer()
    expect(play.screen).toContain('nothing found in papers; try other words, or fewer of them')
    expect(play.type(`${esc}`).type('h').answer().screen).toContain(
      'press h in the settings to find related words',
    )
    expect(play.type('fa=b\r').answer().screen).toContain('press f in the settings to change the filter')
  })

  test('counts the seconds of a slow search', () => {
    const play = new PlaygroundDriver().type('heat')
    expect(play.event({ type: 'tick', nowMs: 200 }).screen).not.toContain('searching')
    expect(play.event({ type: 'tick', nowMs: 2_130 }).screen).toContain('searching 2 s')
  })

  test('removes control sequences from documents and servers [security rule 16]', () => {
    const planted = '\x1b]0;owned\x07\x1b[2J\u202egood\x9b31m'
    const play = new PlaygroundDriver({ bases: [base('papers')] }).type('good')
    const document = { metadata: { title: planted }, sourceFilename: planted } as never
    const passages = searchResults('a').passages.map(one => ({ ...one, text: planted, document }))
    play.event({ type: 'searched', serial: 1, results: { passages, tookMs: 1 } })
    for (const typed of ['', '\r']) {
      expect(painted(play.type(typed), false)).not.toMatch(/owned|[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/)
      expect(play.screen).toContain('good')
    }
  })
})
