import fc from 'fast-check'
import { createElement } from 'react'
import { describe, expect, test } from 'vitest'
import { displayWidth, plain } from '../../../src/cli/terminal/terminal-text.ts'
import { ChatApp, type TranscriptItem } from '../../../src/tui/chat/app.tsx'
import { LiveRegion, layoutLiveRegion } from '../../../src/tui/chat/live-region.tsx'
import { passagePanel } from '../../../src/tui/chat/panel.ts'
import { PanelScreen } from '../../../src/tui/chat/panel-screen.tsx'
import { screenReaderApproval, screenReaderLines } from '../../../src/tui/chat/screen-reader.ts'
import { transcriptLines } from '../../../src/tui/chat/transcript.ts'
import type { ChatPanel, ChatState, TranscriptPart } from '../../../src/tui/chat/types.ts'
import type { Highlight } from '../../../src/tui/markdown/render.ts'
import { paintFor } from '../../../src/tui/parts/paint.ts'
import { span } from '../../../src/tui/parts/spans.ts'
import type { Size } from '../../../src/tui/parts/terminal-session.ts'
import { imageOf } from '../../harness/images.ts'
import { TestClock } from '../../harness/runtime.ts'
import { rowsOf } from '../frame.ts'
import { fresh, heard, message, passage, play, typed } from './play.ts'

const paint = paintFor(false)
const call = { id: 't1', name: 'search_kb', arguments: '{"query":"similarity laws"}' }
const approval = heard('tool-approval', {
  approvalId: 'a',
  toolCall: { ...call, arguments: '{"path":"/tmp","why":"\\u001b[2J"}' },
  expiresAt: '1970-01-01T00:01:01.000Z',
})

function live(state: ChatState): string[] {
  return rowsOf(createElement(LiveRegion, { state, highlight: undefined }), state.size.columns)
}

function panelRows(panel: ChatPanel, size: Size, highlight?: Highlight): string[] {
  return rowsOf(createElement(PanelScreen, { panel, size, highlight }), size.columns)
}

function shown(printed: TranscriptPart, columns = 80): string[] {
  return transcriptLines(printed, { columns, agent: 'Maven' }).map(paint)
}

const sized = (state: ChatState, columns: number, rows: number): ChatState =>
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
  failure: { kind: 'unreachable', code: '', message: '', nextSteps: [] },
}).state
const imaged: ChatState = {
  ...play(fresh, ...typed('why?'), heard('done', message('agent', 'So.'))).state,
  images: [
    { name: 'shot.png', ...imageOf() },
    { name: 'b\x1b[2J.png', ...imageOf() },
  ],
  fileTask: 'attaching day.md',
}
const states: [string, ChatState][] = [
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
        const small = sized(state, columns, rows)
        const lines = live(small)
        const { cursor } = layoutLiveRegion(small)
        expect(lines.length).toBeLessThan(rows)
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(columns)
        expect(cursor.x).toBeLessThan(columns)
        expect(cursor.y).toBeLessThan(lines.length)
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
      '  Maven · papers · small         enter queues  ctrl+c stops',
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
      '  Maven · papers · small           enter queues  ctrl+c stops',
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
    expect(lines).toContain('⚙1 create_issue from issues')
    expect(lines).toContain('wants to use create_issue from issues')
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
    expect(live(away).join('\n')).toContain('the runtime is unreachable, retrying; your message will be sent')
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
    expect(live(chosen).at(-1)).toMatch(/^… .* \/quit$/)
  })

  test('greets an empty chat with the agent, its knowledge bases, and suggested questions', () => {
    const questions = ['What does “Heated\x1b[2J models” say?', 'Summarize “Laws”.']
    const { state } = play(
      { ...fresh, subject: { ...fresh.subject, knowledgeBases: ['papers', 'notes'] } },
      {
        type: 'suggestionsLoaded',
        questions: questions.map(plain),
      },
    )
    expect(live(state).slice(0, 8)).toEqual([
      '',
      '  Maven answers from papers and notes',
      '',
      '  1  What does “Heated models” say?',
      '  2  Summarize “Laws”.',
      '',
      '  alt+1 and alt+2 ask these questions',
      '',
    ])
    expect(live(play(state, ...typed('why?')).state).join('\n')).not.toContain('alt+1')
  })

  test('shows queued messages above the composer', () => {
    const { state } = play(answering, ...['one', 'two', 'three', 'four'].flatMap(typed))
    expect(live(state).slice(2, 8)).toEqual([
      '',
      '  queued  one',
      '  queued  two',
      '  queued  three',
      '          and 1 more',
      '',
    ])
  })

  test('the cursor is where the next character goes', () => {
    const state = sized(play(fresh, { type: 'typed', text: 'ab日本' }, { type: 'left' }).state, 40, 24)
    expect(layoutLiveRegion({ ...state, suggestions: [] }).cursor).toEqual({ x: 6, y: 4 })
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
    startedMs: 0,
    result: { content: '{"results":[1,2]}', outcome: 'success', durationMs: 1_204 },
  } as const

  test('names stand beside what is said, and above it where there is little room', () => {
    expect(shown({ kind: 'question', text: 'why\nso' })).toEqual(['', ' you    why', '        so'])
    expect(shown({ kind: 'question', text: 'why\nso' }, 40)).toEqual(['', ' you', '  why', '  so'])
  })

  test('the images of a question are lines below it', () => {
    const you = { kind: 'question', text: 'why?', images: ['[image 1: image/png\x1b[2J, 2 kB]'] } as const
    expect(shown(you)).toEqual(['', ' you    why?', '        [image 1: image/png, 2 kB]'])
    expect(screenReaderLines(you, 'Maven')).toEqual(['You: why?', '[image 1: image/png, 2 kB]'])
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

  test('passages that an answer used without citations have a heading', () => {
    expect(shown({ kind: 'sources', citations: [citation], isUncited: true })).toEqual([
      '',
      '        passages used but not cited:',
      '        [1] Heated models · chunk 2',
    ])
    expect(screenReaderLines({ kind: 'sources', citations: [citation], isUncited: true }, 'Maven')[0]).toBe(
      'Passages used but not cited:',
    )
  })

  test('passages that were found say so, and what a model needs stands above them', () => {
    const text = '## Scale\n\n**Both** laws\x07 of `similarity`.\n'
    const found = { kind: 'passages', question: 'laws', passages: [passage(text)], hasSetup: true } as const
    const lines = shown(found)
    expect(lines.slice(1, 6).map(line => line.trimEnd())).toEqual([
      '        With Ollama on this machine:',
      '        wb services create llama --type llm --provider ollama --model llama3.2',
      '        wb agents update Maven --llm llama',
      '        Or with OpenRouter: set OPENROUTER_API_KEY=… in the environment of the',
      '        runtime.',
    ])
    expect(shown({ ...found, hasSetup: false })).toEqual([
      '',
      '        search results, not written by a model:',
      '',
      '        [1] Heated models › Scale',
      '            Both laws of similarity.',
      '            docs/models.md · chunk 2',
      '',
    ])
    expect(screenReaderLines({ ...found, hasSetup: false }, 'Maven').at(-1)).toBe(
      '1: Heated models › Scale. Both laws of similarity. (docs/models.md · chunk 2)',
    )
  })

  test('much of a passage is cut, and no line of it is wider than the screen', () => {
    const passages = [passage('Laws of similarity hold for models. '.repeat(50))]
    for (const columns of [20, 40, 80]) {
      const lines = shown({ kind: 'passages', question: 'laws', passages, hasSetup: false }, columns)
      expect(lines.length).toBeLessThan(14)
      expect(Math.max(...lines.map(line => line.length))).toBeLessThanOrEqual(columns)
      expect(lines.join('\n')).toContain('…')
    }
  })

  test('the same is read out in whole lines', () => {
    expect(screenReaderLines({ kind: 'tool', run }, 'Maven')).toEqual([
      'Tool 3: search_kb, with “similarity laws”, success, 1.2 s',
    ])
    expect(screenReaderLines({ kind: 'sources', citations: [citation] }, 'Maven')).toEqual([
      'Source 1: Heated models · chunk 2',
    ])
    const block = { kind: 'markdown', source: '- **one**\n', gap: true } as const
    expect(screenReaderLines({ kind: 'answer', block, isFirst: true, isAside: false }, 'Maven')).toEqual([
      'Maven:',
      '• one',
    ])
    expect(screenReaderApproval(waiting.turn!.pendingApprovals[0]!, 'Maven')).toHaveLength(2)
  })

  test('is drawn once by Ink, and what changes below it', () => {
    const options = { columns: 80, agent: 'Maven' }
    const transcript: TranscriptItem[] = [{ key: 0, part: { kind: 'question', text: 'why?' }, options }]
    const props = { highlight: undefined, paint, clock: new TestClock(), onKey() {}, transcript }
    const rows = rowsOf(createElement(ChatApp, { ...props, state: answering, isClosed: false }), 80)
    expect(rows.slice(0, 4)).toEqual(['', ' you    why?', '', ' Maven  Because **it'])
    expect(rowsOf(createElement(ChatApp, { ...props, state: answering, isClosed: true }), 80)).toEqual([
      '',
      ' you    why?',
    ])
  })
})

test('a panel is a row lower than the screen, and says how much there is', () => {
  const text = Array.from({ length: 40 }, (_, at) => `line ${at}`).join('\n')
  const open = play(fresh, {
    type: 'panelOpened',
    panel: { kind: 'text', title: 'x', page: { text, format: 'plain' }, top: 0 },
  }).state
  const { state } = play(open, { type: 'pageDown' }, { type: 'pageDown' }, { type: 'pageDown' })
  const lines = panelRows(state.panel!, state.size)
  expect(lines).toHaveLength(23)
  expect(lines[20]).toBe('  line 39')
  expect(lines[22]).toContain('40 of 40 lines')
})

test('a panel is rendered once, however far it is scrolled', () => {
  let times = 0
  const highlight = (lines: readonly string[]) => {
    times++
    return lines.map(line => [span(line)])
  }
  const text = `\`\`\`js\n${'let x\n'.repeat(12)}\`\`\`\n${'\nwords\n'.repeat(30)}`
  const panel = { kind: 'text', title: 'x', page: { text, format: 'markdown' }, top: 0 } as const
  let { state } = play(fresh, { type: 'panelOpened', panel })
  for (const type of ['pageDown', 'down', 'end', 'up'] as const) {
    panelRows(state.panel!, state.size, highlight)
    state = play(state, { type }).state
  }
  expect(times).toBe(1)
})

test.each([
  [80, 'up, down, page up, page down   q goes back'],
  [40, '  q goes back'],
])('in %d columns a panel says how to leave it', (columns, keys) => {
  const panel = { kind: 'text', title: 'x', page: { text: 'y', format: 'plain' }, top: 0 } as const
  expect(panelRows(panel, { columns, rows: 20 }).at(-1)).toContain(keys)
})

test('a passage is at the top of the screen, and what stands before it above', () => {
  const size = { columns: 40, rows: 12 }
  const around = { title: '[1] x', before: 'Before it. '.repeat(20), after: 'After it. '.repeat(40) }
  const lines = panelRows(passagePanel({ ...around, passage: 'The passage.' }, size), size)
  expect(lines.slice(2).find(line => /\w/.test(line))).toBe('  The passage.')
  const alone = passagePanel({ ...around, before: '', passage: 'The passage.' }, size)
  expect(alone).toMatchObject({ top: 0 })
})
