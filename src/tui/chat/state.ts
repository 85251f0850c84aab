import type { ChatSubject } from '../../cli/chat/chat-interfaces.ts'
import { accumulateCitations, citationFromPassage, citationsOf } from '../../cli/chat/citations.ts'
import { finishNote } from '../../cli/chat/finish-note.ts'
import { imageLines } from '../../cli/chat/images.ts'
import type { NamedImage } from '../../cli/chat/port.ts'
import { unsupportedSentences } from '../../cli/chat/unsupported.ts'
import type { Passage } from '../../cli/passages/find-passages.ts'
import { formatCounted } from '../../cli/terminal/output.ts'
import { plain, plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Message } from '../../contract/conversations.ts'
import { limits } from '../../contract/limits.ts'
import { contentOf } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'
import { pressApprovalKey, submitApproval } from './approval-keys.ts'
import { cancel, editQuestion, openSource, quit } from './commands.ts'
import { loadNames } from './completion.ts'
import { emptyInput, pressComposerKey, submit } from './composer-keys.ts'
import { isEmptyChat } from './greeting.ts'
import { applyChoice, chooseByNumber, pressPanelKey } from './panel.ts'
import {
  applyTurnEvent,
  attachTurn,
  chainStep,
  contextOf,
  emptyExchange,
  endOutage,
  failTurn,
  printNote,
  printPart,
  printUnsupported,
  printWholeAnswer,
  questionOf,
  setReconnecting,
} from './turn.ts'
import type { ChatEffect, ChatEvent, ChatState, ChatStep } from './types.ts'

/** Number of messages to show when a conversation is continued. */
const RESUMED_MESSAGES = 10

export function startChat(subject: ChatSubject, size: Size, nowMs: number): ChatState {
  return {
    subject,
    size,
    nowMs,
    input: emptyInput,
    images: [],
    fileTask: undefined,
    turn: undefined,
    queue: [],
    outage: undefined,
    lastExchange: emptyExchange,
    toolRuns: [],
    llmServiceId: undefined,
    temperature: undefined,
    context: undefined,
    model: undefined,
    panel: undefined,
    names: {},
    usage: { tokens: 0, costUsd: undefined },
    suggestions: [],
    isLeaving: false,
    notice: '',
  }
}

/** Returns the state after an event, and the effects to run. */
export function stepChat(state: ChatState, event: ChatEvent): ChatStep {
  switch (event.type) {
    case 'turn':
      return applyTurnEvent(state, event.event, event.usedPassages)
    case 'suggestionsLoaded':
      return [{ ...state, suggestions: event.questions }, []]
    case 'connection':
      return setReconnecting(state, event.isLost)
    case 'turnResumed':
      return attachTurn(state, event.question)
    case 'failed':
      return failTurn(state, event.failure)
    case 'tick':
      return [{ ...state, nowMs: event.nowMs }, []]
    case 'resized':
      return [{ ...state, size: event.size }, []]
    case 'reconnected':
      return endOutage(state, event.messages)
    case 'passagesFound':
      return showPassages(state, event.passages)
    case 'panelOpened':
      return [{ ...state, panel: event.panel }, []]
    case 'itemsChosen':
      return applyChoice(state, event.panel)
    case 'namesLoaded':
      return [{ ...state, names: { ...state.names, [event.purpose]: event.names } }, []]
    case 'resumed':
      return openConversation(state, event)
    case 'basesChanged':
      return changeKnowledgeBases(state, event.knowledgeBases)
    case 'editing':
      return state.turn ? [state, []] : editQuestion(state, event.question)
    case 'imageRead':
      return addImage(state, event.image)
    case 'fileTaskEnded':
      return [{ ...state, fileTask: undefined }, []]
    case 'note':
      return [state, [printNote(event.text, event.isError ? 'bad' : 'good')]]
    case 'submitted':
      return submitLine(state, event.text)
    default:
      return pressKey(state, event)
  }
}

/** Prints passages instead of an answer, because no model is available. */
function showPassages(state: ChatState, passages: readonly Passage[]): ChatStep {
  const texts = Object.fromEntries(passages.map(({ id, text }) => [id, plain(text)]))
  const lastExchange = {
    ...state.lastExchange,
    answer: '',
    isAnswered: false,
    citations: passages.map(citationFromPassage),
    texts,
  }
  const question = state.lastExchange.question?.content ?? ''
  const hasSetup = state.model !== null
  return [
    { ...state, lastExchange, model: null },
    [
      printPart({ kind: 'passages', question, passages, hasSetup }),
      ...(passages.length > 0
        ? [printNote(`/open ${passages[0]!.number} shows the whole first passage`)]
        : []),
    ],
  ]
}

function changeKnowledgeBases(state: ChatState, knowledgeBases: readonly string[]): ChatStep {
  const from = knowledgeBases.length === 0 ? 'all knowledge bases' : plainLine(knowledgeBases.join(', '))
  return [
    {
      ...state,
      subject: { ...state.subject, knowledgeBases },
      notice: `answers come from ${from} from now on`,
    },
    [{ type: 'loadSuggestions' }],
  ]
}

/** Adds an image to the next question. */
function addImage(state: ChatState, image: NamedImage): ChatStep {
  const { images } = state
  if (images.length < limits.messageImages) return [{ ...state, images: [...images, image] }, []]
  const notice = `a question can have at most ${limits.messageImages} images; /image without FILE removes them`
  return [{ ...state, notice }, []]
}

/** Handles a whole line, from an interface that does not read single keys. */
function submitLine(state: ChatState, text: string): ChatStep {
  const { panel, turn } = state
  const approval = turn?.pendingApprovals[0]
  if (turn && approval) return submitApproval(state, turn, approval, text)
  return panel?.kind === 'choice' ? chooseByNumber(state, panel, text) : submit(state, text)
}

function pressKey(state: ChatState, key: Key): ChatStep {
  const { panel, turn } = state
  if (panel && key.type === 'typed' && key.text.length > 1) return pressEachLetter(state, key.text)
  if (panel) return pressPanelKey(state, panel, key)
  if (key.type === 'cancel') return cancel(state)
  const cleared: ChatState =
    state.isLeaving || state.notice !== '' ? { ...state, isLeaving: false, notice: '' } : state
  const approval = turn?.pendingApprovals[0]
  if (turn && approval) return pressApprovalKey(cleared, turn, approval, key)
  switch (key.type) {
    case 'endOfInput':
      if (contentOf(state.input.editor) === '') return quit(cleared)
      break
    case 'wordLeft':
    case 'wordRight':
      if (!canStepVersions(cleared)) break
      return [cleared, [{ type: 'stepVersion', offset: key.type === 'wordLeft' ? -1 : 1 }]]
    case 'number':
      return pressNumber(cleared, key.number)
    case 'redraw':
      return [cleared, [{ type: 'redraw' }]]
  }
  return loadNames(pressComposerKey(cleared, key))
}

/** Asks a suggested question if the chat is empty; otherwise opens a source. */
function pressNumber(state: ChatState, number: number): ChatStep {
  const question = isEmptyChat(state) ? state.suggestions[number - 1] : undefined
  return question === undefined ? openSource(state, String(number)) : submit(state, question)
}

/**
 * Returns true if the composer is empty and no answer is in progress. The keys that move the cursor by words then
 * switch versions.
 */
function canStepVersions({ input, turn, outage, lastExchange }: ChatState): boolean {
  const isEmpty = contentOf(input.editor) === '' && !input.search
  return isEmpty && !turn && !outage && lastExchange.question?.messageId !== undefined
}

/** Handles letters that arrived in one piece of input. Each of them can be a command. */
function pressEachLetter(state: ChatState, text: string): ChatStep {
  return [...text].reduce<ChatStep>(
    (previous, letter) => chainStep(previous, next => pressKey(next, { type: 'typed', text: letter })),
    [state, []],
  )
}

/** Continues a conversation, and prints its last messages. */
function openConversation(state: ChatState, event: Extract<ChatEvent, { type: 'resumed' }>): ChatStep {
  const { messages, title, fromId, knowledgeBases = state.subject.knowledgeBases } = event
  const from = fromId === undefined ? -1 : messages.findIndex(({ messageId }) => messageId === fromId)
  const skipped = Math.max(0, from, messages.length - RESUMED_MESSAGES)
  const effects: ChatEffect[] = [
    printNote(`${plainLine(title)}${skipped > 0 ? ` · ${formatCounted(skipped, 'earlier message')}` : ''}`),
    ...messages.slice(skipped).flatMap(messageEffects),
  ]
  const lastQuestion = messages.findLast(({ role }) => role === 'user')
  const lastAnswer = messages.findLast(({ role }) => role === 'agent')
  const sentLines = messages.filter(({ role }) => role === 'user').map(({ content }) => plain(content ?? ''))
  const lastExchange = {
    question: lastQuestion && questionOf(lastQuestion),
    answer: plain(lastAnswer?.content ?? ''),
    isAnswered: messages.at(-1)?.role === 'agent' && messages.at(-1)?.metadata.finish_reason !== 'error',
    reasoning: plain(lastAnswer?.metadata.reasoning ?? ''),
    citations: messages.map(citationsOf).reduce(accumulateCitations, []),
    texts: {},
  }
  const model = plain(lastAnswer?.metadata.model ?? '') || state.model
  const context = lastAnswer && contextOf(lastAnswer)
  const subject = { ...state.subject, knowledgeBases }
  return [{ ...state, subject, lastExchange, model, context, input: { ...state.input, sentLines } }, effects]
}

function messageEffects(message: Message): ChatEffect[] {
  const content = plain(message.content ?? '')
  if (message.role === 'user')
    return [printPart({ kind: 'question', text: content, images: imageLines(message) })]
  if (message.role === 'system')
    return ['Summary of earlier messages:', ...content.split('\n')].map(line => printNote(line))
  const [citations, dimmed] = [citationsOf(message), unsupportedSentences(message)]
  const { error_message: reason, interrupted } = message.metadata
  const earlyEndNote = finishNote(message)
  return [
    ...(message.content === reason ? [] : printWholeAnswer(content, dimmed)),
    ...(citations.length > 0 ? [printPart({ kind: 'sources', citations })] : []),
    ...printUnsupported(dimmed),
    ...(reason ? [printNote(plain(reason), 'bad')] : []),
    ...(interrupted === 'true' ? [printNote('stopped')] : []),
    ...(earlyEndNote ? [printNote(earlyEndNote)] : []),
  ]
}
