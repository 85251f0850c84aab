import { plainLine } from '../terminal/terminal-text.ts'

/** A line of the log as a person reads it: a request that a dependency failed is told in words, all else as it is. */
export function logLine(line: string): string {
  const { level, msg, method, route, status, reason, code, requestId } = fieldsOf(line)
  if (level !== 'warn' || msg !== 'request') return line.trimEnd()
  const told = `${method} ${route} was refused with ${status}: ${reason ?? code} (request ${requestId})`
  return `  ! ${plainLine(told)}`
}

function fieldsOf(line: string): Record<string, unknown> {
  try {
    return { ...(JSON.parse(line) as Record<string, unknown> | null) }
  } catch {
    return {}
  }
}
