import { formatArguments } from '../../cli/chat/with-approvals.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { type Line, lineWidth, span, wrap, wrapExact } from '../parts/spans.ts'
import { approvalChoices, DETAILS_KEY } from './approval-keys.ts'
import type { ChatState, PendingApproval } from './types.ts'

const ARGUMENT_LINES = 6

/** Returns the lines of an approval prompt: the arguments of the tool call, the keys, and the remaining time. */
export function approvalLines(
  { size, subject, nowMs }: ChatState,
  { call, expiresMs }: PendingApproval,
): Line[] {
  const width = Math.max(8, Math.min(100, size.columns - 4))
  const secondsLeft = Math.max(0, Math.ceil((expiresMs - nowMs) / 1_000))
  const argumentLines = formatArguments(call.arguments)
    .split('\n')
    .flatMap(line => wrapExact([span(plainLine(line) === '' ? '' : line, 'code')], width - 2))
  const hiddenCount = argumentLines.length - ARGUMENT_LINES + 1
  const moreLine: Line = [
    span(`… ${hiddenCount} more lines  `, 'dim'),
    span(`[${DETAILS_KEY}]`, 'strong'),
    span(' shows all'),
  ]
  const shownLines =
    hiddenCount > 1 ? [...argumentLines.slice(0, ARGUMENT_LINES - 1), moreLine] : argumentLines
  const choices = approvalChoices.map(
    ({ key, label }): Line => [span(`[${key}]`, 'strong'), span(` ${label}`)],
  )
  const time: Line = [span(`${secondsLeft} s left`, 'dim')]
  const singleRow = [...choices, time].flatMap((line, index) => (index > 0 ? [span('   '), ...line] : line))
  const question = `${plainLine(subject.agent)} wants to use ${plainLine(call.name)}`
  return [
    ...wrap([span(question, 'strong')], width, { first: [span('? ', 'warning')], rest: [span('  ')] }),
    ...shownLines.map((line): Line => [span('  '), ...line]),
    [],
    ...(lineWidth(singleRow) <= width ? [singleRow] : [...choices, time]),
  ].map((line): Line => (line.length === 0 ? [] : [span('  '), ...line]))
}
