import { plainLine } from '../terminal/terminal-text.ts'

/** Formats a log line for a terminal: a failed request as a sentence. Other lines are not changed. */
export function formatLogLine(line: string): string {
  const { level, msg, method, route, status, reason, code, requestId } = parseLogFields(line)
  if (level !== 'warn' || msg !== 'request') return line.trimEnd()
  const text = `${method} ${route} failed with ${status}: ${reason ?? code} (request ${requestId})`
  return `  ! ${plainLine(text)}`
}

/** Parses a line as a JSON object. Returns an empty object if it is not one. */
function parseLogFields(line: string): Record<string, unknown> {
  try {
    return { ...(JSON.parse(line) as Record<string, unknown> | null) }
  } catch {
    return {}
  }
}
