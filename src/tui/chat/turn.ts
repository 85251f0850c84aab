import { accumulateCitations, citationsOf } from '../../cli/chat/citations.ts'
import { finishNote } from '../../cli/chat/finish-note.ts'
import { imageLines, namedImageLine } from '../../cli/chat/images.ts'
import { noModelCodes, noModelLines } from '../../cli/chat/model-setup.ts'
import type { OutgoingMessage } from '../../cli/chat/port.ts'
import { toolDisplayName } from '../../cli/chat/tool-name.ts'
import { unsupportedSentences } from '../../cli/chat/unsupported.ts'
import { signInLines } from '../../cli/mcp/sign-in-required.ts'
import { plain } from '../../cli/terminal/terminal-text.ts'
import type { Citation, ToolCall, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { type Block, blocksOf, emptyReader, readPiece, unfinishedBlocks } from '../markdown/blocks.ts'
import { contentOf, editorOf } from '../parts/editor.ts'
import { findAnswer } from './follow-turn.ts'
import { addReasoning, endReasoning } from './reasoning.ts'
import type {
  ChatEffect,
  ChatFailure,
  ChatState,
  ChatStep,
  Question,
  ToolRun,
  TranscriptPart,
  Turn,
} from './types.ts'

/** Notice for commands that cannot run during an answer. */
export const waitForAnswerNotice = 'wait for the answer, or stop it with ctrl+c'

/** Notice for messages that cannot be sent during an outage. */
export const outageNotice = 'the runtime is unreachable; your text stays here'

/** Notice for actions that cannot run during work on a file. */
export const waitForFileNotice = 'wait for the file, or stop it with ctrl+c'

export const emptyExchange: ChatState['lastExchange'] = {
  question: undefined,
  answer: '',
  reasoning: '',
  isAnswered: false,
  citations: [],
  texts: {},
}

/** Returns the effect that prints a part of the conversation. */
export function printPart(part: TranscriptPart): ChatEffect {
  return { type: 'print', part }
}

/** Returns the effect that prints a note in the conversation. */
export function printNote(text: string, tone: 'dim' | 'good' | 'bad' = 'dim'): ChatEffect {
  return printPart({ kind: 'note', text, tone })
}

/** Returns the effects that print a whole answer. @param dimmed  sentences to dim */
export function printWholeAnswer(content: string, dimmed: readonly string[] = []): ChatEffect[] {
  return blocksOf(content).map((block, index) =>
    printPart({ kind: 'answer', block, isFirst: index === 0, isAside: false, dimmed }),
  )
}

/** Returns the effects that list the sentences of an answer that no source supports. */
export function printUnsupported(sentences: readonly string[]): ChatEffect[] {
  return sentences.length > 0 ? [printPart({ kind: 'unsupported', sentences })] : []
}

/** Runs a second step on the state that a step returned, and joins the effects of both. */
export function chainStep(
  [state, effects]: ChatStep,
  continueFrom: (state: ChatState) => ChatStep,
): ChatStep {
  const [next, nextEffects] = continueFrom(state)
  return [next, [...effects, ...nextEffects]]
}

/** Sends a message, and starts its turn. */
export function sendMessage(state: ChatState, message: OutgoingMessage): ChatStep {
  return [startTurn(state, message), [printQuestion(message), { type: 'send', message }]]
}

/** Returns the effect that prints a question with the names of its images. */
function printQuestion({ content, images = [] }: Pick<OutgoingMessage, 'content' | 'images'>): ChatEffect {
  return printPart({ kind: 'question', text: content, images: images.map(namedImageLine) })
}

function startTurn(state: ChatState, message: OutgoingMessage): ChatState {
  const turn: Turn = {
    message,
    messageId: undefined,
    previousQuestionId: state.lastExchange.question?.messageId,
    previousExchange: state.lastExchange,
    startedMs: state.nowMs,
    reader: emptyReader,
    text: '',
    reasoning: undefined,
    hasHeading: false,
    isAfterTool: false,
    isReconnecting: false,
    runningTools: [],
    pendingApprovals: [],
  }
  const question = { content: message.content, messageId: undefined, images: message.images }
  return {
    ...state,
    turn,
    notice: '',
    lastExchange: { ...state.lastExchange, question, reasoning: '', isAnswered: false },
  }
}

/**
 * Applies an event of the current turn. Without a current turn, ignores the event, because it belongs to a stopped turn.
 *
 * @param usedPassages  passages that the answer used, if it cites none
 */
export function applyTurnEvent(
  state: ChatState,
  event: TurnEvent,
  usedPassages: readonly Citation[] = [],
): ChatStep {
  if (!state.turn) return [state, []]
  if (event.event === 'reasoning') return [addReasoning(state, state.turn, plain(event.data.delta)), []]
  if (event.event === 'user-message' || !state.turn.reasoning)
    return applyEvent(state, state.turn, event, usedPassages)
  const [next, line] = endReasoning(state, state.turn, state.turn.reasoning)
  return chainStep([next, [printNote(line)]], shown => applyEvent(shown, shown.turn!, event, usedPassages))
}

function applyEvent(
  state: ChatState,
  turn: Turn,
  { event, data }: TurnEvent,
  usedPassages: readonly Citation[],
): ChatStep {
  switch (event) {
    case 'user-message': {
      const question = { ...state.lastExchange.question!, messageId: data.messageId }
      const next = { ...turn, messageId: data.messageId }
      return [{ ...state, turn: next, lastExchange: { ...state.lastExchange, question } }, []]
    }
    case 'reasoning':
      return [state, []]
    case 'token':
      return addToken(state, turn, plain(data.delta))
    case 'token-reset':
      return printAside(state, turn)
    case 'tool-call':
      return addToolCalls(state, turn, data.toolCalls)
    case 'tool-approval': {
      const { approvalId, toolCall, expiresAt } = data
      const call = withToolName(state, toolCall)
      const approval = { approvalId, call, expiresMs: Date.parse(expiresAt), requestedMs: state.nowMs }
      return [{ ...state, turn: { ...turn, pendingApprovals: [...turn.pendingApprovals, approval] } }, []]
    }
    case 'tool-result':
      return addToolResult(state, turn, data)
    case 'done':
      return chainStep(finishTurn(state, turn, data, usedPassages), sendQueued)
    case 'error':
      return endWithError(state, turn, data)
    case 'stream-error':
      return rejectTurn(state, turn, {
        kind: 'rejected',
        code: data.code,
        message: data.message,
        nextSteps: data.hint === undefined ? [] : [data.hint],
      })
  }
}

function addToken(state: ChatState, turn: Turn, delta: string): ChatStep {
  const { reader, blocks } = readPiece(turn.reader, delta)
  return printBlocks(state, { ...turn, reader, text: turn.text + delta }, blocks)
}

/** Prints finished blocks of the answer. */
function printBlocks(
  state: ChatState,
  turn: Turn,
  blocks: readonly Block[],
  { isAside = false, dimmed }: { isAside?: boolean; dimmed?: readonly string[] } = {},
): ChatStep {
  if (blocks.length === 0) return [{ ...state, turn }, []]
  const effects = withHeading(turn, blocks).map(({ block, isFirst }) =>
    printPart({ kind: 'answer', block, isFirst, isAside, dimmed }),
  )
  return [{ ...state, turn: { ...turn, hasHeading: true, isAfterTool: false } }, effects]
}

/**
 * Marks the first block of an answer, which gets a heading, and adds a gap before the first block after a tool call.
 */
export function withHeading(
  { hasHeading, isAfterTool }: Turn,
  blocks: readonly Block[],
): { block: Block; isFirst: boolean }[] {
  return blocks.map((block, index) => ({
    block: index === 0 && isAfterTool ? { ...block, gap: true } : block,
    isFirst: index === 0 && !hasHeading,
  }))
}

/** Prints the rest of the answer. @param dimmed  sentences to dim */
function printRest(state: ChatState, turn: Turn, dimmed?: readonly string[]): ChatStep {
  return printBlocks(state, { ...turn, reader: emptyReader }, unfinishedBlocks(turn.reader), { dimmed })
}

/** Prints the text before a tool call as an aside, because it is not part of the answer. */
function printAside(state: ChatState, turn: Turn): ChatStep {
  return printBlocks(state, { ...turn, reader: emptyReader, text: '' }, unfinishedBlocks(turn.reader), {
    isAside: true,
  })
}

function addToolCalls(state: ChatState, turn: Turn, calls: readonly ToolCall[]): ChatStep {
  const firstNumber = state.toolRuns.length + turn.runningTools.length + 1
  const running = calls.map(
    (call, index): ToolRun => ({
      number: firstNumber + index,
      call: withToolName(state, call),
      startedMs: state.nowMs,
    }),
  )
  return [{ ...state, turn: { ...turn, runningTools: [...turn.runningTools, ...running] } }, []]
}

function withToolName({ subject }: ChatState, call: ToolCall): ToolCall {
  return { ...call, name: toolDisplayName(call.name, subject.servers) }
}

type ToolResultData = Extract<TurnEvent, { event: 'tool-result' }>['data']

function addToolResult(
  state: ChatState,
  turn: Turn,
  { toolCallId, content, outcome, durationMs }: ToolResultData,
): ChatStep {
  const toolRun = turn.runningTools.find(({ call }) => call.id === toolCallId)
  if (!toolRun) return [state, []]
  const run: ToolRun = { ...toolRun, result: { content: plain(content), outcome, durationMs } }
  const next: Turn = {
    ...turn,
    isAfterTool: true,
    runningTools: turn.runningTools.filter(other => other !== toolRun),
    pendingApprovals: turn.pendingApprovals.filter(({ call }) => call.id !== toolCallId),
  }
  return [{ ...state, turn: next, toolRuns: [...state.toolRuns, run] }, [printPart({ kind: 'tool', run })]]
}

function finishTurn(
  state: ChatState,
  turn: Turn,
  message: Message,
  usedPassages: readonly Citation[] = [],
): ChatStep {
  const content = plain(message.content ?? '')
  const dimmed = unsupportedSentences(message)
  const [printedState, effects] =
    turn.text === ''
      ? printBlocks(state, turn, blocksOf(content), { dimmed })
      : printRest(state, turn, dimmed)
  const citedPassages = citationsOf(message)
  const isUncited = citedPassages.length === 0
  const citations = isUncited ? numberAfter(printedState.lastExchange.citations, usedPassages) : citedPassages
  const allCitations = accumulateCitations(printedState.lastExchange.citations, citations)
  const lastExchange = {
    ...printedState.lastExchange,
    answer: turn.text || content,
    isAnswered: true,
    citations: allCitations,
  }
  const earlyEndNote = finishNote(message)
  return [
    { ...endTurn(printedState), lastExchange, ...addUsage(state, message) },
    [
      ...effects,
      ...(citations.length > 0 ? [printPart({ kind: 'sources', citations, isUncited })] : []),
      ...printUnsupported(dimmed),
      ...(turn.message.replaces === undefined ? [] : [printNote('/versions restores the earlier version')]),
      ...signInLines(message).map(line => printNote(line)),
      ...(earlyEndNote ? [printNote(earlyEndNote)] : []),
      ...(message.metadata.interrupted === 'true' ? [printNote('stopped')] : []),
    ],
  ]
}

/** Ends a turn that failed after its question was stored. */
function endWithError(state: ChatState, turn: Turn, message: Message): ChatStep {
  const [printedState, effects] = printRest(state, turn)
  const reason = message.metadata.error_message || message.content || 'the answer is incomplete'
  const failed: ChatStep = [
    { ...restoreQueue(endTurn(printedState)), ...addUsage(state, message) },
    [...effects, printNote(plain(reason), 'bad'), printNote('/retry asks again')],
  ]
  return chainStep(failed, next => restoreEarlierAnswer(next, turn))
}

/** Restores the earlier question and answer if a new version of them failed: only a complete version replaces them. */
function restoreEarlierAnswer(state: ChatState, { message, previousExchange }: Turn): ChatStep {
  if (message.replaces === undefined) return [state, []]
  const answer = printWholeAnswer(previousExchange.answer)
  const effects =
    !previousExchange.isAnswered || answer.length === 0
      ? []
      : [
          printNote('the earlier answer is kept:'),
          printQuestion(previousExchange.question ?? { content: '' }),
          ...answer,
        ]
  return [{ ...state, lastExchange: previousExchange }, effects]
}

function endTurn(state: ChatState): ChatState {
  return { ...state, turn: undefined, notice: state.notice === waitForAnswerNotice ? '' : state.notice }
}

/**
 * Returns the number of context tokens of an answer and the context window of its model; undefined if the provider did
 * not report them.
 */
export function contextOf({ metadata }: Pick<Message, 'metadata'>): ChatState['context'] {
  const [tokens, window] = [Number(metadata.context_tokens), Number(metadata.context_window)]
  return tokens > 0 && window > 0 ? { tokens, window } : undefined
}

/** Numbers passages after the known citations, so that all numbers are unique. */
function numberAfter(existing: readonly Citation[], passages: readonly Citation[]): readonly Citation[] {
  const lastNumber = Math.max(0, ...existing.map(({ number }) => number))
  return passages.map((citation, index) => ({ ...citation, number: lastNumber + index + 1 }))
}

/** Sends the next queued message. */
function sendQueued(state: ChatState): ChatStep {
  const [next, ...queue] = state.queue
  return next ? sendMessage({ ...state, queue }, next) : [state, []]
}

/** Moves queued messages back into the composer after a turn without an answer. */
export function restoreQueue(state: ChatState): ChatState {
  const { queue, input, images } = state
  if (queue.length === 0) return state
  const texts = [...queue.map(({ content }) => content), contentOf(input.editor)]
  return {
    ...state,
    queue: [],
    images: [...queue.flatMap(message => message.images ?? []), ...images],
    input: { ...input, editor: editorOf(texts.filter(text => text !== '').join('\n\n')) },
  }
}

function addUsage(
  { usage, model, context }: ChatState,
  message: Message,
): Pick<ChatState, 'usage' | 'model' | 'context'> {
  const { tokenCount, metadata } = message
  const cost = Number(metadata.cost_usd ?? Number.NaN)
  return {
    usage: {
      tokens: usage.tokens + (tokenCount ?? 0),
      costUsd: cost >= 0 ? (usage.costUsd ?? 0) + cost : usage.costUsd,
    },
    model: plain(metadata.model ?? '') || model,
    context: contextOf(message) ?? context,
  }
}

/** Ends a turn whose connection or request failed. */
export function failTurn(state: ChatState, failure: ChatFailure): ChatStep {
  const { turn } = state
  if (!turn) return [state, [printNote(failure.message, 'bad')]]
  return failure.kind === 'unreachable' ? loseConnection(state, turn) : rejectTurn(state, turn, failure)
}

/** Ends a turn because the runtime is unreachable. If the runtime has not confirmed the question, it is sent later. */
function loseConnection(state: ChatState, turn: Turn): ChatStep {
  const { messageId, message, previousQuestionId } = turn
  if (messageId === undefined) {
    const lastExchange = {
      ...state.lastExchange,
      question: { ...state.lastExchange.question!, messageId: previousQuestionId },
    }
    return [
      { ...endTurn(state), lastExchange, outage: { unsentMessage: message, previousQuestionId } },
      [{ type: 'wait' }],
    ]
  }
  const [printedState, effects] = printRest(state, turn)
  const lostNote = printNote('the connection was lost during the answer; /retry asks again', 'bad')
  const stateInOutage: ChatState = {
    ...restoreQueue(endTurn(printedState)),
    outage: { unsentMessage: undefined, unansweredQuestion: { message, messageId } },
  }
  return chainStep([stateInOutage, [...effects, lostNote, { type: 'wait' }]], next =>
    restoreEarlierAnswer(next, turn),
  )
}

function rejectTurn(state: ChatState, turn: Turn, failure: ChatFailure): ChatStep {
  if (noModelCodes.includes(failure.code)) {
    // If `model` is null, the reason has already been shown.
    const reason = state.model === null ? [] : noModelLines(failure.message, failure.nextSteps)
    return [
      restoreQueue(endTurn(state)),
      [...reason.map(text => printNote(text)), { type: 'find', question: turn.message.content }],
    ]
  }
  const { input } = state
  // A rejected message goes back into the composer, unless the user has typed something else.
  const isComposerEmpty = contentOf(input.editor) === ''
  const images = turn.messageId ? state.images : [...(turn.message.images ?? []), ...state.images]
  const editor = isComposerEmpty && !turn.messageId ? editorOf(turn.message.content) : input.editor
  const lines = [`${failure.message} (${failure.code})`, ...failure.nextSteps]
  const failed: ChatStep = [
    restoreQueue({ ...endTurn(state), input: { ...input, editor }, images }),
    lines.map((line, index) => printNote(plain(line), index === 0 ? 'bad' : 'dim')),
  ]
  return chainStep(failed, next => restoreEarlierAnswer(next, turn))
}

/** Stops an answer. The text so far stays on the screen. */
export function stopTurn(state: ChatState, turn: Turn): ChatStep {
  const [printedState, effects] = printRest(state, turn)
  return chainStep(
    [restoreQueue(endTurn(printedState)), [{ type: 'abort' }, ...effects, printNote('stopped')]],
    next => restoreEarlierAnswer(next, turn),
  )
}

/** Converts a stored user message to a question. */
export function questionOf({ content, messageId, images }: Message): Question {
  return { content: plain(content ?? ''), messageId, storedImages: images }
}

/** Sets whether the turn is shown as reconnecting. */
export function setReconnecting(state: ChatState, isReconnecting: boolean): ChatStep {
  return [state.turn ? { ...state, turn: { ...state.turn, isReconnecting } } : state, []]
}

/** Shows a turn that is already running in the runtime. */
export function attachTurn(state: ChatState, message: Message): ChatStep {
  const { content, messageId, metadata } = message
  if (state.turn) return [state, []]
  const lastQuestion = state.lastExchange.question
  const isShown = lastQuestion?.messageId === messageId
  const outgoing: OutgoingMessage = {
    content: plain(content ?? ''),
    ...(isShown ? { images: lastQuestion.images } : { replaces: metadata.version_of }),
  }
  const stateWithTurn = startTurn(state, outgoing)
  const question = {
    ...stateWithTurn.lastExchange.question!,
    storedImages: outgoing.images ? undefined : message.images,
  }
  return [
    { ...stateWithTurn, lastExchange: { ...stateWithTurn.lastExchange, question } },
    isShown ? [] : [printPart({ kind: 'question', text: outgoing.content, images: imageLines(message) })],
  ]
}

/** Ends an outage. Sends the unsent message, unless the runtime has already stored it. */
export function endOutage(state: ChatState, messages: readonly Message[]): ChatStep {
  const { outage } = state
  if (!outage) return [state, []]
  const notice = state.notice === outageNotice ? '' : state.notice
  const restored: ChatStep = [
    { ...state, outage: undefined, notice },
    [printNote('the runtime is available again', 'good')],
  ]
  const { unsentMessage, previousQuestionId, unansweredQuestion } = outage
  if (unansweredQuestion)
    return chainStep(restored, next => recoverAnswer(next, unansweredQuestion, messages))
  if (!unsentMessage) return restored
  const [stored, answer] = findStoredExchange(unsentMessage, previousQuestionId, messages)
  if (stored && answer) {
    const answered = chainStep(restored, next =>
      applyStoredAnswer(next, unsentMessage, stored.messageId, answer),
    )
    return chainStep(answered, sendQueued)
  }
  const fallbackMessage = stored ? { ...unsentMessage, replaces: stored.messageId } : unsentMessage
  const { content, replaces } = unsentMessage
  const resume: ChatEffect = {
    type: 'resume',
    content,
    excludedIds: [replaces, previousQuestionId],
    fallbackMessage,
  }
  return chainStep(restored, next => [startTurn(next, fallbackMessage), [resume]])
}

/**
 * Shows the answer to a question after its connection was lost. If the answer is not stored yet, continues to read the
 * running turn.
 */
function recoverAnswer(
  state: ChatState,
  { message, messageId }: { readonly message: OutgoingMessage; readonly messageId: string },
  messages: readonly Message[],
): ChatStep {
  // Do nothing if the user has meanwhile repeated the question or asked another one.
  if (state.turn || state.lastExchange.question?.messageId !== messageId) return [state, []]
  const answer = findAnswer(messageId, messages)
  if (answer && isModelAnswer(answer)) return applyStoredAnswer(state, message, messageId, answer)
  return [state, answer ? [] : [{ type: 'resume', content: message.content, excludedIds: [] }]]
}

function applyStoredAnswer(
  state: ChatState,
  message: OutgoingMessage,
  messageId: string,
  answer: Message,
): ChatStep {
  const stateWithTurn = startTurn(state, message)
  const [printedState, effects] = finishTurn(stateWithTurn, stateWithTurn.turn!, answer)
  const question = { ...printedState.lastExchange.question!, messageId }
  return [{ ...printedState, lastExchange: { ...printedState.lastExchange, question } }, effects]
}

/** Returns true if the model wrote an answer, even if it is incomplete. */
function isModelAnswer({ metadata }: Message): boolean {
  return ['stop', 'length', 'content_filter'].includes(metadata.finish_reason ?? '')
}

/** Finds a message that the runtime stored but did not confirm, and its answer. */
function findStoredExchange(
  { content, replaces }: OutgoingMessage,
  previousQuestionId: string | undefined,
  messages: readonly Message[],
): (Message | undefined)[] {
  const index = messages.findLastIndex(({ role }) => role === 'user')
  const stored = messages[index]
  if (stored?.content !== content || [replaces, previousQuestionId].includes(stored.messageId)) return []
  return [stored, messages.slice(index + 1).find(isModelAnswer)]
}
