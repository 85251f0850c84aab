import fc from 'fast-check'
import { render } from 'ink-testing-library'
import { createElement } from 'react'
import { describe, expect, test } from 'vitest'
import { liveOf } from '../../../src/tui/chat/live.ts'
import { panelFrom } from '../../../src/tui/chat/panel.ts'
import { panelLines } from '../../../src/tui/chat/panel-view.ts'
import { shownLines } from '../../../src/tui/chat/shown.ts'
import { spokenLines, spokenQuestion } from '../../../src/tui/chat/spoken.ts'
import type { Printed, State } from '../../../src/tui/chat/types.ts'
import { ChatView } from '../../../src/tui/chat/view.tsx'
import { paintFor } from '../../../src/tui/parts/paint.ts'
import { lineWidth, span } from '../../../src/tui/parts/spans.ts'
import { StandIns } from '../../../src/tui/parts/stand-ins.ts'
import { imageOf } from '../../harness/images.ts'
import { fresh, heard, message, passage, play, typed } from './play.ts'

const paint = paintFor(false)
const call = { id: 't1', name: 'search_kb', arguments: '{"query":"similarity laws"}' }
const approval = heard('tool-approval', {
  approvalId: 'a',
  toolCall: { ...call, arguments: '{"path":"/tmp","why":"\\u001b[2J"}' },
  expiresAt: '1970-01-01T00:01:01.000Z',
})

function live(state: State): string[] {
  return liveOf(state).lines.map(paint)
}

function shown(printed: Printed, columns = 80): string[] {
  return shownLines(printed, { columns, agent: 'Maven' }).map(paint)
}

const sized = (state: State, columns: number, rows: number): State =>
  play(state, { type: 'resized', size: { columns, rows } }).state
const answering = play(
  fresh,
  ...typed('why?'),
  heard('user-message', message('user', 'why?')),
  heard('token', { delta: 'Because **it' }),
).state
const waiting = play(answering, heard('tool-call', { toolCalls: [call] }), approval).state
const away = play(fresh, ...typed('why?'), {
  type: 'failed',
  failure: { kind: 'unreachable', code: '', message: '', next: [] },
}).state
const imaged: State = {
  ...fresh,
  images: [
    { name: 'shot.png', ...imageOf() },
    { name: 'b\x1b[2J.png', ...imageOf() },
  ],
  fileTask: 'attaching day.md',
}
const states: [string, State][] = [
  ['nothing was said', fresh],
  ['an answer comes', answering],
  ['a tool waits', waiting],
  ['the runtime is away', away],
  ['much is typed', play(fresh, { type: 'pasted', text: 'word '.repeat(70) }, { type: 'newline' }).state],
  ['images and a file wait', imaged],
  ['a command is typed', play(fresh, { type: 'typed', text: '/' }).state],
]

describe('the part of the screen that changes', () => {
  test.each(states)('%s: is smaller than the screen, whatever its size', (_name, state) => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 130 }), fc.integer({ min: 2, max: 50 }), (columns, rows) => {
        const { lines, cursor } = liveOf(sized(state, columns, rows))
        expect(lines.length).toBeLessThan(rows)
        for (const line of lines) expect(lineWidth(line)).toBeLessThanOrEqual(columns)
        expect(cursor).toBeDefined()
        expect(cursor!.x).toBeLessThan(columns)
        expect(cursor!.y).toBeLessThan(lines.length)
      }),
      { numRuns: 60 },
    )
  })

  test('shows the end of what is not finished, the field, and who answers from what', () => {
    expect(live(sized(answering, 60, 24))).toEqual([
      '',
      ' Maven  Because **it',
      '',
      `╭${'─'.repeat(58)}╮`,
      `│ ${' '.repeat(56)} │`,
      `╰${'─'.repeat(58)}╯`,
      '  Maven · papers · small                       ctrl+c stops',
    ])
  })

  test('asks whether a tool may run, with what it would be given', () => {
    expect(live(sized(waiting, 62, 24)).slice(-11)).toEqual([
      '  ? Maven wants to use search_kb',
      '    {',
      '      "path": "/tmp",',
      '      "why": "\\u001b[2J"',
      '    }',
      '',
      '  [o] once',
      '  [a] always in this conversation',
      '  [n] never',
      '  60 s left',
      '  Maven · papers · small                         ctrl+c stops',
    ])
  })

  test('names a tool of a server by the server, and says how much of what it is given is not shown', () => {
    const toolCall = {
      id: 't1',
      name: 'mcp:7f:create_issue',
      arguments: JSON.stringify({ lines: [1, 2, 3, 4, 5] }),
    }
    const expiresAt = '1970-01-01T00:01:01.000Z'
    const { state } = play(
      fresh,
      ...typed('why?'),
      heard('tool-call', { toolCalls: [toolCall] }),
      heard('tool-approval', { approvalId: 'a', toolCall, expiresAt }),
    )
    const lines = live(sized(state, 80, 24)).join('\n')
    expect(lines).toContain('⚙1 create_issue of issues')
    expect(lines).toContain('wants to use create_issue of issues')
    expect(lines).toContain('… 4 more lines  [e] shows all')
  })

  test('says that it reconnects below the answer so far', () => {
    const { state } = play(answering, { type: 'connection', isLost: true })
    expect(live(state).slice(0, 4)).toEqual([
      '',
      ' Maven  Because **it',
      '',
      expect.stringMatching(/^ {2}\S reconnecting…$/),
    ])
  })

  test('names the images of the next question above the field, and the file that is worked on', () => {
    const lines = live(sized(imaged, 60, 24))
    expect(lines[1]).toMatch(/^ {2}\S attaching day\.md…$/)
    expect(lines.slice(2, 5)).toEqual(['', '  [image: shot.png] [image: b.png]', ''])
    expect(lines.at(-1)).toContain('ctrl+c stops')
  })

  test('says that the runtime is away, and that nothing is lost', () => {
    expect(live(away).join('\n')).toContain('the runtime is away, trying again; your message is kept')
  })

  test.each([
    [undefined, '  Maven · papers '],
    [null, '  Maven · papers · no model '],
    ['large', '  Maven · papers · large '],
  ])('a model that is %s', (model, words) => {
    expect(live({ ...fresh, model }).at(-1)).toContain(words)
  })

  test('the share of the window that the last answer used is shown below the field', () => {
    const metadata = { context_tokens: '2700', context_window: '8192' }
    const answered = play(fresh, ...typed('why?'), heard('done', message('agent', 'So.', metadata))).state
    expect(live(answered).at(-1)).toContain(' · ctx 33%')
    const other = play(answered, ...typed('/new')).state
    expect(live(other).at(-1)).not.toContain('ctx')
  })

  test('the word that is chosen is among those that there is room for', () => {
    const typing = sized(play(fresh, { type: 'typed', text: '/' }).state, 40, 20)
    expect(live(typing).at(-1)).toBe('  /help  /new  /history  /model  /kb  /…')
    const chosen = play(typing, { type: 'backTab' }).state
    expect(live(chosen).at(-1)).toMatch(/^… .* \/quit +$/)
  })

  test('the cursor is where the next character goes', () => {
    const state = sized(play(fresh, { type: 'typed', text: 'ab日本' }, { type: 'left' }).state, 40, 24)
    expect(liveOf(state).cursor).toEqual({ x: 6, y: 2 })
  })
})

describe('what stays on the screen', () => {
  const citation = {
    number: 1,
    knowledgeBaseId: 'k',
    attachmentId: null,
    documentId: 'd',
    chunkId: 'c',
    chunkIndex: 2,
    title: 'Heated\x1b[2J models',
    sourceFilename: null,
    page: null,
  }
  const run = {
    number: 3,
    call,
    sinceMs: 0,
    result: { content: '{"results":[1,2]}', outcome: 'success', durationMs: 1_204 },
  } as const

  test('names stand beside what is said, and above it where there is little room', () => {
    expect(shown({ kind: 'you', text: 'why\nso' })).toEqual(['', ' you    why', '        so'])
    expect(shown({ kind: 'you', text: 'why\nso' }, 40)).toEqual(['', ' you', '  why', '  so'])
  })

  test('the images of a question are lines below it', () => {
    const you = { kind: 'you', text: 'why?', images: ['[image 1: image/png\x1b[2J, 2 kB]'] } as const
    expect(shown(you)).toEqual(['', ' you    why?', '        [image 1: image/png, 2 kB]'])
    expect(spokenLines(you, 'Maven')).toEqual(['You: why?', '[image 1: image/png, 2 kB]'])
  })

  test.each([
    [80, '        ⚙3 search_kb  “similarity laws”  2 passages  1.2 s'],
    [40, '  ⚙3 search_kb  “simi…”  2 passages  1.2 s'],
  ])('a tool is a line of %d columns', (columns, line) => {
    expect(shown({ kind: 'tool', run }, columns)).toEqual([
      line.length > columns ? expect.stringMatching(/^ {2}⚙3 search_kb.*2 passages {2}1\.2 s$/) : line,
    ])
  })

  test('sources are footnotes, without what a document planted', () => {
    expect(shown({ kind: 'sources', citations: [citation] })).toEqual([
      '',
      '        [1] Heated models · chunk 2',
    ])
  })

  test('passages that were found say so, and what a model needs stands above them', () => {
    const text = '## Scale\n\n**Both** laws\x07 of `similarity`.\n'
    const found = { kind: 'found', question: 'laws', passages: [passage(text)], hasWays: true } as const
    const lines = shown(found)
    expect(lines.slice(1, 6).map(line => line.trimEnd())).toEqual([
      '        With Ollama on this machine:',
      '        wb services create llama --type llm --provider ollama --model llama3.2',
      '        wb agents update Maven --llm llama',
      '        or with a key of OpenRouter: OPENROUTER_API_KEY=… where the runtime',
      '        starts',
    ])
    expect(shown({ ...found, hasWays: false })).toEqual([
      '',
      '        found, not written by a model:',
      '',
      '        [1] Heated models › Scale',
      '            Both laws of similarity.',
      '            docs/models.md · chunk 2',
      '',
    ])
    expect(spokenLines({ ...found, hasWays: false }, 'Maven').at(-1)).toBe(
      '1: Heated models › Scale. Both laws of similarity. (docs/models.md · chunk 2)',
    )
  })

  test('much of a passage is cut, and no line of it is wider than the screen', () => {
    const passages = [passage('Laws of similarity hold for models. '.repeat(50))]
    for (const columns of [20, 40, 80]) {
      const lines = shown({ kind: 'found', question: 'laws', passages, hasWays: false }, columns)
      expect(lines.length).toBeLessThan(14)
      expect(Math.max(...lines.map(line => line.length))).toBeLessThanOrEqual(columns)
      expect(lines.join('\n')).toContain('…')
    }
  })

  test('the same is read out in whole lines', () => {
    expect(spokenLines({ kind: 'tool', run }, 'Maven')).toEqual([
      'Tool 3: search_kb, asked “similarity laws”, success, 1.2 s',
    ])
    expect(spokenLines({ kind: 'sources', citations: [citation] }, 'Maven')).toEqual([
      'Source 1: Heated models · chunk 2',
    ])
    const block = { kind: 'markdown', source: '- **one**\n', gap: true } as const
    expect(spokenLines({ kind: 'said', block, isFirst: true, isAside: false }, 'Maven')).toEqual([
      'Maven:',
      '• one',
    ])
    expect(spokenQuestion(waiting.turn!.pending[0]!, 'Maven')).toHaveLength(2)
  })

  test('is drawn once by Ink, and what changes below it', () => {
    const standIns = new StandIns()
    const printed = [{ key: 0, text: standIns.once(shown({ kind: 'you', text: 'why?' })) }]
    const frame = (state: State) => {
      const { lines, cursor } = liveOf(state)
      return createElement(ChatView, { printed, live: standIns.frame(lines.map(paint)), cursor })
    }
    const { rerender, lastFrame, unmount } = render(frame(fresh))
    rerender(frame(answering))
    const seen = standIns.resolve(lastFrame()!)
    expect(seen).toContain('Because **it')
    expect(seen.split('you    why?')).toHaveLength(2)
    expect(standIns.frame(['a', 'b']).split('\n')[1]).toBe(standIns.frame(['c', 'b']).split('\n')[1])
    unmount()
  })
})

test('a panel fills the screen exactly, and says how much there is', () => {
  const text = Array.from({ length: 40 }, (_, at) => `line ${at}`).join('\n')
  const open = play(fresh, {
    type: 'opened',
    panel: { kind: 'text', title: 'x', page: { text, format: 'plain' }, top: 0 },
  }).state
  const { state } = play(open, { type: 'pageDown' }, { type: 'pageDown' }, { type: 'pageDown' })
  const lines = panelLines(state.panel!, state.size).map(paint)
  expect(lines).toHaveLength(24)
  expect(lines[21]).toBe('  line 39')
  expect(lines[23]).toContain('40 of 40 lines')
})

test('a panel is rendered once, however far it is scrolled', () => {
  let times = 0
  const highlight = (lines: readonly string[]) => {
    times++
    return lines.map(line => [span(line)])
  }
  const text = `\`\`\`js\n${'let x\n'.repeat(12)}\`\`\`\n${'\nwords\n'.repeat(30)}`
  const panel = { kind: 'text', title: 'x', page: { text, format: 'markdown' }, top: 0 } as const
  let { state } = play(fresh, { type: 'opened', panel })
  for (const type of ['pageDown', 'down', 'end', 'up'] as const) {
    panelLines(state.panel!, state.size, highlight)
    state = play(state, { type }).state
  }
  expect(times).toBe(1)
})

test.each([
  [80, 'up, down, page up, page down   q goes back'],
  [40, '  q goes back'],
])('in %d columns a panel says how to leave it', (columns, keys) => {
  const panel = { kind: 'text', title: 'x', page: { text: 'y', format: 'plain' }, top: 0 } as const
  expect(paint(panelLines(panel, { columns, rows: 20 }).at(-1)!)).toContain(keys)
})

test('a passage is at the top of the screen, and what stands before it above', () => {
  const size = { columns: 40, rows: 12 }
  const around = { title: '[1] x', before: 'Before it. '.repeat(20), behind: 'Behind it. '.repeat(40) }
  const lines = panelLines(panelFrom({ ...around, said: 'The passage.' }, size), size).map(paint)
  expect(lines.slice(2).find(line => /\w/.test(line))).toBe('  The passage.')
  const alone = panelFrom({ ...around, before: '', said: 'The passage.' }, size)
  expect(alone).toMatchObject({ top: 0 })
})
