import { parseJson } from '../../base/parse-json.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Formats a log line for a terminal: a failed request as a sentence. Other lines are not changed. */
export function formatLogLine(line: string): string {
  const { level, msg, method, route, status, reason, code, requestId } = {
    ...(parseJson(line) as Record<string, unknown> | null | undefined),
  }
  if (level !== 'warn' || msg !== 'request') return line.trimEnd()
  const text = `${method} ${route} failed with ${status}: ${reason ?? code} (request ${requestId})`
  return `  ! ${plainLine(text)}`
}
