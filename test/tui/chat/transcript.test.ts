import { describe, expect, test } from 'vitest'
import { activityLines } from '../../../src/tui/chat/activity.ts'
import { commands } from '../../../src/tui/chat/commands.ts'
import { layoutLiveRegion } from '../../../src/tui/chat/live-region.tsx'
import { mainArgument, transcriptLines } from '../../../src/tui/chat/transcript.ts'
import type { ChatState, ToolRun, TranscriptPart } from '../../../src/tui/chat/types.ts'
import { paintFor } from '../../../src/tui/parts/paint.ts'
import type { Line } from '../../../src/tui/parts/spans.ts'
import { freshChat, message, play, submit, turnEvent } from './play.ts'

const paint = paintFor(false)
const painted = (lines: readonly Line[]) => lines.map(paint)
const shown = (part: TranscriptPart, columns = 60, agent = 'Maven') =>
  painted(transcriptLines(part, { columns, agent }))

function toolRun(
  result: Partial<NonNullable<ToolRun['result']>> | undefined,
  more: Partial<ToolRun> = {},
): ToolRun {
  const call = { id: 't', name: 'search_kb', arguments: '{"limit":5,"kb":"x","query":"laws"}' }
  const complete = result && { content: '', outcome: 'success', durationMs: 20, ...result }
  return { number: 1, call, startedMs: 0, result: complete, ...more } as ToolRun
}

describe('a question', () => {
  test('has the name on its left, or above it on a narrow screen', () => {
    expect(shown({ kind: 'question', text: 'why\nso?', images: ['[image: a.png]'] })).toEqual([
      '',
      ' you    why',
      '        so?',
      '        [image: a.png]',
    ])
    expect(shown({ kind: 'question', text: 'why?' }, 59)).toEqual(['', ' you', '  why?'])
  })

  test('is indented by the name of the agent, up to 12 cells', () => {
    expect(shown({ kind: 'question', text: 'a' }, 60, 'Al')[1]).toBe(' you  a')
    expect(shown({ kind: 'question', text: 'a' }, 60, 'A very long name')[1]).toBe(' you           a')
  })

  test('is at most 100 cells wide', () => {
    const [, line] = shown({ kind: 'question', text: 'x'.repeat(120) }, 200)
    expect(line).toBe(` you    ${'x'.repeat(100)}`)
    expect(shown({ kind: 'question', text: 'x'.repeat(9) }, 8)).toEqual(['', ' you', '  xxxxxxxx', '  x'])
  })
})

describe('an answer', () => {
  const answer = (isFirst: boolean, gap = false): TranscriptPart =>
    ({
      kind: 'answer',
      block: { kind: 'markdown', source: 'So **it**', gap },
      isFirst,
      isAside: false,
    }) as TranscriptPart

  test('starts with the name of the agent, which is truncated on the left side only', () => {
    expect(shown(answer(true))).toEqual(['', ' Maven  So it'])
    expect(shown(answer(true), 60, 'A very long name')).toEqual([
      '',
      ' A very long…   So it'.replace('   ', '  '),
    ])
    expect(shown(answer(true), 40, 'A very long name')).toEqual(['', ' A very long name', '  So it'])
  })

  test('continues without the name', () => {
    expect(shown(answer(false))).toEqual(['        So it'])
    expect(shown(answer(false, true))).toEqual(['', '        So it'])
  })
})

describe('a tool call', () => {
  test.each([
    [{ content: '{"results":[1,2]}' }, '2 passages  20 ms'],
    [{ content: '{"ok":true,"items":[1]}' }, '1 items  20 ms'],
    [{ content: '{"knowledgeBases":[1,2]}' }, '2 knowledge bases  20 ms'],
    [{ content: '{"ok":true}' }, '11 characters  20 ms'],
    [{ content: 'x' }, '1 character  20 ms'],
    [{ content: 'null' }, '4 characters  20 ms'],
    [{ outcome: 'denied', content: 'x' }, 'not allowed  20 ms'],
    [{ outcome: 'failure', content: 'no\nindex' }, 'no index  20 ms'],
  ] as const)('with the result %j shows "%s"', (result, outcome) => {
    expect(shown({ kind: 'tool', run: toolRun(result) })).toEqual([
      `        ⚙1 search_kb  “laws”  ${outcome}`,
    ])
  })

  test('on a narrow screen shows a shorter argument, or none', () => {
    const run = toolRun(
      { content: 'x' },
      { call: { id: 't', name: 'fetch', arguments: '{"url":"https://example.com/a/b"}' } },
    )
    const lineAt = (columns: number) => shown({ kind: 'tool', run }, columns)[0]
    expect(lineAt(50)).toBe('  ⚙1 fetch  “https://exampl…”  1 character  20 ms')
    expect(lineAt(40)).toBe('  ⚙1 fetch  “http…”  1 character  20 ms')
    expect(lineAt(39)).toBe('  ⚙1 fetch  1 character  20 ms')
  })

  test.each([
    ['{"limit":5,"kb":"x","query":"a\\nb"}', 'a b'],
    ['{"limit":5,"path":"x","other":"y"}', 'x'],
    ['{"limit":5}', ''],
    ['{}', ''],
    ['{"qu', '{"qu'],
  ])('the main argument of %s is %j', (json, argument) => {
    expect(mainArgument(json)).toBe(argument)
  })
})

test.each([
  ['dim', '        x'],
  ['good', '        ✓ x'],
  ['bad', '        ✗ x'],
] as const)('a %s note is "%s"', (tone, line) => {
  expect(shown({ kind: 'note', tone, text: 'x' })).toEqual([line])
})

test('the help lists each command with its summary, below its name on a narrow screen', () => {
  const wide = shown({ kind: 'help' }, 100).join('\n')
  for (const { name, argument, summary } of commands) {
    expect(wide).toContain(`/${name}${argument ? ` ${argument}` : ''} `)
    expect(wide.replace(/\s+/g, ' ')).toContain(summary)
  }
  expect(shown({ kind: 'help' }, 30).slice(1, 3)).toEqual(['  /help', '    show this help'])
})

test('an answer without citations lists the passages that it used', () => {
  const citation = { number: 1, title: 'Laws', sourceFilename: null, page: null, chunkIndex: 2 }
  const part = { kind: 'sources', citations: [citation] } as unknown as TranscriptPart
  expect(shown(part)[1]).toMatch(/^ {8}\[1\] Laws/)
  expect(shown({ ...part, isUncited: true } as TranscriptPart)[1]).toBe(
    '        passages used but not cited:',
  )
})

const asked = play(freshChat, ...submit('why?'), turnEvent('user-message', message('user', 'why?'))).state

describe('the lines above the composer', () => {
  const lines = (state: ChatState) =>
    painted(activityLines(state)).map(line => line.replace(/^ {2}[^\w\s] /, '  * '))

  test('say how long the agent is working', () => {
    const at = (nowMs: number) => lines(play(asked, { type: 'tick', nowMs }).state)
    expect(at(1_999)).toEqual(['', '  * Maven is working'])
    expect(at(3_000)).toEqual(['', '  * Maven is working  2 s'])
  })

  test('show three queued messages, and the number of the others', () => {
    const queued = (count: number) =>
      lines(
        play(asked, ...Array.from({ length: count }, (_, index) => submit(`q${index}`)).flat()).state,
      ).slice(2)
    expect(queued(0)).toEqual([])
    expect(queued(3)).toEqual(['', '  queued  q0', '  queued  q1', '  queued  q2'])
    expect(queued(5)).toEqual(['', '  queued  q0', '  queued  q1', '  queued  q2', '          and 2 more'])
  })
})

test('some commands run during an answer, and the others have to wait', () => {
  const running = commands.filter(({ canRunDuringAnswer }) => canRunDuringAnswer).map(({ name }) => name)
  expect(running).toEqual(expect.arrayContaining(['help', 'tools', 'open', 'expand', 'thoughts', 'quit']))
  for (const { name } of commands) {
    const { state } = play(asked, ...submit(`/${name}`))
    const isRejected =
      state.notice.includes('wait for the answer') || state.notice.includes('answer is finished')
    expect([name, isRejected]).toEqual([name, !running.includes(name)])
  }
})

test('completions are scrolled so that the chosen one is visible', () => {
  const typed = play(freshChat, { type: 'typed', text: '/' }).state
  const narrow = play(typed, { type: 'resized', size: { columns: 40, rows: 24 } }).state
  const words = commands.map(({ name }) => `/${name}`)
  let state = narrow
  for (const word of words) {
    state = play(state, { type: 'tab' }).state
    const line = layoutLiveRegion(state).completions!
    expect(paint(line)).toContain(word)
    expect(paint(line).startsWith(word === words[0] ? '  ' : paint(line).slice(0, 2))).toBe(true)
    expect(line.filter(({ tones }) => tones.includes('inverse')).map(({ text }) => text)).toEqual([word])
  }
  expect(paint(layoutLiveRegion(state).completions!)).toMatch(/^… /)
})
