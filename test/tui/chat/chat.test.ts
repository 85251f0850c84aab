import { describe, expect, test, vi } from 'vitest'
import type { ChatMachine } from '../../../src/cli/chat/chat-interfaces.ts'
import type { ChatPort, ChoiceItem } from '../../../src/cli/chat/port.ts'
import { Unreachable } from '../../../src/client/unreachable.ts'
import type { TurnEvent } from '../../../src/contract/chat.ts'
import type { Message } from '../../../src/contract/conversations.ts'
import { WbError } from '../../../src/contract/errors.ts'
import { Chat } from '../../../src/tui/chat/chat.ts'
import type { ChatEffect, TranscriptPart } from '../../../src/tui/chat/types.ts'
import { TestClock } from '../../harness/runtime.ts'
import { freshChat, message, play, printedText, submit, turnEvent } from './play.ts'

const item = (id: string, isChosen = false): ChoiceItem => ({ id, name: id, description: '', isChosen })
const question = message('user', 'why?')
const answer = message('agent', 'So.')
const begin = { event: 'user-message', data: question } as TurnEvent
const done = { event: 'done', data: answer } as TurnEvent

async function* stream(...events: TurnEvent[]): AsyncGenerator<TurnEvent> {
  yield* events
}

async function* failedStream(error: Error): AsyncGenerator<TurnEvent> {
  yield* []
  throw error
}

const answered = play(
  freshChat,
  ...submit('why?'),
  turnEvent('user-message', question),
  turnEvent('done', answer),
).state

/** Starts a chat with a port that has no content except that in `port`. */
function startChat(port: Partial<ChatPort> = {}, machine: Partial<ChatMachine> = {}, state = answered) {
  const printed: TranscriptPart[] = []
  const [onRedraw, onLeave] = [vi.fn(), vi.fn()]
  const defaults: Partial<ChatPort> = {
    messages: async () => [question, answer],
    versions: async () => [item('v1'), item('v2', true)],
    knowledgeBasesInUse: async () => ['papers'],
    usedPassages: async () => [],
    stop: async () => {},
    useVersion: async () => {},
    switchConversation: () => {},
    documentTitles: async () => [],
  }
  const chat = new Chat(state, {
    port: { ...defaults, ...port } as ChatPort,
    machine: { copy: undefined, ...machine } as ChatMachine,
    clock: new TestClock(),
    onPrint: part => printed.push(part),
    onChange: () => {},
    onRedraw,
    onLeave,
  })
  return {
    chat,
    onRedraw,
    onLeave,
    /** Types a line, and returns the parts that are printed. */
    async type(line: string): Promise<string[]> {
      for (const event of submit(line)) chat.dispatch(event)
      await settled()
      return printedText(printed.map((part): ChatEffect => ({ type: 'print', part })))
    },
  }
}

const settled = () => new Promise(resolve => setImmediate(resolve))

describe('commands', () => {
  test.each([
    [[], 'none; /attach FILE attaches a file to the conversation'],
    [
      [
        { filename: 'a\n.md', textChars: 1_200 },
        { filename: 'b', textChars: 1 },
      ],
      'a .md, 1,200 characters\nb, 1 character',
    ],
  ])('/attach lists the attachments %j', async (attached, text) => {
    const { chat, type } = startChat({ attachments: async () => attached as never })
    await type('/attach')
    expect(chat.state.panel).toMatchObject({
      kind: 'text',
      title: 'Attachments',
      page: { text, format: 'plain' },
    })
  })

  test('/attach sends a file, and reports its size', async () => {
    const file = new File(['x'], 'day.md')
    const attachFile = vi.fn(async () => ({ filename: 'day.md', textChars: 1 }) as never)
    const { chat, type } = startChat({ attachFile }, { readFile: async () => file })
    expect(await type('/attach day.md')).toEqual(['good: attached day.md, 1 character'])
    expect(attachFile).toHaveBeenCalledWith(file, expect.anything())
    expect(chat.state.fileTask).toBeUndefined()
  })

  test('/image reports an error, unless the user has stopped it', async () => {
    const readImage = async () => Promise.reject(new Error('no image'))
    const failed = startChat({}, { readImage })
    expect((await failed.type('/image x.png')).join()).toMatch(/^bad: /)
    const stopped = startChat({}, { readImage })
    for (const event of submit('/image x.png')) stopped.chat.dispatch(event)
    stopped.chat.dispatch({ type: 'cancel' })
    await settled()
    expect(await stopped.type('/help')).toEqual(['dim: stopped reading x.png', 'help'])
  })

  test.each([
    [[], 'none'],
    [[{ id: 'search_kb', description: 'finds\npassages' }], '**`search_kb`**  finds passages'],
  ])('/tools lists the tools %j', async (tools, text) => {
    const { chat, type } = startChat({ tools: async () => tools })
    await type('/tools')
    expect(chat.state.panel).toMatchObject({ title: 'Tools', page: { text, format: 'markdown' } })
  })

  test('/export writes the conversation, unless it is empty', async () => {
    const save = vi.fn(async () => {})
    const chat = startChat({ exportMarkdown: async () => 'text' }, { save })
    expect(await chat.type('/export')).toEqual(['good: wrote the conversation to conversation.md'])
    await chat.type('/export my.md')
    expect(save.mock.calls).toEqual([
      ['conversation.md', 'text'],
      ['my.md', 'text'],
    ])
    const empty = startChat({ exportMarkdown: async () => undefined }, { save })
    expect(await empty.type('/export')).toEqual(['bad: the conversation is empty'])
  })

  test.each([
    ['program', /^good: copied the answer$/],
    ['tmux', /^good: asked the terminal to copy the answer; tmux needs/],
    ['terminal', /^good: asked the terminal to copy the answer; some terminals/],
    [undefined, /^bad: no clipboard is available/],
  ] as const)('/copy with the clipboard %s says what happened', async (copiedBy, note) => {
    const machine = copiedBy && { copy: async () => copiedBy as never }
    expect((await startChat({}, machine).type('/copy')).join()).toMatch(note)
  })

  test('/rename reports the new title, or the error', async () => {
    expect(await startChat({ rename: async () => {} }).type('/rename Laws')).toEqual([
      'good: renamed the conversation to Laws',
    ])
    const rename = async () => Promise.reject(new WbError('forbidden', 'not allowed'))
    expect((await startChat({ rename }).type('/rename Laws')).join()).toMatch(/^bad: .*not allowed/)
  })

  test('/new starts another conversation, and /quit leaves', async () => {
    const switchConversation = vi.fn()
    const { chat, type, onLeave } = startChat({ switchConversation })
    await type('/new')
    expect(switchConversation).toHaveBeenCalledWith(undefined)
    expect(chat.state.lastExchange.question).toBeUndefined()
    await type('/quit')
    expect(onLeave).toHaveBeenCalledOnce()
  })

  test('/kb all uses all knowledge bases, and a name only that one', async () => {
    const useKnowledgeBases = vi.fn(async () => {})
    const knowledgeBases = async () => [item('papers'), item('handbook')]
    const { chat, type } = startChat({ useKnowledgeBases, knowledgeBases })
    await type('/kb handbook')
    await type('/kb all')
    expect(useKnowledgeBases.mock.calls).toEqual([[['handbook']], [[]]])
    expect((await type('/kb nothing')).at(-1)).toMatch(/^bad: .*nothing/)
    await type('/kb')
    expect(chat.state.panel).toMatchObject({ kind: 'choice', purpose: 'kb', selectedIndex: 0 })
  })

  test('/model marks the model that was chosen', async () => {
    const models = async () => [item('small', true), item('large')]
    const { chat, type } = startChat({ models })
    await type('/model')
    expect(chat.state.panel).toMatchObject({ purpose: 'model', selectedIndex: 0 })
    chat.dispatch({ type: 'escape' })
    await type('/model large')
    await type('/model')
    expect(chat.state.panel).toMatchObject({ purpose: 'model', selectedIndex: 1 })
  })
})

describe('versions', () => {
  const earlier = { ...message('user', 'first?'), metadata: { version_of: 'x' } } as Message
  const messages = async () => [earlier, answer, question, answer]
  const versions = async (id: string) =>
    id === question.messageId ? [item('only', true)] : [item('e1'), item('e2', true)]

  test('/versions N restores a version of the last question', async () => {
    const useVersion = vi.fn(async () => {})
    const { type } = startChat({ useVersion })
    await type('/versions 1')
    expect(useVersion.mock.calls).toEqual([['v1']])
    expect((await type('/versions 3')).at(-1)).toBe('bad: there is no version 3; the question has 2 versions')
  })

  test('/versions N restores a version of an earlier question if the last has only one', async () => {
    const useVersion = vi.fn(async () => {})
    await startChat({ useVersion, messages, versions }).type('/versions 2')
    expect(useVersion.mock.calls).toEqual([['e2']])
  })

  test.each([
    ['several questions', messages, versions, ['e1', 'e2'], 1],
    ['the last question', async () => [question], versions, ['only'], 0],
    ['the last question first', messages, async () => [item('a'), item('b', true)], ['a', 'b', 'a', 'b'], 1],
  ] as const)('/versions lists the versions of %s', async (_name, messages, versions, ids, selectedIndex) => {
    const { chat, type } = startChat({ messages: messages as never, versions })
    await type('/versions')
    expect(chat.state.panel).toMatchObject({ purpose: 'versions', selectedIndex })
    expect(chat.state.panel!.kind === 'choice' && chat.state.panel!.items.map(({ id }) => id)).toEqual(ids)
  })

  test('/branch lists the questions, with the last one selected', async () => {
    const { chat, type } = startChat({ messages })
    await type('/branch')
    expect(chat.state.panel).toMatchObject({
      purpose: 'questions',
      selectedIndex: 1,
      items: [
        { name: '1', description: 'first?' },
        { name: '2', description: 'why?' },
      ],
    })
  })
})

describe('a turn', () => {
  test('is read from the port, and its answer is printed', async () => {
    const { type } = startChat({ send: () => stream(begin, done) }, {}, freshChat)
    expect(await type('why?')).toEqual(['you: why?', 'So.'])
  })

  test('that fails shows the error', async () => {
    const send = () =>
      failedStream(new WbError('forbidden', 'not allowed', { hint: 'Ask an administrator.' }))
    const { chat, type } = startChat({ send }, {}, freshChat)
    expect((await type('why?')).at(-1)).toMatch(/not allowed|Ask an administrator/)
    expect(chat.state.turn).toBeUndefined()
  })

  test('of an unreachable runtime waits until it responds', async () => {
    const send = () => failedStream(new Unreachable('no runtime', ''))
    const { chat, type } = startChat({ send }, {}, freshChat)
    await type('why?')
    expect(chat.state.outage).toBeDefined()
    await chat.close()
  })

  test('is stopped in the runtime before the chat closes', async () => {
    let stopped = false
    const stop = async () => {
      await settled()
      stopped = true
    }
    const send = async function* (_message: unknown, signal: AbortSignal): AsyncGenerator<TurnEvent> {
      yield begin
      await new Promise(resolve => signal.addEventListener('abort', resolve))
    }
    const { chat, type } = startChat({ send, stop }, {}, freshChat)
    await type('why?')
    chat.dispatch({ type: 'cancel' })
    await chat.close()
    expect(stopped).toBe(true)
  })

  test('that runs in a resumed conversation is read, but not one that is answered', async () => {
    const other = message('user', 'next?')
    const turn = () => stream({ event: 'user-message', data: other } as TurnEvent, done)
    const resumed = startChat({ readRunningTurn: turn }, {}, freshChat)
    await resumed.chat.resume('Laws')
    expect((await resumed.type('/help')).join('\n')).toContain('you: next?')
    const answeredAgain = startChat({ readRunningTurn: () => stream(begin, done) }, {}, freshChat)
    await answeredAgain.chat.resume('Laws')
    await settled()
    expect(answeredAgain.chat.state.turn).toBeUndefined()
  })
})

test('an empty chat suggests questions about documents, if there are any', async () => {
  const suggesting = startChat({ documentTitles: async () => ['Laws'] }, {}, freshChat).chat
  suggesting.loadSuggestions()
  const failing = startChat(
    { documentTitles: async () => Promise.reject(new Error('no')) },
    {},
    freshChat,
  ).chat
  failing.loadSuggestions()
  await settled()
  expect(suggesting.state).not.toEqual(failing.state)
  expect(JSON.stringify(suggesting.state)).toContain('Laws')
})
