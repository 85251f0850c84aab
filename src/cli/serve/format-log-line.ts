import { plainLine } from '../terminal/terminal-text.ts'

/**
 * Formats a log line for a terminal. Requests that failed because of a dependency are explained; other lines
 * are unchanged.
 */
export function formatLogLine(line: string): string {
  const { level, msg, method, route, status, reason, code, requestId } = fieldsOf(line)
  if (level !== 'warn' || msg !== 'request') return line.trimEnd()
  const text = `${method} ${route} failed with ${status}: ${reason ?? code} (request ${requestId})`
  return `  ! ${plainLine(text)}`
}

function fieldsOf(line: string): Record<string, unknown> {
  try {
    return { ...(JSON.parse(line) as Record<string, unknown> | null) }
  } catch {
    return {}
  }
}
