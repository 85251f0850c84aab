import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { KeychainUnavailable } from '../../keychain/keychain.ts'
import { Interrupted, PartlyFailed, UsageError } from '../faults.ts'
import type { Style } from '../terminal/style.ts'
import { plain, plainJson, plainLine } from '../terminal/terminal-text.ts'
import { isParseError } from './exit.ts'
import { parseMessage } from './parse-fault.ts'
import { sqliteFault } from './sqlite-fault.ts'

/** What a person is told of an error: the fact, its code and request, and what to do next. */
export interface Report {
  /** What a program is told where no runtime gave a code. */
  kind: 'refused' | 'unreachable' | 'keychain' | 'usage' | 'interrupted' | 'failed' | 'defect'
  message: string
  code?: string
  requestId?: string
  next: string[]
}

/** The three parts of an error. Anything that is not meant for people is a defect, and says so. */
export function reportOf(error: unknown): Report {
  if (error instanceof WbError) return refusal(error)
  if (error instanceof Unreachable)
    return { kind: 'unreachable', message: error.message, next: [error.hint, ...(error.next ?? [])] }
  if (error instanceof KeychainUnavailable)
    return { kind: 'keychain', message: error.message, next: [error.hint, withoutKeychain] }
  if (error instanceof UsageError) return { kind: 'usage', message: error.message, next: [...error.next] }
  if (error instanceof Interrupted) return { kind: 'interrupted', message: error.message, next: [] }
  if (error instanceof PartlyFailed) return { kind: 'failed', message: error.message, next: [...error.next] }
  if (isParseError(error)) return { kind: 'usage', message: parseMessage(error), next: [] }
  const fault = sqliteFault(error)
  if (fault) return { kind: 'failed', ...fault }
  const message = error instanceof Error ? error.message : String(error)
  return { kind: 'defect', message: `unexpected: ${message}`, next: [defectLine] }
}

export const defectLine = 'This is a defect of wb; run it again with --debug for the details.'

const withoutKeychain =
  'WB_API_KEY=… in the environment needs none, nor does a login in a file that you alone can read'

/** What to type where the hint of the API names no command. */
const commands: Readonly<Record<string, readonly string[]>> = {
  agent_tool_unresolved: ['wb agents tools'],
  job_not_found: ['wb jobs list'],
}

/** Requests of a hint as the commands that send them. */
function asTyped(hint: string): string {
  return hint.replace('send POST /', 'run wb api POST /').replace('; GET /', '; wb api GET /')
}

function refusal(error: WbError): Report {
  const { requestId, wireCode, wireStatus, next } = error.facts
  const code = typeof wireCode === 'string' ? wireCode : error.code
  const lines = Array.isArray(next) ? next.map(String) : [asTyped(error.hint), ...(commands[code] ?? [])]
  // A further line of what a runtime says would read as one of ours.
  const message = wireStatus === undefined ? error.message : plainLine(error.message)
  return { kind: 'refused', message, code, requestId, next: lines }
}

/** The lines of a report as a terminal shows them. */
export function reportLines(report: Report, style: Style): string[] {
  const about = [report.code, report.requestId && `request ${report.requestId}`].filter(Boolean).join(', ')
  const message = sentence(plain(report.message))
  const [first = '', ...more] = message.split('\n')
  return [
    `  ${style.bad('✗')} ${first}${about ? style.dim(` (${plainLine(about)})`) : ''}`,
    ...more.map(line => `    ${line}`),
    ...report.next.map(line => `    ${plain(line).replaceAll('\n', ' ')}`),
  ]
}

/** The same for a program: the envelope of the API. */
export function reportJson({ kind, message, code = kind, requestId, next }: Report): string {
  return plainJson({ error: { code, message, requestId, hint: joined(next) } })
}

/** Lines as one: what ends a sentence or leads to the next line needs nothing after it. */
function joined(lines: readonly string[]): string {
  return lines
    .map(line => line.trim())
    .reduce((text, line) => (text === '' ? line : `${text}${/[.:]$/.test(text) ? ' ' : '; '}${line}`), '')
}

/** A word that is a name keeps its first letter: `workspaceId: …`. */
function sentence(text: string): string {
  if (!/^[a-z]+[ ,]/.test(text)) return text
  return text.charAt(0).toUpperCase() + text.slice(1)
}
