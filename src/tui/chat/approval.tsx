import { formatArguments } from '../../cli/chat/with-approvals.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { Rows } from '../parts/rows.tsx'
import { type Line, lineWidth, span, wrap, wrapExact } from '../parts/spans.ts'
import { approvalAnswers, DETAILS_KEY } from './approval-keys.ts'
import type { ChatState, PendingApproval } from './types.ts'

const ARGUMENT_LINES = 6

/** Returns the lines of a question about a tool call: its arguments, the keys, and the time that is left. */
export function approvalLines(
  { size, about, nowMs }: ChatState,
  { call, expiresMs }: PendingApproval,
): Line[] {
  const width = Math.max(8, Math.min(100, size.columns - 4))
  const left = Math.max(0, Math.ceil((expiresMs - nowMs) / 1_000))
  const passed = formatArguments(call.arguments)
    .split('\n')
    .flatMap(line => wrapExact([span(plainLine(line) === '' ? '' : line, 'code')], width - 2))
  const rest = passed.length - ARGUMENT_LINES + 1
  const more: Line = [
    span(`… ${rest} more lines  `, 'dim'),
    span(`[${DETAILS_KEY}]`, 'strong'),
    span(' shows all'),
  ]
  const shown = rest > 1 ? [...passed.slice(0, ARGUMENT_LINES - 1), more] : passed
  const choices = approvalAnswers.map(
    ({ key, label }): Line => [span(`[${key}]`, 'strong'), span(` ${label}`)],
  )
  const time: Line = [span(`${left} s left`, 'dim')]
  const inRow = [...choices, time].flatMap((line, at) => (at > 0 ? [span('   '), ...line] : line))
  const question = `${plainLine(about.agent)} wants to use ${plainLine(call.name)}`
  return [
    ...wrap([span(question, 'strong')], width, { first: [span('? ', 'warning')], rest: [span('  ')] }),
    ...shown.map((line): Line => [span('  '), ...line]),
    [],
    ...(lineWidth(inRow) <= width ? [inRow] : [...choices, time]),
  ].map((line): Line => (line.length === 0 ? [] : [span('  '), ...line]))
}

/** Asks whether a tool may run, in place of the composer. */
export function ApprovalPrompt({ lines }: { lines: readonly Line[] }) {
  return <Rows lines={lines} />
}
