import { basename } from 'node:path'
import { pretty } from '../../cli/chat/approve.ts'
import { counted } from '../../cli/terminal/output.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { limits } from '../../contract/limits.ts'
import { contentOf, editorOf } from '../parts/editor.ts'
import { awayNotice, fileNotice, note, print, send, stop, waitNotice } from './turn.ts'
import type { Effect, Named, Question, State, Step } from './types.ts'

interface Command {
  readonly name: string
  readonly takes?: string
  readonly does: string
  /** It does not wait for an answer that comes. */
  readonly anytime?: true
  run(state: State, rest: string): Step
}

/** What a line that begins with `/` may say, in the order of the help. */
export const commands: readonly Command[] = [
  { name: 'help', does: 'show this', anytime: true, run: state => [state, [print({ kind: 'help' })]] },
  { name: 'new', does: 'begin another conversation', run: begin },
  {
    name: 'history',
    takes: '[WORDS]',
    does: 'go on with an earlier conversation',
    run: (state, rest) => [state, [{ type: 'openChoices', purpose: 'history', search: rest }]],
  },
  {
    name: 'model',
    takes: '[NAME]',
    does: 'choose what answers',
    run: (state, rest) => chooseFrom(state, 'model', rest),
  },
  {
    name: 'kb',
    takes: '[NAME, …]',
    does: 'choose the knowledge bases to answer from; all is all of them',
    run: (state, rest) => chooseFrom(state, 'kb', rest),
  },
  {
    name: 'temperature',
    takes: '[0-2]',
    does: 'set the temperature; without a number, use that of the service',
    run: chooseTemperature,
  },
  {
    name: 'image',
    takes: '[FILE]',
    does: 'send an image with the next question; without a name, remove all',
    run: image,
  },
  {
    name: 'attach',
    takes: '[FILE]',
    does: 'attach a file to the conversation; without a name, list them',
    run: attach,
  },
  {
    name: 'tools',
    does: 'show the tools that the agent may use',
    anytime: true,
    run: state => [state, [{ type: 'openTools' }]],
  },
  { name: 'open', takes: 'N', does: 'show the source [N]', anytime: true, run: open },
  {
    name: 'expand',
    takes: 'N',
    does: 'show what tool N was asked, and answered',
    anytime: true,
    run: expand,
  },
  { name: 'thoughts', does: 'show the reasoning of the last answer', anytime: true, run: showThoughts },
  {
    name: 'export',
    takes: '[FILE]',
    does: 'write the conversation to a file',
    run: (state, rest) => [state, [{ type: 'export', file: rest || undefined }]],
  },
  { name: 'copy', takes: '[N]', does: 'copy the answer, or its Nth block of code', anytime: true, run: copy },
  { name: 'retry', does: 'ask the last question again', run: retry },
  { name: 'edit', does: 'change the last question, and ask again', run: edit },
  { name: 'branch', does: 'change an earlier question, and ask again from there', run: branch },
  { name: 'versions', takes: '[N]', does: 'go back to another version of a question', run: versions },
  { name: 'rename', takes: 'TITLE', does: 'change the title of the conversation', run: rename },
  { name: 'quit', does: 'leave', anytime: true, run: quit },
]

/** True of a line that is for this program; two slashes begin a message with one. */
export function isCommand(line: string): boolean {
  return /^\/(?!\/)\S*(?:\s|$)/.test(line) && !line.trimEnd().includes('\n')
}

/** Do what a line says. One that says nothing is left in the field. */
export function obey(state: State, line: string): Step {
  const [, name = '', rest = ''] = /^\/(\S*)\s*(.*)$/.exec(line.trim()) ?? []
  const fitting = commands.filter(command => command.name.startsWith(name))
  const command =
    commands.find(other => other.name === name) ?? (fitting.length === 1 ? fitting[0] : undefined)
  if (!command || name === '')
    return [
      {
        ...state,
        input: { ...state.input, editor: editorOf(line) },
        notice: `no command /${name}; /help lists them`,
      },
      [],
    ]
  if ((state.turn || state.fileTask) && !command.anytime)
    return [
      {
        ...state,
        input: { ...state.input, editor: editorOf(line) },
        notice: state.turn ? waitNotice : fileNotice,
      },
      [],
    ]
  return command.run(state, rest)
}

function chooseFrom(state: State, of: Named, typed: string): Step {
  return [state, [typed === '' ? { type: 'openChoices', purpose: of } : { type: 'choose', of, typed }]]
}

function chooseTemperature(state: State, typed: string): Step {
  if (typed === '')
    return told({ ...state, temperature: undefined }, 'answers use the temperature of the service')
  const temperature = Number(typed.replace(',', '.'))
  if (!(temperature >= 0 && temperature <= limits.temperatureMax))
    return told(state, `/temperature takes a number from 0 to ${limits.temperatureMax}`)
  return told({ ...state, temperature }, `answers use temperature ${temperature} from now on`)
}

function image(state: State, path: string): Step {
  if (path !== '')
    return [{ ...state, fileTask: `reading ${plainLine(basename(path))}` }, [{ type: 'readImage', path }]]
  const { length } = state.images
  if (length === 0) return told(state, 'there is no image to remove; /image takes a file')
  return told({ ...state, images: [] }, `removed ${counted(length, 'image')}`)
}

function attach(state: State, path: string): Step {
  if (state.away) return told(state, awayNotice)
  if (path === '') return [state, [{ type: 'openAttachments' }]]
  return [{ ...state, fileTask: `attaching ${plainLine(basename(path))}` }, [{ type: 'attachFile', path }]]
}

function told(state: State, notice: string): Step {
  return [{ ...state, notice }, []]
}

/** Forget what was said, for another conversation. */
export function begin(state: State): Step {
  const last = { question: undefined, answer: '', thoughts: '', isAnswered: false, citations: [], texts: {} }
  const input = { ...state.input, replaces: undefined }
  return [
    { ...state, last, input, images: imagesAfterEdit(state), runs: [], context: undefined },
    [{ type: 'goOn', conversation: undefined }],
  ]
}

/** Show the source of a number. */
export function open(state: State, number: string): Step {
  const { citations, texts } = state.last
  if (citations.length === 0) return told(state, 'no answer here cites anything')
  const wanted =
    number === '' && citations.length === 1 ? citations[0]!.number : Number(number.replace(/[[\]]/g, ''))
  const citation = citations.find(one => one.number === wanted)
  if (!citation) return told(state, `/open takes a number: ${citations.map(one => one.number).join(' ')}`)
  return [state, [{ type: 'openPassage', citation, known: texts[citation.chunkId] }]]
}

function expand(state: State, number: string): Step {
  const run = number === '' ? state.runs.at(-1) : state.runs.find(one => String(one.number) === number)
  if (!run)
    return told(
      state,
      state.runs.length === 0 ? 'no tool ran yet' : `/expand takes a number up to ${state.runs.length}`,
    )
  const { call, result } = run
  const text = ['asked', '', pretty(call.arguments), '', 'answered', '', pretty(result?.content ?? '')].join(
    '\n',
  )
  return [
    {
      ...state,
      panel: { kind: 'text', title: plainLine(call.name), page: { text, format: 'plain' }, top: 0 },
    },
    [],
  ]
}

/** Shows the reasoning of the current or the last turn. */
function showThoughts(state: State): Step {
  const text = [state.last.thoughts, state.turn?.thought?.text ?? ''].filter(Boolean).join('\n\n')
  if (text === '') return told(state, 'the model showed no reasoning')
  const page = { text, format: 'plain' } as const
  return [{ ...state, panel: { kind: 'text', title: 'Reasoning', page, top: 0 } }, []]
}

function copy(state: State, number: string): Step {
  const { answer } = state.last
  if (answer === '') return told(state, 'there is no answer to copy')
  if (number === '') return [state, [{ type: 'copy', text: answer, what: 'the answer' }]]
  const fences = [...answer.matchAll(/^ *(`{3,}|~{3,})[^\n]*\n([\s\S]*?)^ *\1\s*$/gm)].map(
    ([, , code]) => code!,
  )
  const code = fences[Number(number) - 1]
  if (code === undefined)
    return told(
      state,
      fences.length === 0 ? 'the answer has no block of code' : `/copy takes a number up to ${fences.length}`,
    )
  return [state, [{ type: 'copy', text: code, what: `code ${number}` }]]
}

function retry(state: State): Step {
  const { question } = state.last
  if (!question) return told(state, 'nothing was asked yet')
  const { llmServiceId, temperature } = state
  const images = state.images.length > 0 ? state.images : question.images
  if (!images?.length && question.storedImages?.length)
    return told(state, 'add the images of the question again with /image FILE, then /retry')
  return send(
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

function edit(state: State): Step {
  const { question } = state.last
  return question ? editQuestion(state, question) : told(state, 'nothing was asked yet')
}

/** Puts a question of the conversation into the field. The next message replaces it and all that follow. */
export function editQuestion(state: State, question: Question): Step {
  const input = { ...state.input, editor: editorOf(question.content), replaces: question.messageId }
  const images = [...(question.images ?? []), ...withoutImagesOf(question, state.images)]
  const lost = images.length === 0 && question.storedImages?.length ? ', without its images' : ''
  const which = question.messageId === state.last.question?.messageId ? 'the last question' : 'this question'
  return [
    {
      ...state,
      input,
      images,
      notice: `what you send stands for ${which}${lost}; ctrl+c leaves it as it is`,
    },
    [],
  ]
}

function branch(state: State): Step {
  if (!state.last.question) return told(state, 'nothing was asked yet')
  return [state, [{ type: 'openChoices', purpose: 'questions' }]]
}

/** Returns the images for the next question when an edit is given up, which had taken up those of its question. */
function imagesAfterEdit({ input, images, last }: State): State['images'] {
  return input.replaces === undefined ? images : withoutImagesOf(last.question, images)
}

function withoutImagesOf(question: Question | undefined, images: State['images']): State['images'] {
  return images.filter(image => !question?.images?.includes(image))
}

function versions(state: State, number: string): Step {
  if (state.last.question?.messageId === undefined) return told(state, 'nothing was asked yet')
  if (number === '') return [state, [{ type: 'openChoices', purpose: 'versions' }]]
  if (!/^\d+$/.test(number)) return told(state, '/versions takes a number')
  return [state, [{ type: 'useVersion', version: Number(number) }]]
}

function rename(state: State, title: string): Step {
  if (title === '') return told(state, '/rename takes a title')
  if (!state.last.question) return told(state, 'nothing was asked yet')
  return [state, [{ type: 'rename', title }]]
}

/** Leaves, and stops an answer that is coming. */
export function quit(state: State): Step {
  return [state, [...(state.turn ? [{ type: 'abort' } as const] : []), { type: 'leave' }]]
}

const leaveNotice = 'ctrl+c again leaves'

/** Ctrl-C: stops what goes on, else empties the field, and pressed again it leaves. */
export function cancel(state: State): Step {
  const { turn, fileTask, away, input, isLeaving } = state
  if (turn) return stop({ ...state, isLeaving: true, notice: leaveNotice }, turn)
  if (isLeaving) return [state, [...leaving(state)]]
  const armed: State = { ...state, isLeaving: true, notice: leaveNotice }
  if (fileTask)
    return [{ ...armed, fileTask: undefined }, [{ type: 'stopFileTask' }, note(`stopped ${fileTask}`)]]
  if (away?.waiting)
    return [{ ...armed, away: undefined, ...takenBack(state) }, [{ type: 'stopWaiting' }, note('not sent')]]
  const content = contentOf(input.editor)
  if (content === '' && input.replaces === undefined) return [armed, []]
  const past = content === '' ? input.past : [...input.past, content]
  return [
    {
      ...armed,
      input: { ...input, editor: editorOf(''), past, replaces: undefined, recalled: undefined },
      images: imagesAfterEdit(state),
    },
    [],
  ]
}

function leaving({ away }: State): Effect[] {
  return [...(away ? [{ type: 'stopWaiting' } as const] : []), { type: 'leave' }]
}

/** A message that waits comes back into the field. */
function takenBack({ away, input, images }: State): Pick<State, 'input' | 'images'> {
  const isFree = contentOf(input.editor) === ''
  return {
    input: isFree && away?.waiting ? { ...input, editor: editorOf(away.waiting.content) } : input,
    images: [...(away?.waiting?.images ?? []), ...images],
  }
}
