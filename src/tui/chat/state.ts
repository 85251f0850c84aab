import { citationOf, citationsOf, citedBy } from '../../cli/chat/citations.ts'
import { finishNote } from '../../cli/chat/finish-note.ts'
import type { About } from '../../cli/chat/front.ts'
import { imageLines } from '../../cli/chat/images.ts'
import type { NamedImage } from '../../cli/chat/port.ts'
import type { Passage } from '../../cli/passages/hits.ts'
import { plain, plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Message } from '../../contract/conversations.ts'
import { limits } from '../../contract/limits.ts'
import { blocksOf } from '../markdown/blocks.ts'
import { contentOf } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/screen.ts'
import { answer, answerWith } from './approval.ts'
import { cancel, editQuestion, open, quit } from './commands.ts'
import { withNames } from './completion.ts'
import { choose, chosen, read } from './panel.ts'
import {
  attached,
  connection,
  contextOf,
  failed,
  heard,
  joined,
  note,
  print,
  questionOf,
  reconnected,
} from './turn.ts'
import type { Effect, Event, State, Step } from './types.ts'
import { emptyInput, submit, type } from './typing.ts'

/** Of a conversation that goes on, so many messages are shown again. */
const shownAgain = 10

export function start(about: About, size: Size, nowMs: number): State {
  return {
    about,
    size,
    nowMs,
    input: emptyInput,
    images: [],
    fileTask: undefined,
    turn: undefined,
    away: undefined,
    last: { question: undefined, answer: '', thoughts: '', isAnswered: false, citations: [], texts: {} },
    runs: [],
    llmServiceId: undefined,
    temperature: undefined,
    context: undefined,
    model: undefined,
    panel: undefined,
    names: {},
    spent: { tokens: 0, costUsd: undefined },
    isLeaving: false,
    notice: '',
  }
}

/** What an event makes of the chat, and what is to be done about it. */
export function step(state: State, event: Event): Step {
  switch (event.type) {
    case 'turn':
      return heard(state, event.event)
    case 'connection':
      return connection(state, event.isLost)
    case 'attached':
      return attached(state, event.question)
    case 'failed':
      return failed(state, event.failure)
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
      return chosen(state, event.panel)
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

/** Passages in place of an answer, as no model gives one. */
function found(state: State, passages: readonly Passage[]): Step {
  const texts = Object.fromEntries(passages.map(({ id, text }) => [id, plain(text)]))
  const last = { ...state.last, answer: '', isAnswered: false, citations: passages.map(citationOf), texts }
  const question = state.last.question?.content ?? ''
  const hasWays = state.model !== null
  return [
    { ...state, last, model: null },
    [
      print({ kind: 'found', question, passages, hasWays }),
      ...(passages.length > 0 ? [note(`/open ${passages[0]!.number} shows the first one whole`)] : []),
    ],
  ]
}

function based(state: State, knowledgeBases: readonly string[]): Step {
  const from = knowledgeBases.length === 0 ? 'all knowledge bases' : plainLine(knowledgeBases.join(', '))
  return [
    { ...state, about: { ...state.about, knowledgeBases }, notice: `answers come from ${from} from now on` },
    [],
  ]
}

/** Adds an image to the next question. */
function withImage(state: State, image: NamedImage): Step {
  const { images } = state
  if (images.length < limits.messageImages) return [{ ...state, images: [...images, image] }, []]
  const most = `a question can have at most ${limits.messageImages} images; /image without a name removes them`
  return [{ ...state, notice: most }, []]
}

/** A line from who types where no key is seen. */
function line(state: State, text: string): Step {
  const { panel, turn } = state
  const asked = turn?.pending[0]
  if (turn && asked) return answerWith(state, turn, asked, text)
  return panel?.kind === 'choice' ? choose(state, panel, text) : submit(state, text)
}

function pressed(state: State, key: Key): Step {
  const { panel, turn } = state
  if (panel && key.type === 'typed' && key.text.length > 1) return eachOf(state, key.text)
  if (panel) return read(state, panel, key)
  if (key.type === 'cancel') return cancel(state)
  const calm: State =
    state.isLeaving || state.notice !== '' ? { ...state, isLeaving: false, notice: '' } : state
  const asked = turn?.pending[0]
  if (turn && asked) return answer(calm, turn, asked, key)
  switch (key.type) {
    case 'end-of-input':
      if (contentOf(state.input.editor) === '') return quit(calm)
      break
    case 'wordLeft':
    case 'wordRight':
      if (!isFree(calm)) break
      return [calm, [{ type: 'stepVersion', by: key.type === 'wordLeft' ? -1 : 1 }]]
    case 'number':
      return open(calm, String(key.number))
    case 'redraw':
      return [calm, [{ type: 'redraw' }]]
  }
  return withNames(type(calm, key))
}

/** True if the arrow keys have no text to move in, and the last question can change. */
function isFree({ input, turn, away, last }: State): boolean {
  const isEmpty = contentOf(input.editor) === '' && !input.search
  return isEmpty && !turn && !away && last.question?.messageId !== undefined
}

/** Letters that came at once, where each may mean something. */
function eachOf(state: State, text: string): Step {
  return [...text].reduce<Step>(
    (done, letter) => joined(done, next => pressed(next, { type: 'typed', text: letter })),
    [state, []],
  )
}

/** A conversation that was begun before, with the end of what was said. */
function resumed(state: State, event: Extract<Event, { type: 'resumed' }>): Step {
  const { said, title, fromId, knowledgeBases = state.about.knowledgeBases } = event
  const from = fromId === undefined ? -1 : said.findIndex(({ messageId }) => messageId === fromId)
  const left = Math.max(0, from, said.length - shownAgain)
  const effects: Effect[] = [
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
    citations: said.map(citationsOf).reduce(citedBy, []),
    texts: {},
  }
  const model = plain(answered?.metadata.model ?? '') || state.model
  const context = answered && contextOf(answered)
  const about = { ...state.about, knowledgeBases }
  return [{ ...state, about, last, model, context, input: { ...state.input, past } }, effects]
}

function shown(message: Message): Effect[] {
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
