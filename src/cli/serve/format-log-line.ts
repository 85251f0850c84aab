import { plainLine } from '../terminal/terminal-text.ts'

/** Formats a log line for a terminal: a failed request as a sentence, and any other line unchanged. */
export function formatLogLine(line: string): string {
  const { level, msg, method, route, status, reason, code, requestId } = fieldsOf(line)
  if (level !== 'warn' || msg !== 'request') return line.trimEnd()
  const text = `${method} ${route} failed with ${status}: ${reason ?? code} (request ${requestId})`
  return `  ! ${plainLine(text)}`
}

/** Returns the fields of a JSON object; empty for other text. */
function fieldsOf(line: string): Record<string, unknown> {
  try {
    return { ...(JSON.parse(line) as Record<string, unknown> | null) }
  } catch {
    return {}
  }
}
