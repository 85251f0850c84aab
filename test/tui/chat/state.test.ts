import { describe, expect, test } from 'vitest'
import type { ChatEvent, ChatFailure, ChatState } from '../../../src/tui/chat/types.ts'
import { contentOf } from '../../../src/tui/parts/editor.ts'
import { imageOf } from '../../harness/images.ts'
import { freshChat, message, passage, play, printedParts, printedText, submit, turnEvent } from './play.ts'

const call = { id: 't1', name: 'search_kb', arguments: '{"query":"laws"}' }
const citation = {
  number: 1,
  knowledgeBaseId: '00000000-0000-4000-8000-000000000001',
  documentId: 'd',
  chunkId: 'c1',
  chunkIndex: 2,
  title: 'Laws',
  sourceFilename: null,
  page: null,
}
const cited = { citations: JSON.stringify([citation]) }
const away: ChatFailure = { kind: 'unreachable', code: 'unreachable', message: 'no runtime', nextSteps: [] }
const imageDescriptor = { index: 0, mediaType: 'image/png', bytes: 1_500 } as const
const refusal = (code: string): ChatFailure => ({
  kind: 'rejected',
  code,
  message: 'no',
  nextSteps: ['do this'],
})
const approval = (approvalId = 'a1'): ChatEvent =>
  turnEvent('tool-approval', { approvalId, toolCall: call, expiresAt: '2026-01-01T00:02:00.000Z' })

const asked = play(freshChat, ...submit('why?')).state
const answering = play(
  asked,
  turnEvent('user-message', message('user', 'why?')),
  turnEvent('token', { delta: 'Because' }),
).state
const answered = play(answering, turnEvent('done', message('agent', 'Because', cited))).state
const draft = (state: ChatState) => contentOf(state.input.editor)

describe('a turn', () => {
  test('is sent, answered and counted', () => {
    const sent = play(freshChat, ...submit(' why? '))
    expect(sent.effects).toMatchObject([
      { type: 'print', part: { kind: 'question', text: 'why?' } },
      { type: 'send', message: { content: 'why?' } },
    ])
    expect(draft(sent.state)).toBe('')
    const told = play(
      sent.state,
      turnEvent('user-message', message('user', 'why?')),
      turnEvent('token', { delta: 'Because.\n' }),
      turnEvent('token', { delta: '\nSo [1].' }),
      turnEvent(
        'done',
        message('agent', 'Because.\n\nSo [1].', { ...cited, model: 'large', cost_usd: '0.5' }),
      ),
    )
    expect(printedText(told.effects)).toEqual(['Because.', 'So [1].', 'sources'])
    expect(printedParts(told.effects).map(one => one.kind === 'answer' && one.isFirst)).toEqual([
      true,
      false,
      false,
    ])
    expect(told.state).toMatchObject({
      turn: undefined,
      model: 'large',
      usage: { tokens: 7, costUsd: 0.5 },
      lastExchange: {
        answer: 'Because.\n\nSo [1].',
        citations: [{ number: 1 }],
        question: { messageId: 'user-why?' },
      },
    })
  })

  test('a command that has to wait for the answer stays in the composer with a notice', () => {
    const waiting = play(answering, ...submit('/new')).state
    expect(waiting.notice).toContain('wait for the answer')
    const over = play(waiting, turnEvent('done', message('agent', 'Because'))).state
    expect(over.notice).toBe('')
    expect(draft(over)).toBe('/new')
  })

  test('dims sentences that no source supports, and lists them below the sources', () => {
    const text = 'It is true. It is invented.'
    const sentences = ['It is invented.']
    const answer = message('agent', text, { unsupported: '[{"start":12,"end":27}]' })
    const printed = printedParts(play(answering, turnEvent('done', answer)).effects)
    expect(printed[0]).toMatchObject({ kind: 'answer', dimmed: sentences })
    expect(printed.at(-1)).toEqual({ kind: 'unsupported', sentences })
    const resumed = play(freshChat, { type: 'resumed', messages: [answer], title: 'Laws' })
    expect(printedParts(resumed.effects)).toMatchObject([
      { kind: 'note' },
      { kind: 'answer', dimmed: sentences },
      { kind: 'unsupported', sentences },
    ])
  })

  test('lists passages that an answer without citations used, and opens them', () => {
    const used = [{ ...citation, attachmentId: null }]
    const uncited: ChatEvent = {
      type: 'turn',
      event: { event: 'done', data: message('agent', 'Because') },
      usedPassages: used,
    }
    const { state, effects } = play(answering, uncited)
    expect(printedParts(effects).at(-1)).toMatchObject({ kind: 'sources', isUncited: true, citations: used })
    expect(play(state, { type: 'number', number: 1 }).effects).toMatchObject([
      { type: 'openPassage', citation: { chunkId: 'c1' } },
    ])
    const later = play(answered, ...submit('so?'), {
      ...uncited,
      usedPassages: [{ ...citation, attachmentId: null, chunkId: 'c2' }],
    })
    expect(later.state.lastExchange.citations.map(({ number, chunkId }) => [number, chunkId])).toEqual([
      [1, 'c1'],
      [2, 'c2'],
    ])
  })

  test('a source of an earlier answer opens after answers with no or other sources', () => {
    const later = { ...citation, number: 2, chunkId: 'c2' }
    for (const citations of [[], [later]]) {
      const next = play(
        answered,
        ...submit('so?'),
        turnEvent('done', message('agent', 'So.', { citations: JSON.stringify(citations) })),
        { type: 'number', number: 1 },
      )
      expect(next.effects.at(-1)).toMatchObject({ type: 'openPassage', citation: { chunkId: 'c1' } })
    }
  })

  test('prints the whole answer if it was not streamed', () => {
    expect(printedText(play(asked, turnEvent('done', message('agent', 'All at once.'))).effects)).toEqual([
      'All at once.',
    ])
  })

  test('shows reasoning as one line with its duration, and /thoughts shows the text', () => {
    const tick = (ms: number) => ({ type: 'tick', nowMs: asked.nowMs + ms }) as const
    const thinking = play(
      asked,
      tick(1_000),
      turnEvent('reasoning', { delta: 'Two and \u001b[31mtwo' }),
      tick(5_000),
      turnEvent('reasoning', { delta: '.' }),
    )
    expect(thinking.effects).toEqual([])
    const { state, effects } = play(
      thinking.state,
      turnEvent('token', { delta: 'Four.' }),
      turnEvent('done', message('agent', 'Four.')),
    )
    expect(printedParts(effects)[0]).toMatchObject({
      text: 'thought for 4.0 s · /thoughts shows it',
      tone: 'dim',
    })
    expect(play(state, ...submit('/thoughts')).state.panel).toMatchObject({
      kind: 'text',
      page: { text: 'Two and two.' },
    })
  })

  test('keeps text before a tool call as an aside that is not part of the answer', () => {
    const { state, effects } = play(
      asked,
      turnEvent('token', { delta: 'Let me look.' }),
      turnEvent('token-reset', {}),
      turnEvent('tool-call', { toolCalls: [call] }),
      turnEvent('tool-result', {
        toolCallId: 't1',
        name: 'search_kb',
        content: '{"results":[1]}',
        outcome: 'success',
        durationMs: 4,
      }),
      turnEvent('token', { delta: 'Found.' }),
      turnEvent('done', message('agent', 'Found.')),
    )
    expect(printedText(effects)).toEqual(['Let me look.', 'tool', 'Found.'])
    expect(printedParts(effects)[0]).toMatchObject({ isAside: true })
    expect(printedParts(effects)[2]).toMatchObject({ block: { gap: true } })
    expect(state.lastExchange.answer).toBe('Found.')
    expect(play(state, ...submit('/expand')).state.panel).toMatchObject({ kind: 'text', title: 'search_kb' })
  })

  test('removes control sequences from all events [security rule 16]', () => {
    const evil = '\x1b]0;owned\x07\x1b[2Jbad\u202e'
    const { state, effects } = play(
      asked,
      turnEvent('token', { delta: evil }),
      turnEvent('tool-call', { toolCalls: [call] }),
      turnEvent('tool-result', {
        toolCallId: 't1',
        name: 'x',
        content: evil,
        outcome: 'failure',
        durationMs: 1,
      }),
      turnEvent('done', message('agent', evil, { model: evil })),
    )
    expect(JSON.stringify([effects, state])).not.toMatch(/\\u001b|\\u0007|\u202e|owned/)
  })

  test.each([
    [
      'with an error that is kept',
      turnEvent('error', message('agent', '', { error_message: 'no more' })),
      'bad: no more',
    ],
    [
      'refused as an event',
      turnEvent('stream-error', { code: 'rate_limited', message: 'later', status: 429 }),
      'bad: later (rate_limited)',
    ],
    ['refused', { type: 'failed', failure: refusal('forbidden') } as ChatEvent, 'bad: no (forbidden)'],
  ])('ends %s', (_name, event, told) => {
    const { state, effects } = play(asked, event)
    expect(printedText(effects)[0]).toBe(told)
    expect(state.turn).toBeUndefined()
  })

  test.each<[string, ChatEvent]>([
    ['fails', turnEvent('error', message('agent', 'no', { error_message: 'no more' }))],
    ['is refused', { type: 'failed', failure: refusal('forbidden') }],
    ['is lost', { type: 'failed', failure: away }],
    ['is stopped', { type: 'cancel' }],
  ])('another version that %s keeps the earlier answer and shows it again', (_how, event) => {
    const retried = play(
      answered,
      ...submit('/retry'),
      turnEvent('user-message', message('user', 'why?', { version_of: 'x' })),
    ).state
    const { state, effects } = play(retried, event)
    expect(printedText(effects).slice(-3)).toEqual([
      'dim: the earlier answer is kept:',
      'you: why?',
      'Because',
    ])
    expect(state.lastExchange).toEqual(answered.lastExchange)
  })

  test('another version of an unanswered question shows no earlier answer', () => {
    const error = turnEvent('error', message('agent', 'no', { error_message: 'no more' }))
    const failed = play(
      answered,
      ...submit('so?'),
      turnEvent('user-message', message('user', 'so?')),
      error,
    ).state
    expect(printedText(play(failed, ...submit('/retry'), error).effects)).not.toContain('Because')
  })

  test('restores a rejected message in the composer unless it has other text', () => {
    const failed: ChatEvent = { type: 'failed', failure: refusal('forbidden') }
    expect(draft(play(asked, failed).state)).toBe('why?')
    expect(draft(play(asked, { type: 'typed', text: 'new' }, failed).state)).toBe('new')
  })

  test.each(['chat_disabled', 'llm_credential_missing'])('%s: shows passages in place of an answer', code => {
    const { state, effects } = play(asked, { type: 'failed', failure: refusal(code) })
    expect(effects).toEqual([
      { type: 'print', part: { kind: 'note', text: 'no model is available: no', tone: 'dim' } },
      { type: 'print', part: { kind: 'note', text: 'do this', tone: 'dim' } },
      { type: 'find', question: 'why?' },
    ])
    const found = play(
      state,
      { type: 'passagesFound', passages: [passage('a passage')] },
      { type: 'number', number: 1 },
    )
    expect(found.effects).toMatchObject([
      { part: { kind: 'passages', question: 'why?', hasSetup: true } },
      { part: { kind: 'note', text: '/open 1 shows the whole first passage' } },
      { type: 'openPassage', citation: { chunkId: 'c', chunkIndex: 2 }, knownText: 'a passage' },
    ])
    expect(found.state.model).toBeNull()
    // The reason is printed once.
    const again = play(found.state, ...submit('so?'), { type: 'failed', failure: refusal(code) })
    expect(again.effects.at(-1)).toEqual({ type: 'find', question: 'so?' })
    expect(JSON.stringify(again.effects)).not.toContain('no model is available')
    expect(play(again.state, { type: 'passagesFound', passages: [] }).effects).toMatchObject([
      { part: { kind: 'passages', question: 'so?', hasSetup: false } },
    ])
  })

  test('queues messages that are typed during an answer and sends them in order', () => {
    const queued = play(answering, ...submit('and?'), ...submit('so?'))
    expect(queued.effects).toEqual([])
    expect(draft(queued.state)).toBe('')
    expect(queued.state.queue.map(({ content }) => content)).toEqual(['and?', 'so?'])
    const first = play(queued.state, turnEvent('done', message('agent', 'Because')))
    expect(first.effects.slice(-2)).toMatchObject([
      { type: 'print', part: { kind: 'question', text: 'and?' } },
      { type: 'send', message: { content: 'and?' } },
    ])
    const second = play(first.state, turnEvent('done', message('agent', 'And.')))
    expect(second.effects.at(-1)).toMatchObject({ type: 'send', message: { content: 'so?' } })
    expect(second.state.queue).toEqual([])
  })

  test('up in an empty composer restores the last queued message', () => {
    const { state } = play(answering, ...submit('and?'), ...submit('so?'), { type: 'up' })
    expect(draft(state)).toBe('so?')
    expect(state.queue.map(({ content }) => content)).toEqual(['and?'])
  })

  test.each<[string, ChatEvent]>([
    ['is stopped', { type: 'cancel' }],
    ['fails', turnEvent('error', message('agent', '', { error_message: 'no more' }))],
    ['is lost', { type: 'failed', failure: away }],
    ['finds no model', { type: 'failed', failure: refusal('chat_disabled') }],
  ])('restores queued messages in the composer if it %s', (_how, event) => {
    const { state } = play(answering, ...submit('and?'), { type: 'typed', text: 'so' }, event)
    expect(state.queue).toEqual([])
    expect(draft(state)).toBe('and?\n\nso')
  })

  test('ignores late events of a stopped turn', () => {
    const stopped = play(answering, { type: 'cancel' }).state
    expect(play(stopped, turnEvent('token', { delta: 'more' })).effects).toEqual([])
  })
})

describe('an empty chat', () => {
  const greeted = play(freshChat, {
    type: 'suggestionsLoaded',
    questions: ['What does “A” say?', 'Summarize “B”.'],
  }).state

  test('asks a suggested question by its number, until the first question', () => {
    expect(play(greeted, { type: 'number', number: 2 }).effects.at(-1)).toMatchObject({
      type: 'send',
      message: { content: 'Summarize “B”.' },
    })
    expect(play(greeted, { type: 'number', number: 3 }).effects).toEqual([])
    const asked = play(greeted, ...submit('why?'), turnEvent('done', message('agent', 'So.'))).state
    expect(play(asked, { type: 'number', number: 2 }).effects).toEqual([])
  })

  test('suggests other questions for other knowledge bases', () => {
    expect(play(greeted, { type: 'basesChanged', knowledgeBases: ['notes'] }).effects).toEqual([
      { type: 'loadSuggestions' },
    ])
  })
})

describe('Ctrl-C', () => {
  test('stops an answer and keeps its text, and the next one exits', () => {
    const stopped = play(answering, { type: 'cancel' })
    expect(stopped.effects[0]).toEqual({ type: 'abort' })
    expect(printedText(stopped.effects)).toEqual(['Because', 'dim: stopped'])
    expect(play(stopped.state, { type: 'cancel' }).effects).toEqual([{ type: 'leave' }])
    expect(play(stopped.state, { type: 'left' }, { type: 'cancel' }).effects).toEqual([])
  })

  test('clears the composer and keeps its text in the history', () => {
    const { state } = play(freshChat, { type: 'typed', text: 'half' }, { type: 'cancel' })
    expect(draft(state)).toBe('')
    expect(draft(play(state, { type: 'up' }).state)).toBe('half')
  })

  test('stops a tool call that waits for approval', () => {
    expect(play(answering, approval(), { type: 'cancel' }).effects[0]).toEqual({ type: 'abort' })
  })

  test('cancels a message that waits for the runtime', () => {
    const waiting = play(asked, { type: 'failed', failure: away }).state
    const { state, effects } = play(waiting, { type: 'cancel' })
    expect(effects[0]).toEqual({ type: 'stopWaiting' })
    expect(draft(state)).toBe('why?')
    expect(state.outage).toBeUndefined()
  })

  test('closes a full-screen panel', () => {
    const open = play(answered, ...submit('/expand')).state
    expect(
      play(
        { ...open, panel: { kind: 'text', title: '', page: { text: '', format: 'plain' }, top: 0 } },
        { type: 'cancel' },
      ).state.panel,
    ).toBeUndefined()
  })
})

describe('a pending approval', () => {
  const later: ChatEvent = { type: 'tick', nowMs: 2_000 }

  test.each([
    ['o', 'once'],
    ['a', 'always'],
    ['n', 'never'],
  ])('%s decides %s', (key, decision) => {
    const { state, effects } = play(answering, approval(), later, { type: 'typed', text: key })
    expect(effects).toEqual([{ type: 'decide', approvalId: 'a1', decision }])
    expect(state.turn?.pendingApprovals).toEqual([])
    expect(draft(state)).toBe('')
  })

  test('ignores keys typed before it appeared, Enter and pasted text', () => {
    const keys: ChatEvent[] = [
      { type: 'enter' },
      { type: 'pasted', text: 'o' },
      { type: 'typed', text: 'on' },
    ]
    expect(play(answering, approval(), { type: 'typed', text: 'o' }, later, ...keys).effects).toEqual([])
  })

  test('can show all arguments and stays pending', () => {
    const open = play(answering, approval(), later, { type: 'typed', text: 'e' })
    expect(open.state.panel).toMatchObject({
      kind: 'text',
      title: `arguments of ${call.name}`,
      page: { text: JSON.stringify(JSON.parse(call.arguments), null, 2) },
    })
    const closed = play(open.state, { type: 'typed', text: 'o' }, { type: 'typed', text: 'q' })
    expect([...open.effects, ...closed.effects]).toEqual([])
    expect(play(closed.state, { type: 'typed', text: 'o' }).effects).toMatchObject([{ decision: 'once' }])
  })

  test('is decided in order if there are several', () => {
    const { effects } = play(answering, approval('a1'), approval('a2'), later, ...submit('o').slice(0, 1), {
      type: 'escape',
    })
    expect(effects).toEqual([
      { type: 'decide', approvalId: 'a1', decision: 'once' },
      { type: 'decide', approvalId: 'a2', decision: 'never' },
    ])
  })

  test('disappears when its result arrives', () => {
    const { state } = play(
      answering,
      turnEvent('tool-call', { toolCalls: [call] }),
      approval(),
      turnEvent('tool-result', {
        toolCallId: 't1',
        name: 'x',
        content: 'late',
        outcome: 'denied',
        durationMs: 1,
      }),
    )
    expect(state.turn?.pendingApprovals).toEqual([])
  })
})

describe('a lost connection to the runtime', () => {
  const lost = play(asked, { type: 'failed', failure: away })

  test('before the message was received: the message waits and is sent on reconnection', () => {
    expect(lost.effects).toEqual([{ type: 'wait' }])
    expect(lost.state.outage).toMatchObject({ unsentMessage: { content: 'why?' } })
    const kept = play(lost.state, ...submit('more'))
    expect(draft(kept.state)).toBe('more')
    expect(kept.state.notice).toContain('the runtime is unreachable')
    const back = play(kept.state, { type: 'reconnected', messages: [] })
    expect(back.effects).toMatchObject([
      { type: 'print' },
      { type: 'resume', fallbackMessage: { content: 'why?' } },
    ])
    expect(back.state.notice).toBe('')
    expect(draft(back.state)).toBe('more')
  })

  test('after the message was received: the message is not sent twice', () => {
    const stored = message('user', 'why?')
    const cut = play(lost.state, { type: 'reconnected', messages: [stored] })
    expect(cut.effects.at(-1)).toMatchObject({
      type: 'resume',
      fallbackMessage: { replaces: stored.messageId },
    })
    const whole = message('agent', 'Because.', { finish_reason: 'stop' })
    const done = play(lost.state, { type: 'reconnected', messages: [stored, whole] })
    expect(printedText(done.effects)).toEqual(['good: the runtime is available again', 'Because.'])
    expect(done.state.turn).toBeUndefined()
  })

  test('an earlier message with identical text does not count as received', () => {
    const again = play(answered, ...submit('why?'), { type: 'failed', failure: away }).state
    const said = [message('user', 'why?'), message('agent', 'Because', { finish_reason: 'stop' })]
    expect(play(again, { type: 'reconnected', messages: said }).effects.at(-1)).toMatchObject({
      type: 'resume',
      excludedIds: [undefined, 'user-why?'],
      fallbackMessage: { content: 'why?' },
    })
  })

  test('during an answer: the partial answer stays, and a retry replaces the question', () => {
    const { state, effects } = play(answering, { type: 'failed', failure: away })
    expect(printedText(effects)[0]).toBe('Because')
    expect(effects.at(-1)).toEqual({ type: 'wait' })
    const back = play(state, { type: 'reconnected', messages: [] }, ...submit('/retry'))
    expect(back.effects.at(-1)).toMatchObject({
      type: 'send',
      message: { content: 'why?', replaces: 'user-why?' },
    })
  })
})

describe('a running turn at the runtime', () => {
  const question = message('user', 'why?')

  test('is shown below its question in a resumed conversation', () => {
    const resumed = play(freshChat, { type: 'resumed', messages: [question], title: 'x' }).state
    const { effects, state } = play(
      resumed,
      { type: 'turnResumed', question },
      turnEvent('user-message', question),
      turnEvent('token', { delta: 'Because.' }),
      turnEvent('done', message('agent', 'Because.')),
    )
    expect(printedText(effects)).toEqual(['Because.'])
    expect(state.lastExchange.question).toEqual({ content: 'why?', messageId: 'user-why?' })
  })

  test('shows its question if the conversation does not list it yet', () => {
    const resumed = play(freshChat, { type: 'resumed', messages: [], title: 'x' }).state
    expect(printedText(play(resumed, { type: 'turnResumed', question }).effects)).toEqual(['you: why?'])
  })

  test('does not replace a turn that was started in the meantime', () => {
    expect(play(asked, { type: 'turnResumed', question })).toEqual({ state: asked, effects: [] })
  })

  test('is looked up after a lost answer, unless the question was asked again', () => {
    const lost = play(answering, { type: 'failed', failure: away }).state
    const back = play(lost, { type: 'reconnected', messages: [question] })
    expect(back.effects.at(-1)).toEqual({ type: 'resume', content: 'why?', excludedIds: [] })
    const retried = play(lost, ...submit('/retry'), { type: 'reconnected', messages: [question] })
    expect(retried.effects.some(({ type }) => type === 'resume')).toBe(false)
  })

  test.each(['stop', 'length', 'content_filter'])(
    'an answer that finished with %s is shown on reconnection',
    reason => {
      const lost = play(answering, { type: 'failed', failure: away }).state
      const whole = message('agent', 'Because of it.', { finish_reason: reason })
      const { effects } = play(lost, { type: 'reconnected', messages: [question, whole] })
      expect(printedText(effects)).toContain('Because of it.')
    },
  )

  test('shows that it reconnects until the connection is restored', () => {
    const broken = play(answering, { type: 'connection', isLost: true }).state
    expect(broken.turn?.isReconnecting).toBe(true)
    const back = play(broken, { type: 'connection', isLost: false }).state
    expect(back).toEqual(answering)
  })
})

describe('versions of the last question', () => {
  test('alt with an arrow key steps through them if the composer is empty', () => {
    expect(play(answered, { type: 'wordLeft' }).effects).toEqual([{ type: 'stepVersion', offset: -1 }])
    expect(play(answered, { type: 'wordRight' }).effects).toEqual([{ type: 'stepVersion', offset: 1 }])
  })

  test.each<[string, ChatState]>([
    ['text is typed', play(answered, { type: 'typed', text: 'a b' }).state],
    ['an answer is coming', answering],
    ['nothing was asked', freshChat],
  ])('are not shown while %s', (_name, state) => {
    expect(play(state, { type: 'wordLeft' }).effects).toEqual([])
  })

  test('a version is shown from its question on', () => {
    const said = [
      message('user', 'first?'),
      message('agent', 'First.'),
      message('user', 'why?'),
      message('agent', 'So.'),
    ]
    const { effects } = play(answered, {
      type: 'resumed',
      messages: said,
      title: 'version 2 of 3',
      fromId: 'user-why?',
    })
    expect(printedText(effects)).toEqual(['dim: version 2 of 3 · 2 earlier messages', 'you: why?', 'So.'])
  })
})

describe('commands', () => {
  test.each<[string, object]>([
    ['/new', { type: 'openConversation', conversation: undefined }],
    ['/history', { type: 'openChoices', purpose: 'history' }],
    ['/model', { type: 'openChoices', purpose: 'model' }],
    ['/model large one', { type: 'choose', purpose: 'model', input: 'large one' }],
    ['/kb papers, notes', { type: 'choose', purpose: 'kb', input: 'papers, notes' }],
    ['/kb', { type: 'openChoices', purpose: 'kb' }],
    ['/tools', { type: 'openTools' }],
    ['/open 1', { type: 'openPassage', citation }],
    ['/open', { type: 'openPassage', citation }],
    ['/copy', { type: 'copy', text: 'Because' }],
    ['/export notes.md', { type: 'export', file: 'notes.md' }],
    ['/retry', { type: 'send', message: { content: 'why?', replaces: 'user-why?' } }],
    ['/versions', { type: 'openChoices', purpose: 'versions' }],
    ['/versions 2', { type: 'useVersion', version: 2 }],
    ['/rename Refund window', { type: 'rename', title: 'Refund window' }],
    ['/quit', { type: 'leave' }],
    ['/q', { type: 'leave' }],
    ['/help', { type: 'print', part: { kind: 'help' } }],
  ])('%s', (line, effect) => {
    expect(play(answered, ...submit(line)).effects.at(-1)).toMatchObject(effect)
  })

  test('/temperature applies to later messages until it is reset', () => {
    const set = play(answered, ...submit('/temperature 0.2'), ...submit('and so?'))
    expect(set.effects.at(-1)).toMatchObject({ type: 'send', message: { temperature: 0.2 } })
    const back = play(answered, ...submit('/temperature 1'), ...submit('/temperature'), ...submit('/retry'))
    expect(back.effects.at(-1)).toMatchObject({ message: { temperature: undefined } })
    for (const wrong of ['3', '-1', 'hot']) {
      const { state } = play(answered, ...submit(`/temperature ${wrong}`))
      expect([state.temperature, state.notice]).toEqual([
        undefined,
        '/temperature takes a number from 0 to 2',
      ])
    }
  })

  test('/edit restores the question in the composer, and sending replaces it', () => {
    const edited = play(answered, ...submit('/edit'))
    expect(draft(edited.state)).toBe('why?')
    expect(play(edited.state, ...submit('!')).effects.at(-1)).toMatchObject({
      message: { content: 'why?!', replaces: 'user-why?' },
    })
    expect(play(edited.state, { type: 'cancel' }).state.input.replaces).toBeUndefined()
  })

  test('/branch edits a selected question with the images that this chat still has', () => {
    const image = { ...imageOf(), name: 'shot.png' }
    const asked = play(freshChat, { type: 'imageRead', image }, ...submit('why?')).state
    const { state } = play(
      asked,
      turnEvent('user-message', message('user', 'why?')),
      turnEvent('done', message('agent', 'Because')),
    )
    expect(play(state, ...submit('/branch')).effects).toEqual([{ type: 'openChoices', purpose: 'questions' }])
    const items = ['user-first?', 'user-why?'].map(id => ({ id, name: id, description: '', isChosen: false }))
    const panel = { kind: 'choice', purpose: 'questions', title: '', items, selectedIndex: 1 } as const
    const last = play(state, { type: 'panelOpened', panel }, { type: 'enter' }).state
    expect([draft(last), last.images, last.input.replaces]).toEqual(['why?', [image], 'user-why?'])
    const earlier = play(
      state,
      { type: 'panelOpened', panel: { ...panel, selectedIndex: 0 } },
      { type: 'enter' },
    )
    expect(earlier.effects).toEqual([{ type: 'loadQuestion', messageId: 'user-first?' }])
    const question = { content: 'first?', messageId: 'user-first?', storedImages: [imageDescriptor] }
    const edited = play(earlier.state, { type: 'editing', question }).state
    expect([draft(edited), edited.images, edited.input.replaces]).toEqual(['first?', [], 'user-first?'])
    expect(edited.notice).toContain('without its images')
    expect(play(answering, { type: 'editing', question }).state.input.replaces).toBeUndefined()
  })

  test.each(['/nothing', '/open 9', '/expand 3', '/copy 2'])('%s is reported as unknown', line => {
    const { state, effects } = play(answered, ...submit(line))
    expect(effects).toEqual([])
    expect(state.notice).not.toBe('')
  })

  test('two slashes send one, and a path is not a command', () => {
    expect(play(freshChat, ...submit('//help')).effects.at(-1)).toMatchObject({
      message: { content: '/help' },
    })
    expect(play(freshChat, ...submit('what is /etc')).effects.at(-1)).toMatchObject({
      message: { content: 'what is /etc' },
    })
  })

  test('tab completes a command', () => {
    const one = play(freshChat, { type: 'typed', text: '/ex' }, { type: 'tab' })
    expect(draft(one.state)).toBe('/expand')
    expect(draft(play(one.state, { type: 'tab' }).state)).toBe('/export')
    expect(draft(play(freshChat, { type: 'typed', text: '/he' }, { type: 'tab' }).state)).toBe('/help ')
  })

  test('tab completes an argument with names that are requested once', () => {
    const begun = play(freshChat, { type: 'typed', text: '/kb ' }, { type: 'typed', text: 'pa' })
    expect(begun.effects).toEqual([{ type: 'loadNames', purpose: 'kb' }])
    const known = play(begun.state, {
      type: 'namesLoaded',
      purpose: 'kb',
      names: ['notes', 'Papers', 'papyri'],
    }).state
    expect(draft(play(known, { type: 'tab' }).state)).toBe('/kb Papers')
    expect(draft(play(known, { type: 'tab' }, { type: 'tab' }).state)).toBe('/kb papyri')
    const second = play(known, { type: 'typed', text: 'py, n' }, { type: 'tab' }, { type: 'tab' })
    expect(draft(second.state)).toBe('/kb papy, notes')
    expect(second.effects).toEqual([])
  })

  test('a list opens for a selection', () => {
    const items = ['a', 'b'].map(id => ({ id, name: id, description: '', isChosen: id === 'a' }))
    const open = (purpose: 'model' | 'kb' | 'history' | 'versions') =>
      play(answered, {
        type: 'panelOpened',
        panel: { kind: 'choice', purpose, title: '', items, selectedIndex: 0 },
      }).state
    expect(play(open('model'), { type: 'down' }, { type: 'enter' }).state).toMatchObject({
      llmServiceId: 'b',
      model: 'b',
      notice: 'b answers from now on',
    })
    expect(play(open('history'), { type: 'enter' }).effects).toMatchObject([
      { type: 'openConversation', conversation: { id: 'a' } },
    ])
    expect(play(open('versions'), { type: 'down' }, { type: 'enter' }).effects).toMatchObject([
      { type: 'useVersion', version: { id: 'b' } },
    ])
    expect(play(open('kb'), { type: 'enter' }).effects).toMatchObject([{ knowledgeBases: [{ id: 'a' }] }])
    expect(
      play(open('kb'), { type: 'down' }, { type: 'typed', text: ' ' }, { type: 'enter' }).effects,
    ).toMatchObject([{ knowledgeBases: [] }])
    expect(play(open('kb'), { type: 'submitted', text: '2' }).effects).toMatchObject([
      { knowledgeBases: [{ id: 'b' }] },
    ])
  })
})

describe('images', () => {
  const named = (name: string) => ({ name, ...imageOf() })
  const shot = named('shot.png')
  const read = (name: string): ChatEvent[] => [
    ...submit(`/image ${name}`),
    { type: 'imageRead', image: named(name) },
    { type: 'fileTaskEnded' },
  ]
  const withShot = play(answered, ...read('shot.png')).state
  const refused: ChatEvent = { type: 'failed', failure: refusal('llm_model_no_images') }

  test('are sent with the next question only', () => {
    expect(play(answered, ...submit('/image a/shot.png'))).toMatchObject({
      state: { fileTask: 'reading shot.png' },
      effects: [{ type: 'readImage', path: 'a/shot.png' }],
    })
    const sent = play(withShot, ...submit('what is it?'))
    expect(sent.effects).toMatchObject([
      { part: { kind: 'question', text: 'what is it?', images: ['[image: shot.png]'] } },
      { type: 'send', message: { content: 'what is it?', images: [shot] } },
    ])
    const next = play(sent.state, turnEvent('done', message('agent', 'A cat.')), ...submit('why?'))
    expect(next.effects.at(-1)).toMatchObject({ message: { content: 'why?', images: [] } })
  })

  test('are limited to four, and /image alone removes them', () => {
    const names = ['1', '2', '3', '4', '5']
    const { state } = play(answered, ...names.flatMap(read))
    expect(state.images.map(({ name }) => name)).toEqual(['1', '2', '3', '4'])
    expect(state.notice).toContain('at most 4 images')
    const removed = play(state, ...submit('/image')).state
    expect([removed.images, removed.notice]).toEqual([[], 'removed 4 images'])
    expect(play(removed, ...submit('/image')).state.notice).toContain('no image to remove')
  })

  test('are restored with a question that was rejected or taken back', () => {
    const asking = play(withShot, ...submit('what is it?')).state
    const lost: ChatEvent = { type: 'failed', failure: away }
    for (const { state } of [play(asking, refused), play(asking, lost, { type: 'cancel' })])
      expect([draft(state), state.images]).toEqual(['what is it?', [shot]])
  })

  test('wait with their question while the runtime is unreachable', () => {
    const asking = play(withShot, ...submit('what is it?')).state
    const lost = play(asking, { type: 'failed', failure: away }).state
    expect(play(lost, { type: 'reconnected', messages: [] }).effects.at(-1)).toMatchObject({
      type: 'resume',
      fallbackMessage: { images: [shot] },
    })
  })

  test('are sent with /retry and /edit of their question, unless the edit is cancelled', () => {
    const failed = play(
      withShot,
      ...submit('what is it?'),
      turnEvent('user-message', message('user', 'what is it?')),
      turnEvent('error', message('agent', '', { error_message: 'cannot read images' })),
    ).state
    const say = { content: 'what is it?', replaces: 'user-what is it?', images: [shot] }
    expect(play(failed, ...submit('/retry')).effects.at(-1)).toMatchObject({ type: 'send', message: say })
    const other = play(failed, ...read('other.png'), ...submit('/retry'))
    expect(other.effects.at(-1)).toMatchObject({ message: { images: [named('other.png')] } })
    const edited = play(failed, ...read('other.png'), ...submit('/edit')).state
    expect(edited.images).toEqual([shot, named('other.png')])
    expect(play(edited, { type: 'cancel' }).state.images).toEqual([named('other.png')])
    expect(play(edited, { type: 'enter' }).effects.at(-1)).toMatchObject({
      message: { ...say, images: [shot, named('other.png')] },
    })
  })

  test('of an earlier chat are named as missing when the question is asked again', () => {
    const stored = { ...message('user', 'what is it?'), images: [imageDescriptor] }
    const resumed = play(freshChat, { type: 'resumed', messages: [stored], title: 'x' })
    expect(printedParts(resumed.effects)[1]).toEqual({
      kind: 'question',
      text: 'what is it?',
      images: ['[image 1: image/png, 1.5 KB]'],
    })
    const retried = play(resumed.state, ...submit('/retry'))
    expect([retried.effects, retried.state.notice]).toEqual([
      [],
      'to retry, first add the images of the question again with /image FILE',
    ])
    expect(play(resumed.state, ...read('shot.png'), ...submit('/retry')).effects.at(-1)).toMatchObject({
      message: { replaces: stored.messageId, images: [shot] },
    })
    expect(play(resumed.state, ...submit('/edit')).state.notice).toContain('without its images')
  })

  test('of a resumed turn are named once', () => {
    const stored = { ...message('user', 'what is it?'), images: [imageDescriptor] }
    const { effects } = play(freshChat, { type: 'turnResumed', question: stored })
    expect(printedParts(effects)).toMatchObject([
      { kind: 'question', images: ['[image 1: image/png, 1.5 KB]'] },
    ])
  })
})

describe('attaching a file', () => {
  const attaching = play(answered, ...submit('/attach notes/day.md'))

  test('starts with /attach, and /attach alone lists attachments', () => {
    expect(attaching).toMatchObject({
      state: { fileTask: 'attaching day.md' },
      effects: [{ type: 'attachFile', path: 'notes/day.md' }],
    })
    expect(play(answered, ...submit('/attach')).effects).toEqual([{ type: 'openAttachments' }])
  })

  test.each(['so?', '/new', '/image a.png'])('delays %s until it is finished', line => {
    const waiting = play(attaching.state, ...submit(line))
    expect(waiting.effects).toEqual([])
    expect([draft(waiting.state), waiting.state.notice]).toEqual([
      line,
      'wait for the file, or stop it with ctrl+c',
    ])
    const ended = play(waiting.state, { type: 'fileTaskEnded' }, { type: 'enter' })
    expect(ended.effects.length).toBeGreaterThan(0)
  })

  test('is cancelled by Ctrl-C, and the next one exits', () => {
    const { state, effects } = play(attaching.state, { type: 'cancel' })
    expect(effects).toMatchObject([{ type: 'stopFileTask' }, { part: { text: 'stopped attaching day.md' } }])
    expect(state.fileTask).toBeUndefined()
    expect(play(state, { type: 'cancel' }).effects).toEqual([{ type: 'leave' }])
  })

  test('does not start while the runtime is unreachable', () => {
    const lost = play(asked, { type: 'failed', failure: away }, ...submit('/attach day.md'))
    expect(lost.state.fileTask).toBeUndefined()
    expect(lost.state.notice).toContain('the runtime is unreachable')
  })
})

describe('typing', () => {
  test('a backslash before Enter, alt+Enter and ctrl+Enter insert a line break', () => {
    const { state, effects } = play(
      freshChat,
      ...submit('one\\'),
      { type: 'typed', text: 'two' },
      { type: 'newline' },
    )
    expect(effects).toEqual([])
    expect(draft(state)).toBe('one\ntwo\n')
  })

  test('up and down navigate through sent messages and return to the draft', () => {
    const { state } = play(answered, { type: 'typed', text: 'draft' }, { type: 'up' })
    expect(draft(state)).toBe('why?')
    expect(draft(play(state, { type: 'down' }).state)).toBe('draft')
  })

  test('ctrl+r searches sent messages', () => {
    const past = {
      ...answered,
      input: { ...answered.input, sentLines: ['first law', 'second', 'third law'] },
    }
    const search: ChatEvent[] = [{ type: 'search' }, { type: 'typed', text: 'law' }]
    expect(draft(play(past, ...search).state)).toBe('third law')
    expect(draft(play(past, ...search, { type: 'search' }).state)).toBe('first law')
    expect(draft(play(past, { type: 'typed', text: 'x' }, ...search, { type: 'escape' }).state)).toBe('x')
    expect(play(past, ...search, { type: 'enter' }).effects.at(-1)).toMatchObject({
      message: { content: 'third law' },
    })
  })

  test('ctrl+d exits if the composer is empty, and deletes otherwise', () => {
    expect(play(freshChat, { type: 'endOfInput' }).effects).toEqual([{ type: 'leave' }])
    expect(play(freshChat, { type: 'typed', text: 'x' }, { type: 'endOfInput' }).effects).toEqual([])
  })

  test('a resumed conversation shows its end, and its questions are in the history', () => {
    const said = Array.from({ length: 14 }, (_, at) =>
      message(at % 2 === 0 ? 'user' : 'agent', `m${at}`, { ...cited, model: 'large' }),
    )
    const { state, effects } = play(freshChat, { type: 'resumed', messages: said, title: 'Laws' })
    expect(printedText(effects)[0]).toBe('dim: Laws · 4 earlier messages')
    expect(printedText(effects)).toContain('you: m4')
    expect(printedText(effects)).not.toContain('you: m2')
    expect(state.lastExchange).toMatchObject({ answer: 'm13', question: { messageId: 'user-m12' } })
    expect(state.model).toBe('large')
    expect(draft(play(state, { type: 'up' }).state)).toBe('m12')
  })

  test('a summary of earlier messages is shown as a note and is not the last answer', () => {
    const said = [message('user', 'q'), message('agent', 'a'), message('system', 'They met.\nThey left.')]
    const { state, effects } = play(freshChat, { type: 'resumed', messages: said, title: 'Laws' })
    const notes = ['dim: Summary of earlier messages:', 'dim: They met.', 'dim: They left.']
    expect(printedText(effects).slice(-3)).toEqual(notes)
    expect(state.lastExchange).toMatchObject({ answer: 'a', question: { content: 'q' } })
  })

  test('a failed or stopped message of a resumed conversation is not shown as an answer', () => {
    const failed = { finish_reason: 'error', error_message: 'Busy.' }
    const said = [
      message('agent', 'Busy.', failed),
      message('agent', 'The first', failed),
      message('agent', 'The second', { finish_reason: 'stop', interrupted: 'true' }),
    ]
    const { effects } = play(freshChat, { type: 'resumed', messages: said, title: 'Laws' })
    expect(printedText(effects)).toEqual([
      'dim: Laws',
      'bad: Busy.',
      'The first',
      'bad: Busy.',
      'The second',
      'dim: stopped',
    ])
  })
})
