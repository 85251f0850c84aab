import { basename } from 'node:path'
import { formatArguments } from '../../cli/chat/with-approvals.ts'
import { formatCounted } from '../../cli/terminal/output.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { limits } from '../../contract/limits.ts'
import { contentOf, editorOf } from '../parts/editor.ts'
import {
  emptyExchange,
  outageNotice,
  printNote,
  printPart,
  restoreQueue,
  sendMessage,
  stopTurn,
  waitForAnswerNotice,
  waitForFileNotice,
} from './turn.ts'
import type { ChatEffect, ChatState, ChatStep, NamedPurpose, Question } from './types.ts'

interface ChatCommandEntry {
  readonly name: string
  /** Placeholder for the argument, as shown in the help. */
  readonly argument?: string
  readonly summary: string
  /** True if the command can run during an answer. */
  readonly canRunDuringAnswer?: true
  run(state: ChatState, argument: string): ChatStep
}

/** Commands of a chat, in the order of `/help`. */
export const commands: readonly ChatCommandEntry[] = [
  {
    name: 'help',
    summary: 'show this help',
    canRunDuringAnswer: true,
    run: state => [state, [printPart({ kind: 'help' })]],
  },
  { name: 'new', summary: 'start a new conversation', run: startOver },
  {
    name: 'history',
    argument: '[WORDS]',
    summary: 'continue an earlier conversation',
    run: (state, argument) => [state, [{ type: 'openChoices', purpose: 'history', search: argument }]],
  },
  {
    name: 'model',
    argument: '[NAME]',
    summary: 'choose the model',
    run: (state, argument) => openOrChoose(state, 'model', argument),
  },
  {
    name: 'kb',
    argument: '[NAME, …]',
    summary: 'choose the knowledge bases to answer from, or all of them',
    run: (state, argument) => openOrChoose(state, 'kb', argument),
  },
  {
    name: 'temperature',
    argument: '[0-2]',
    summary: 'set the temperature; without a number, use the setting of the agent or the service',
    run: chooseTemperature,
  },
  {
    name: 'image',
    argument: '[FILE]',
    summary: 'send an image with the next question; without FILE, remove all images',
    run: image,
  },
  {
    name: 'attach',
    argument: '[FILE]',
    summary: 'attach a file to the conversation; without FILE, list the attachments',
    run: attach,
  },
  {
    name: 'tools',
    summary: 'show the tools that the agent can use',
    canRunDuringAnswer: true,
    run: state => [state, [{ type: 'openTools' }]],
  },
  { name: 'open', argument: 'N', summary: 'show the source [N]', canRunDuringAnswer: true, run: openSource },
  {
    name: 'expand',
    argument: 'N',
    summary: 'show the arguments and the result of tool call N',
    canRunDuringAnswer: true,
    run: expand,
  },
  {
    name: 'thoughts',
    summary: 'show the reasoning of the last answer',
    canRunDuringAnswer: true,
    run: showThoughts,
  },
  {
    name: 'export',
    argument: '[FILE]',
    summary: 'write the conversation to a file',
    run: (state, argument) => [state, [{ type: 'export', file: argument || undefined }]],
  },
  {
    name: 'copy',
    argument: '[N]',
    summary: 'copy the answer, or its Nth code block',
    canRunDuringAnswer: true,
    run: copy,
  },
  { name: 'retry', summary: 'ask the last question again', run: retry },
  { name: 'edit', summary: 'change the last question, and ask again', run: edit },
  { name: 'branch', summary: 'change an earlier question, and ask again from there', run: branch },
  { name: 'versions', argument: '[N]', summary: 'go back to another version of a question', run: versions },
  { name: 'rename', argument: 'TITLE', summary: 'change the title of the conversation', run: rename },
  { name: 'quit', summary: 'leave the chat', canRunDuringAnswer: true, run: quit },
]

/** Returns true if a line is a command. A line that starts with two slashes is a message that starts with one. */
export function isCommand(line: string): boolean {
  return /^\/(?!\/)\S*(?:\s|$)/.test(line) && !line.trimEnd().includes('\n')
}

/** Runs a command. If it cannot run now, puts the line back into the composer. */
export function runCommand(state: ChatState, line: string): ChatStep {
  const [, name = '', argument = ''] = /^\/(\S*)\s*(.*)$/.exec(line.trim()) ?? []
  const candidates = commands.filter(command => command.name.startsWith(name))
  const command =
    commands.find(other => other.name === name) ?? (candidates.length === 1 ? candidates[0] : undefined)
  const reject = (notice: string) =>
    withNotice({ ...state, input: { ...state.input, editor: editorOf(line) } }, notice)
  if (!command || name === '') return reject(`there is no command /${name}; /help lists all commands`)
  if ((state.turn || state.fileTask) && !command.canRunDuringAnswer)
    return reject(state.turn ? waitForAnswerNotice : waitForFileNotice)
  return command.run(state, argument)
}

function openOrChoose(state: ChatState, purpose: NamedPurpose, argument: string): ChatStep {
  return [
    state,
    [argument === '' ? { type: 'openChoices', purpose } : { type: 'choose', purpose, input: argument }],
  ]
}

function chooseTemperature(state: ChatState, argument: string): ChatStep {
  if (argument === '')
    return withNotice(
      { ...state, temperature: undefined },
      'answers use the temperature of the agent or the service',
    )
  const temperature = Number(argument.replace(',', '.'))
  if (!(temperature >= 0 && temperature <= limits.temperatureMax))
    return withNotice(state, `/temperature takes a number from 0 to ${limits.temperatureMax}`)
  return withNotice({ ...state, temperature }, `answers use temperature ${temperature} from now on`)
}

function image(state: ChatState, path: string): ChatStep {
  if (path !== '')
    return [{ ...state, fileTask: `reading ${plainLine(basename(path))}` }, [{ type: 'readImage', path }]]
  const { length } = state.images
  if (length === 0) return withNotice(state, 'there is no image to remove; to add one, use /image FILE')
  return withNotice({ ...state, images: [] }, `removed ${formatCounted(length, 'image')}`)
}

function attach(state: ChatState, path: string): ChatStep {
  if (state.outage) return withNotice(state, outageNotice)
  if (path === '') return [state, [{ type: 'openAttachments' }]]
  return [{ ...state, fileTask: `attaching ${plainLine(basename(path))}` }, [{ type: 'attachFile', path }]]
}

function withNotice(state: ChatState, notice: string): ChatStep {
  return [{ ...state, notice }, []]
}

/** Starts another conversation. */
export function startOver(state: ChatState): ChatStep {
  const input = { ...state.input, replaces: undefined }
  const images = imagesAfterEdit(state)
  return [
    { ...state, lastExchange: emptyExchange, input, images, toolRuns: [], context: undefined },
    [{ type: 'openConversation', conversation: undefined }],
  ]
}

/** Opens the source with a number. Without a number, opens the source if there is only one. */
export function openSource(state: ChatState, number: string): ChatStep {
  const { citations, texts } = state.lastExchange
  if (citations.length === 0) return withNotice(state, 'this conversation has no sources yet')
  const sourceNumber =
    number === '' && citations.length === 1 ? citations[0]!.number : Number(number.replace(/[[\]]/g, ''))
  const citation = citations.find(source => source.number === sourceNumber)
  if (!citation)
    return withNotice(state, `/open takes a number: ${citations.map(source => source.number).join(' ')}`)
  return [state, [{ type: 'openPassage', citation, knownText: texts[citation.chunkId] }]]
}

function expand(state: ChatState, number: string): ChatStep {
  const run =
    number === '' ? state.toolRuns.at(-1) : state.toolRuns.find(toolRun => String(toolRun.number) === number)
  if (!run)
    return withNotice(
      state,
      state.toolRuns.length === 0
        ? 'no tool has run yet'
        : `/expand takes a number up to ${state.toolRuns.length}`,
    )
  const { call, result } = run
  const text = [
    'arguments',
    '',
    formatArguments(call.arguments),
    '',
    'result',
    '',
    formatArguments(result?.content ?? ''),
  ].join('\n')
  return [
    {
      ...state,
      panel: { kind: 'text', title: plainLine(call.name), page: { text, format: 'plain' }, top: 0 },
    },
    [],
  ]
}

/** Shows the reasoning of the current or the last turn. */
function showThoughts(state: ChatState): ChatStep {
  const text = [state.lastExchange.reasoning, state.turn?.reasoning?.text ?? ''].filter(Boolean).join('\n\n')
  if (text === '') return withNotice(state, 'the model showed no reasoning')
  const page = { text, format: 'plain' } as const
  return [{ ...state, panel: { kind: 'text', title: 'Reasoning', page, top: 0 } }, []]
}

function copy(state: ChatState, number: string): ChatStep {
  const { answer } = state.lastExchange
  if (answer === '') return withNotice(state, 'there is no answer to copy')
  if (number === '') return [state, [{ type: 'copy', text: answer, label: 'the answer' }]]
  const codeBlocks = [...answer.matchAll(/^ *(`{3,}|~{3,})[^\n]*\n([\s\S]*?)^ *\1\s*$/gm)].map(
    ([, , code]) => code!,
  )
  const code = codeBlocks[Number(number) - 1]
  if (code === undefined)
    return withNotice(
      state,
      codeBlocks.length === 0
        ? 'the answer has no code block'
        : `/copy takes a number up to ${codeBlocks.length}`,
    )
  return [state, [{ type: 'copy', text: code, label: `code block ${number}` }]]
}

function retry(state: ChatState): ChatStep {
  const { question } = state.lastExchange
  if (!question) return withNotice(state, 'there is no question yet')
  const { llmServiceId, temperature } = state
  const images = state.images.length > 0 ? state.images : question.images
  if (!images?.length && question.storedImages?.length)
    return withNotice(state, 'to retry, first add the images of the question again with /image FILE')
  return sendMessage(
    { ...state, images: [] },
    {
      content: question.content,
      images,
      replaces: question.messageId,
      llmServiceId,
      temperature,
    },
  )
}

function edit(state: ChatState): ChatStep {
  const { question } = state.lastExchange
  return question ? editQuestion(state, question) : withNotice(state, 'there is no question yet')
}

/** Puts an earlier question into the composer. The next message replaces that question and all later messages. */
export function editQuestion(state: ChatState, question: Question): ChatStep {
  const input = { ...state.input, editor: editorOf(question.content), replaces: question.messageId }
  const images = [...(question.images ?? []), ...withoutImagesOf(question, state.images)]
  const imagesNote = images.length === 0 && question.storedImages?.length ? ', without its images' : ''
  const target =
    question.messageId === state.lastExchange.question?.messageId ? 'the last question' : 'this question'
  return [
    {
      ...state,
      input,
      images,
      notice: `your message will replace ${target}${imagesNote}; ctrl+c cancels`,
    },
    [],
  ]
}

function branch(state: ChatState): ChatStep {
  if (!state.lastExchange.question) return withNotice(state, 'there is no question yet')
  return [state, [{ type: 'openChoices', purpose: 'questions' }]]
}

/** Returns the images of the next question after an edit is canceled: all except those of the edited question. */
function imagesAfterEdit({ input, images, lastExchange }: ChatState): ChatState['images'] {
  return input.replaces === undefined ? images : withoutImagesOf(lastExchange.question, images)
}

function withoutImagesOf(question: Question | undefined, images: ChatState['images']): ChatState['images'] {
  return images.filter(image => !question?.images?.includes(image))
}

function versions(state: ChatState, number: string): ChatStep {
  if (state.lastExchange.question?.messageId === undefined)
    return withNotice(state, 'there is no question yet')
  if (number === '') return [state, [{ type: 'openChoices', purpose: 'versions' }]]
  if (!/^\d+$/.test(number)) return withNotice(state, '/versions takes a number')
  return [state, [{ type: 'useVersion', version: Number(number) }]]
}

function rename(state: ChatState, title: string): ChatStep {
  if (title === '') return withNotice(state, '/rename takes a title')
  if (!state.lastExchange.question) return withNotice(state, 'there is no question yet')
  return [state, [{ type: 'rename', title }]]
}

/** Leaves the chat, and stops the current answer. */
export function quit(state: ChatState): ChatStep {
  return [state, [...(state.turn ? [{ type: 'abort' } as const] : []), { type: 'leave' }]]
}

const leaveNotice = 'press ctrl+c again to leave'

/** Handles Ctrl-C: stops the current work, or else clears the composer. A second Ctrl-C leaves the chat. */
export function cancel(state: ChatState): ChatStep {
  const { turn, fileTask, outage, input, isLeaving } = state
  if (turn) return stopTurn({ ...state, isLeaving: true, notice: leaveNotice }, turn)
  if (isLeaving) return [state, [...leaveEffects(state)]]
  const leaving: ChatState = { ...state, isLeaving: true, notice: leaveNotice }
  if (fileTask)
    return [{ ...leaving, fileTask: undefined }, [{ type: 'stopFileTask' }, printNote(`stopped ${fileTask}`)]]
  if (outage?.unsentMessage) {
    const restored = restoreQueue({ ...leaving, outage: undefined, ...restoreUnsentMessage(state) })
    return [restored, [{ type: 'stopWaiting' }, printNote('not sent')]]
  }
  const content = contentOf(input.editor)
  if (content === '' && input.replaces === undefined) return [leaving, []]
  const sentLines = content === '' ? input.sentLines : [...input.sentLines, content]
  return [
    {
      ...leaving,
      input: { ...input, editor: editorOf(''), sentLines, replaces: undefined, recalled: undefined },
      images: imagesAfterEdit(state),
    },
    [],
  ]
}

function leaveEffects({ outage }: ChatState): ChatEffect[] {
  return [...(outage ? [{ type: 'stopWaiting' } as const] : []), { type: 'leave' }]
}

/** Moves the message that waits for the runtime back into the composer. */
function restoreUnsentMessage({ outage, input, images }: ChatState): Pick<ChatState, 'input' | 'images'> {
  const isComposerEmpty = contentOf(input.editor) === ''
  return {
    input:
      isComposerEmpty && outage?.unsentMessage
        ? { ...input, editor: editorOf(outage.unsentMessage.content) }
        : input,
    images: [...(outage?.unsentMessage?.images ?? []), ...images],
  }
}
