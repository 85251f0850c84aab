import { namedImageLine } from '../../cli/chat/images.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { unfinishedBlocks } from '../markdown/blocks.ts'
import type { Highlight } from '../markdown/render.ts'
import { formatPreciseDuration } from '../parts/format-precise-duration.ts'
import { cutLine, type Line, span, wrap } from '../parts/spans.ts'
import { spinnerAt } from '../parts/spinner.ts'
import { greetingLines, isEmptyChat } from './greeting.ts'
import { answerLines, runningToolLines } from './transcript.ts'
import { withHeading } from './turn.ts'
import type { ChatState, Turn } from './types.ts'

const QUEUED_MAX = 3

/**
 * Returns the lines above the composer: the unfinished block of the answer, running tools, notices, and queued
 * messages. In an empty chat, the first lines are a greeting.
 */
export function activityLines(state: ChatState, highlight?: Highlight): Line[] {
  return [
    ...(isEmptyChat(state) ? greetingLines(state) : []),
    ...turnLines(state, highlight),
    ...fileTaskLines(state),
    ...noticeLines(state),
    ...queueLines(state),
    ...imageLines(state),
  ]
}

function turnLines(state: ChatState, highlight: Highlight | undefined): Line[] {
  const { turn, nowMs, size, subject } = state
  if (!turn) return []
  const options = { columns: size.columns, agent: subject.agent, highlight }
  const unfinished = withHeading(turn, unfinishedBlocks(turn.reader)).flatMap(block =>
    answerLines({ ...block, isAside: false }, options),
  )
  const running = turn.runningTools.flatMap(run =>
    runningToolLines(run, `${spinnerAt(nowMs)} ${formatPreciseDuration(nowMs - run.startedMs)}`, options),
  )
  const isWaiting = turn.text === '' && running.length === 0
  const placeholder = turn.isReconnecting ? reconnectingLines : isWaiting ? waitingLines : () => []
  return [...unfinished, ...running, ...placeholder(state, turn)]
}

function waitingLines({ nowMs, subject }: ChatState, { startedMs, reasoning }: Turn): Line[] {
  const seconds = Math.floor((nowMs - startedMs) / 1_000)
  const elapsed = seconds > 0 ? `  ${seconds} s` : ''
  const activity = reasoning ? 'thinking' : 'working'
  return [[], [span(`  ${spinnerAt(nowMs)} ${plainLine(subject.agent)} is ${activity}${elapsed}`, 'dim')]]
}

function reconnectingLines({ nowMs }: ChatState): Line[] {
  return [[], [span(`  ${spinnerAt(nowMs)} reconnecting…`, 'dim')]]
}

const indents = { first: [span('  ')], rest: [span('  ')] }

function fileTaskLines({ fileTask, nowMs, size }: ChatState): Line[] {
  if (fileTask === undefined) return []
  return [[], ...wrap([span(`${spinnerAt(nowMs)} ${fileTask}…`, 'dim')], size.columns, indents)]
}

function noticeLines({ notice, outage, size, nowMs }: ChatState): Line[] {
  const lines = notice === '' ? [] : wrap([span(notice, 'dim')], size.columns, indents)
  if (!outage) return lines.length === 0 ? [] : [[], ...lines]
  const message = outage.unsentMessage ? '; your message will be sent when it is available again' : ''
  const text = `${spinnerAt(nowMs)} the runtime is unreachable, retrying${message}`
  return [[], ...wrap([span(text, 'warning')], size.columns, indents), ...lines]
}

function queueLines({ queue, size }: ChatState): Line[] {
  if (queue.length === 0) return []
  const lines = queue
    .slice(0, QUEUED_MAX)
    .map(({ content }) =>
      cutLine([span('  queued  ', 'accent'), span(plainLine(content), 'dim')], size.columns - 1),
    )
  const hiddenCount = queue.length - lines.length
  return [[], ...lines, ...(hiddenCount > 0 ? [[span(`          and ${hiddenCount} more`, 'dim')]] : [])]
}

/** Returns the lines for the images of the next question. */
function imageLines({ images, size }: ChatState): Line[] {
  if (images.length === 0) return []
  return [[], ...wrap([span(images.map(namedImageLine).join(' '), 'accent')], size.columns, indents)]
}
