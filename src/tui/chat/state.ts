import { accumulateCitations, citationOf, citationsOf } from '../../cli/chat/citations.ts'
import { finishNote } from '../../cli/chat/finish-note.ts'
import { imageLines } from '../../cli/chat/images.ts'
import type { ChatAbout } from '../../cli/chat/interface.ts'
import type { NamedImage } from '../../cli/chat/port.ts'
import type { Passage } from '../../cli/passages/find-passages.ts'
import { plain, plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Message } from '../../contract/conversations.ts'
import { limits } from '../../contract/limits.ts'
import { blocksOf } from '../markdown/blocks.ts'
import { contentOf } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'
import { pressApprovalKey, submitApproval } from './approval-keys.ts'
import { cancel, editQuestion, open, quit } from './commands.ts'
import { loadNames } from './completion.ts'
import { isEmptyChat } from './greeting.ts'
import { applyChoice, chooseByNumber, pressPanelKey } from './panel.ts'
import {
  andThen,
  applyTurnEvent,
  attached,
  connection,
  contextOf,
  failTurn,
  note,
  print,
  questionOf,
  reconnected,
} from './turn.ts'
import type { ChatEffect, ChatEvent, ChatState, ChatStep } from './types.ts'
import { emptyInput, pressComposerKey, submit } from './typing.ts'

/** Number of messages that are shown when a conversation is continued. */
const RESUMED_MESSAGES = 10

export function start(about: ChatAbout, size: Size, nowMs: number): ChatState {
  return {
    about,
    size,
    nowMs,
    input: emptyInput,
    images: [],
    fileTask: undefined,
    turn: undefined,
    queue: [],
    outage: undefined,
    last: { question: undefined, answer: '', thoughts: '', isAnswered: false, citations: [], texts: {} },
    runs: [],
    llmServiceId: undefined,
    temperature: undefined,
    context: undefined,
    model: undefined,
    panel: undefined,
    names: {},
    spent: { tokens: 0, costUsd: undefined },
    suggestions: [],
    isLeaving: false,
    notice: '',
  }
}

/** Returns the state after an event, and the work that follows from it. */
export function step(state: ChatState, event: ChatEvent): ChatStep {
  switch (event.type) {
    case 'turn':
      return applyTurnEvent(state, event.event, event.used)
    case 'suggested':
      return [{ ...state, suggestions: event.questions }, []]
    case 'connection':
      return connection(state, event.isLost)
    case 'attached':
      return attached(state, event.question)
    case 'failed':
      return failTurn(state, event.failure)
    case 'tick':
      return [{ ...state, nowMs: event.nowMs }, []]
    case 'resized':
      return [{ ...state, size: event.size }, []]
    case 'reconnected':
      return reconnected(state, event.said)
    case 'found':
      return found(state, event.passages)
    case 'opened':
      return [{ ...state, panel: event.panel }, []]
    case 'chose':
      return applyChoice(state, event.panel)
    case 'named':
      return [{ ...state, names: { ...state.names, [event.of]: event.names } }, []]
    case 'resumed':
      return resumed(state, event)
    case 'based':
      return based(state, event.knowledgeBases)
    case 'editing':
      return state.turn ? [state, []] : editQuestion(state, event.question)
    case 'imageRead':
      return withImage(state, event.image)
    case 'fileTaskEnded':
      return [{ ...state, fileTask: undefined }, []]
    case 'noted':
      return [state, [note(event.text, event.isBad ? 'bad' : 'good')]]
    case 'submitted':
      return line(state, event.text)
    default:
      return pressed(state, event)
  }
}

/** Prints passages in place of an answer, because no model answers. */
function found(state: ChatState, passages: readonly Passage[]): ChatStep {
  const texts = Object.fromEntries(passages.map(({ id, text }) => [id, plain(text)]))
  const last = { ...state.last, answer: '', isAnswered: false, citations: passages.map(citationOf), texts }
  const question = state.last.question?.content ?? ''
  const hasSetup = state.model !== null
  return [
    { ...state, last, model: null },
    [
      print({ kind: 'found', question, passages, hasSetup }),
      ...(passages.length > 0 ? [note(`/open ${passages[0]!.number} shows the first one whole`)] : []),
    ],
  ]
}

function based(state: ChatState, knowledgeBases: readonly string[]): ChatStep {
  const from = knowledgeBases.length === 0 ? 'all knowledge bases' : plainLine(knowledgeBases.join(', '))
  return [
    { ...state, about: { ...state.about, knowledgeBases }, notice: `answers come from ${from} from now on` },
    [{ type: 'loadSuggestions' }],
  ]
}

/** Adds an image to the next question. */
function withImage(state: ChatState, image: NamedImage): ChatStep {
  const { images } = state
  if (images.length < limits.messageImages) return [{ ...state, images: [...images, image] }, []]
  const most = `a question can have at most ${limits.messageImages} images; /image without a name removes them`
  return [{ ...state, notice: most }, []]
}

/** Handles a whole line from an interface that does not read keys. */
function line(state: ChatState, text: string): ChatStep {
  const { panel, turn } = state
  const asked = turn?.pending[0]
  if (turn && asked) return submitApproval(state, turn, asked, text)
  return panel?.kind === 'choice' ? chooseByNumber(state, panel, text) : submit(state, text)
}

function pressed(state: ChatState, key: Key): ChatStep {
  const { panel, turn } = state
  if (panel && key.type === 'typed' && key.text.length > 1) return eachOf(state, key.text)
  if (panel) return pressPanelKey(state, panel, key)
  if (key.type === 'cancel') return cancel(state)
  const calm: ChatState =
    state.isLeaving || state.notice !== '' ? { ...state, isLeaving: false, notice: '' } : state
  const asked = turn?.pending[0]
  if (turn && asked) return pressApprovalKey(calm, turn, asked, key)
  switch (key.type) {
    case 'end-of-input':
      if (contentOf(state.input.editor) === '') return quit(calm)
      break
    case 'wordLeft':
    case 'wordRight':
      if (!isFree(calm)) break
      return [calm, [{ type: 'stepVersion', by: key.type === 'wordLeft' ? -1 : 1 }]]
    case 'number':
      return pressNumber(calm, key.number)
    case 'redraw':
      return [calm, [{ type: 'redraw' }]]
  }
  return loadNames(pressComposerKey(calm, key))
}

/** Opens a source, or asks a suggested question of an empty chat. */
function pressNumber(state: ChatState, number: number): ChatStep {
  const question = isEmptyChat(state) ? state.suggestions[number - 1] : undefined
  return question === undefined ? open(state, String(number)) : submit(state, question)
}

/** Returns true if the arrow keys have no text to move in, and the last question can change. */
function isFree({ input, turn, outage, last }: ChatState): boolean {
  const isEmpty = contentOf(input.editor) === '' && !input.search
  return isEmpty && !turn && !outage && last.question?.messageId !== undefined
}

/** Handles letters that arrived together, where each can be a command. */
function eachOf(state: ChatState, text: string): ChatStep {
  return [...text].reduce<ChatStep>(
    (done, letter) => andThen(done, next => pressed(next, { type: 'typed', text: letter })),
    [state, []],
  )
}

/** Continues a conversation, and prints its last messages. */
function resumed(state: ChatState, event: Extract<ChatEvent, { type: 'resumed' }>): ChatStep {
  const { said, title, fromId, knowledgeBases = state.about.knowledgeBases } = event
  const from = fromId === undefined ? -1 : said.findIndex(({ messageId }) => messageId === fromId)
  const left = Math.max(0, from, said.length - RESUMED_MESSAGES)
  const effects: ChatEffect[] = [
    note(`${plainLine(title)}${left > 0 ? ` · ${left} earlier ${left === 1 ? 'message' : 'messages'}` : ''}`),
    ...said.slice(left).flatMap(shown),
  ]
  const asked = said.findLast(({ role }) => role === 'user')
  const answered = said.findLast(({ role }) => role === 'agent')
  const past = said.filter(({ role }) => role === 'user').map(({ content }) => plain(content ?? ''))
  const last = {
    question: asked && questionOf(asked),
    answer: plain(answered?.content ?? ''),
    isAnswered: said.at(-1)?.role === 'agent' && said.at(-1)?.metadata.finish_reason !== 'error',
    thoughts: plain(answered?.metadata.reasoning ?? ''),
    citations: said.map(citationsOf).reduce(accumulateCitations, []),
    texts: {},
  }
  const model = plain(answered?.metadata.model ?? '') || state.model
  const context = answered && contextOf(answered)
  const about = { ...state.about, knowledgeBases }
  return [{ ...state, about, last, model, context, input: { ...state.input, past } }, effects]
}

function shown(message: Message): ChatEffect[] {
  const content = plain(message.content ?? '')
  if (message.role === 'user') return [print({ kind: 'you', text: content, images: imageLines(message) })]
  if (message.role === 'system')
    return ['Summary of earlier messages:', ...content.split('\n')].map(line => note(line))
  const citations = citationsOf(message)
  const { error_message: why, interrupted } = message.metadata
  const early = finishNote(message)
  const blocks = message.content === why ? [] : blocksOf(content)
  return [
    ...blocks.map((block, at) => print({ kind: 'said', block, isFirst: at === 0, isAside: false })),
    ...(citations.length > 0 ? [print({ kind: 'sources', citations })] : []),
    ...(why ? [note(plain(why), 'bad')] : []),
    ...(interrupted === 'true' ? [note('stopped')] : []),
    ...(early ? [note(early)] : []),
  ]
}
