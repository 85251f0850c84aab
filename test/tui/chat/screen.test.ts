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
import { freshChat, message, passage, play, submit, turnEvent } from './play.ts'

const paint = paintFor(false)
const call = { id: 't1', name: 'search_kb', arguments: '{"query":"similarity laws"}' }
const approval = turnEvent('tool-approval', {
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
  freshChat,
  ...submit('why?'),
  turnEvent('user-message', message('user', 'why?')),
  turnEvent('token', { delta: 'Because **it' }),
).state
const waiting = play(answering, turnEvent('tool-call', { toolCalls: [call] }), approval).state
const away = play(freshChat, ...submit('why?'), {
  type: 'failed',
  failure: { kind: 'unreachable', code: '', message: '', nextSteps: [] },
}).state
const imaged: ChatState = {
  ...play(freshChat, ...submit('why?'), turnEvent('done', message('agent', 'So.'))).state,
  images: [
    { name: 'shot.png', ...imageOf() },
    { name: 'b\x1b[2J.png', ...imageOf() },
  ],
  fileTask: 'attaching day.md',
}
const states: [string, ChatState][] = [
  ['nothing was said', freshChat],
  ['an answer comes', answering],
  ['a tool waits', waiting],
  ['the runtime is away', away],
  ['much is typed', play(freshChat, { type: 'pasted', text: 'word '.repeat(70) }, { type: 'newline' }).state],
  ['images and a file wait', imaged],
  ['a command is typed', play(freshChat, { type: 'typed', text: '/' }).state],
]

describe('the live region', () => {
  test.each(states)('%s: fits on a screen of any size', (_name, state) => {
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

  test('shows the end of the partial answer, the composer, the agent and its knowledge bases', () => {
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

  test.each([
    [42, 'Maven · papers · small'],
    [32, 'papers · small'],
    [24, 'small'],
    [20, ''],
  ])('on %i columns, shows how to stop the answer, and the facts that fit', (columns, facts) => {
    const line = live(sized(answering, columns, 24)).at(-1)!
    expect(line.split('ctrl+c stops').map(text => text.trim())).toEqual([facts, ''])
  })

  test('asks for approval of a tool call and shows its arguments', () => {
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

  test('shows the server of a tool, and the number of hidden lines of its arguments', () => {
    const toolCall = {
      id: 't1',
      name: 'mcp:7f:create_issue',
      arguments: JSON.stringify({ lines: [1, 2, 3, 4, 5] }),
    }
    const expiresAt = '1970-01-01T00:01:01.000Z'
    const { state } = play(
      freshChat,
      ...submit('why?'),
      turnEvent('tool-call', { toolCalls: [toolCall] }),
      turnEvent('tool-approval', { approvalId: 'a', toolCall, expiresAt }),
    )
    const lines = live(sized(state, 80, 24)).join('\n')
    expect(lines).toContain('⚙1 create_issue from issues')
    expect(lines).toContain('wants to use create_issue from issues')
    expect(lines).toContain('… 4 more lines  [e] shows all')
  })

  test('shows that it reconnects below the partial answer', () => {
    const { state } = play(answering, { type: 'connection', isLost: true })
    expect(live(state).slice(0, 4)).toEqual([
      '',
      ' Maven  Because **it',
      '',
      expect.stringMatching(/^ {2}\S reconnecting…$/),
    ])
  })

  test('shows the images of the next question and the file in progress above the composer', () => {
    const lines = live(sized(imaged, 60, 24))
    expect(lines[1]).toMatch(/^ {2}\S attaching day\.md…$/)
    expect(lines.slice(2, 5)).toEqual(['', '  [image: shot.png] [image: b.png]', ''])
    expect(lines.at(-1)).toContain('ctrl+c stops')
  })

  test('shows that the runtime is unreachable and the message will be sent', () => {
    expect(live(away).join('\n')).toContain('the runtime is unreachable, retrying; your message will be sent')
  })

  test.each([
    [undefined, '  Maven · papers '],
    [null, '  Maven · papers · no model '],
    ['large', '  Maven · papers · large '],
  ])('shows the model %s', (model, words) => {
    expect(live({ ...freshChat, model }).at(-1)).toContain(words)
  })

  test('shows the share of the context window of the last answer below the composer', () => {
    const metadata = { context_tokens: '2700', context_window: '8192' }
    const answered = play(
      freshChat,
      ...submit('why?'),
      turnEvent('done', message('agent', 'So.', metadata)),
    ).state
    expect(live(answered).at(-1)).toContain(' · ctx 33%')
    const other = play(answered, ...submit('/new')).state
    expect(live(other).at(-1)).not.toContain('ctx')
  })

  test('shows the selected suggestion even if others do not fit', () => {
    const typing = sized(play(freshChat, { type: 'typed', text: '/' }).state, 40, 20)
    expect(live(typing).at(-1)).toBe('  /help  /new  /history  /model  /kb  …')
    const chosen = play(typing, { type: 'backTab' }).state
    expect(live(chosen).at(-1)).toMatch(/^… .* \/quit$/)
  })

  test('greets an empty chat with the agent, its knowledge bases, and suggested questions', () => {
    const questions = ['What does “Heated\x1b[2J models” say?', 'Summarize “Laws”.']
    const { state } = play(
      { ...freshChat, subject: { ...freshChat.subject, knowledgeBases: ['papers', 'notes'] } },
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
    expect(live(play(state, ...submit('why?')).state).join('\n')).not.toContain('alt+1')
  })

  test('shows queued messages above the composer', () => {
    const { state } = play(answering, ...['one', 'two', 'three', 'four'].flatMap(submit))
    expect(live(state).slice(2, 8)).toEqual([
      '',
      '  queued  one',
      '  queued  two',
      '  queued  three',
      '          and 1 more',
      '',
    ])
  })

  test('places the cursor at the position of the next character', () => {
    const state = sized(play(freshChat, { type: 'typed', text: 'ab日本' }, { type: 'left' }).state, 40, 24)
    expect(layoutLiveRegion({ ...state, suggestions: [] }).cursor).toEqual({ x: 6, y: 4 })
  })
})

describe('printed parts', () => {
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

  test('speakers are named next to the text, and above it on a narrow screen', () => {
    expect(shown({ kind: 'question', text: 'why\nso' })).toEqual(['', ' you    why', '        so'])
    expect(shown({ kind: 'question', text: 'why\nso' }, 40)).toEqual(['', ' you', '  why', '  so'])
  })

  test('the images of a question are lines below it', () => {
    const you = { kind: 'question', text: 'why?', images: ['[image 1: image/png\x1b[2J, 1.5 KB]'] } as const
    expect(shown(you)).toEqual(['', ' you    why?', '        [image 1: image/png, 1.5 KB]'])
    expect(screenReaderLines(you, 'Maven')).toEqual(['You: why?', '[image 1: image/png, 1.5 KB]'])
  })

  test.each([
    [80, '        ⚙3 search_kb  “similarity laws”  2 passages  1.2 s'],
    [40, '  ⚙3 search_kb  “simi…”  2 passages  1.2 s'],
  ])('a tool call is a line of %d columns', (columns, line) => {
    expect(shown({ kind: 'tool', run }, columns)).toEqual([
      line.length > columns ? expect.stringMatching(/^ {2}⚙3 search_kb.*2 passages {2}1\.2 s$/) : line,
    ])
  })

  test('sources are footnotes without control sequences from documents', () => {
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

  test('lists the sentences that no source supports, each on one line', () => {
    const sentences = ['They are **paid** in gold [1].', `It is ${'very '.repeat(20)}long.`]
    expect(shown({ kind: 'unsupported', sentences })).toEqual([
      '',
      '        ! 2 sentences are not supported by the sources:',
      '          They are paid in gold.',
      expect.stringMatching(/^ {10}It is very very .*…$/),
    ])
    expect(screenReaderLines({ kind: 'unsupported', sentences: sentences.slice(0, 1) }, 'Maven')).toEqual([
      '1 sentence is not supported by the sources:',
      '1: They are paid in gold.',
    ])
  })

  test('passages of a search have a heading, and setup instructions above them if a model is missing', () => {
    const text = '## Scale\n\n**Both** laws\x07 of `similarity`.\n'
    const found = { kind: 'passages', question: 'laws', passages: [passage(text)], hasSetup: true } as const
    const lines = shown(found)
    expect(lines.slice(1, 6).map(line => line.trimEnd())).toEqual([
      '        With Ollama on this machine:',
      '        wb services create llama --type llm --provider ollama --model llama3.2',
      '        wb agents update Maven --llm llama',
      '        Or with OpenRouter: set OPENROUTER_API_KEY where the runtime is',
      '        started, or in the file .env in its data directory.',
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

  test('long passages are truncated, and no line is wider than the screen', () => {
    const passages = [passage('Laws of similarity hold for models. '.repeat(50))]
    for (const columns of [20, 40, 80]) {
      const lines = shown({ kind: 'passages', question: 'laws', passages, hasSetup: false }, columns)
      expect(lines.length).toBeLessThan(14)
      expect(Math.max(...lines.map(line => line.length))).toBeLessThanOrEqual(columns)
      expect(lines.join('\n')).toContain('…')
    }
  })

  test('screen reader output uses full lines', () => {
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

  test('Ink draws printed parts once and redraws only the live region', () => {
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

test('a panel is one row shorter than the screen and shows its total length', () => {
  const text = Array.from({ length: 40 }, (_, at) => `line ${at}`).join('\n')
  const open = play(freshChat, {
    type: 'panelOpened',
    panel: { kind: 'text', title: 'x', page: { text, format: 'plain' }, top: 0 },
  }).state
  const { state } = play(open, { type: 'pageDown' }, { type: 'pageDown' }, { type: 'pageDown' })
  const lines = panelRows(state.panel!, state.size)
  expect(lines).toHaveLength(23)
  expect(lines[20]).toBe('  line 39')
  expect(lines[22]).toContain('40 of 40 lines')
})

test('a panel is rendered once and not again when it scrolls', () => {
  let times = 0
  const highlight = (lines: readonly string[]) => {
    times++
    return lines.map(line => [span(line)])
  }
  const text = `\`\`\`js\n${'let x\n'.repeat(12)}\`\`\`\n${'\nwords\n'.repeat(30)}`
  const panel = { kind: 'text', title: 'x', page: { text, format: 'markdown' }, top: 0 } as const
  let { state } = play(freshChat, { type: 'panelOpened', panel })
  for (const type of ['pageDown', 'down', 'end', 'up'] as const) {
    panelRows(state.panel!, state.size, highlight)
    state = play(state, { type }).state
  }
  expect(times).toBe(1)
})

test.each([
  [80, 'up, down, page up, page down   q goes back'],
  [40, '  q goes back'],
])('in %d columns, a panel shows the key that closes it', (columns, keys) => {
  const panel = { kind: 'text', title: 'x', page: { text: 'y', format: 'plain' }, top: 0 } as const
  expect(panelRows(panel, { columns, rows: 20 }).at(-1)).toContain(keys)
})

test('a passage starts at the top of the screen, and earlier passages are above', () => {
  const size = { columns: 40, rows: 12 }
  const around = { title: '[1] x', before: 'Before it. '.repeat(20), after: 'After it. '.repeat(40) }
  const lines = panelRows(passagePanel({ ...around, passage: 'The passage.' }, size), size)
  expect(lines.slice(2).find(line => /\w/.test(line))).toBe('  The passage.')
  const alone = passagePanel({ ...around, before: '', passage: 'The passage.' }, size)
  expect(alone).toMatchObject({ top: 0 })
})
