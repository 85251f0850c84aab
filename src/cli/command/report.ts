import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { KeychainUnavailable } from '../../keychain/keychain.ts'
import { CommandFailed, Interrupted, UsageError } from '../errors.ts'
import type { Style } from '../terminal/style.ts'
import { plain, plainJson, plainLine } from '../terminal/terminal-text.ts'
import { isParseError } from './exit.ts'
import { parseMessage } from './parse-error.ts'
import { explainSqliteError } from './sqlite-error.ts'

/** An error as it is shown to the user. */
export interface Report {
  /** Category of the error; used as the code in JSON output if there is no error code. */
  kind: 'rejected' | 'unreachable' | 'keychain' | 'usage' | 'interrupted' | 'failed' | 'defect'
  message: string
  code?: string
  requestId?: string
  /** Suggestions for the user. */
  next: string[]
}

/** Converts an error to a report. Errors of unknown types are reported as defects. */
export function toReport(error: unknown): Report {
  if (error instanceof WbError) return reportWbError(error)
  if (error instanceof Unreachable)
    return { kind: 'unreachable', message: error.message, next: [error.hint, ...(error.next ?? [])] }
  if (error instanceof KeychainUnavailable)
    return { kind: 'keychain', message: error.message, next: [error.hint, noKeychainHint] }
  if (error instanceof UsageError)
    return { kind: 'usage', message: parseMessage(error), next: [...error.next] }
  if (error instanceof Interrupted) return { kind: 'interrupted', message: error.message, next: [] }
  if (error instanceof CommandFailed) return { kind: 'failed', message: error.message, next: [...error.next] }
  if (isParseError(error)) return { kind: 'usage', message: parseMessage(error), next: [] }
  const sqliteProblem = explainSqliteError(error)
  if (sqliteProblem) return { kind: 'failed', ...sqliteProblem }
  const message = error instanceof Error ? error.message : String(error)
  return { kind: 'defect', message: `unexpected error: ${message}`, next: [bugHint] }
}

export const bugHint = 'This is a bug in wb. Run the command again with --debug for details.'

const noKeychainHint =
  'To work without a keychain, set WB_API_KEY=…, or store the login in a file that only you can read:'

/** Commands to suggest for error codes whose API hint does not contain a command. */
const commandsByErrorCode: Readonly<Record<string, readonly string[]>> = {
  agent_tool_unresolved: ['wb agents tools'],
  job_not_found: ['wb jobs list'],
}

/** Replaces HTTP requests in a hint with `wb api` commands. */
function toCommands(hint: string): string {
  return hint.replace('send POST /', 'run wb api POST /').replace('. GET /', '. wb api GET /')
}

function reportWbError(error: WbError): Report {
  const { requestId, wireCode, wireStatus, next } = error.facts
  const code = typeof wireCode === 'string' ? wireCode : error.code
  const lines = Array.isArray(next)
    ? next.map(String)
    : [toCommands(error.hint), ...(commandsByErrorCode[code] ?? [])]
  // Print a message from the runtime on one line, because a second line would look like a suggestion from wb.
  const message = wireStatus === undefined ? error.message : plainLine(error.message)
  return { kind: 'rejected', message, code, requestId, next: lines }
}

/** Returns the lines of a report for a terminal. */
export function reportLines(report: Report, style: Style): string[] {
  const details = [report.code, report.requestId && `request ${report.requestId}`].filter(Boolean).join(', ')
  const message = capitalizeMessage(plain(report.message))
  const [first = '', ...otherLines] = message.split('\n')
  return [
    `  ${style.bad('✗')} ${first}${details ? style.dim(` (${plainLine(details)})`) : ''}`,
    ...otherLines.map(line => `    ${line}`),
    ...report.next.map(line => `    ${plain(line).replaceAll('\n', ' ')}`),
  ]
}

/** Returns a report as JSON, in the error envelope of the API. */
export function reportJson({ kind, message, code = kind, requestId, next }: Report): string {
  return plainJson({ error: { code, message, requestId, hint: joinSentences(next) } })
}

/** Joins lines with `; `, or with a space after a period or colon. */
function joinSentences(lines: readonly string[]): string {
  return lines
    .map(line => line.trim())
    .reduce((text, line) => (text === '' ? line : `${text}${/[.:]$/.test(text) ? ' ' : '; '}${line}`), '')
}

/** Capitalizes the first letter, except of identifiers: `workspaceId: …`. */
function capitalizeMessage(text: string): string {
  if (!/^[a-z]+[ ,]/.test(text)) return text
  return text.charAt(0).toUpperCase() + text.slice(1)
}
