import type { Clock } from '../../base/clock.ts'
import { redact } from '../../base/redact.ts'
import type { Fetch, OutgoingRequest } from '../../client/fetch.ts'
import type { Retry } from '../../client/node/retry-options.ts'

/** Names of headers whose values are always redacted. */
const secretHeader = /cookie|auth|token|secret|key|passw|session/i
const redacted = '[redacted]'

/**
 * Logs each request with its response as one entry: request line, headers, and outcome. Only the size of a body is
 * logged, because bodies can contain secrets.
 */
export function withRequestLog(
  fetch: Fetch,
  write: (entry: string) => void,
  clock: Pick<Clock, 'now'>,
): Fetch {
  return async (url, outgoing) => {
    const startedMs = clock.now()
    const requestLines = [
      `> ${outgoing.method} ${redact(url)}${describeBody(outgoing.body)}`,
      ...headerLines('>', outgoing.headers),
    ]
    const log = (outcome: string, headers: readonly string[] = []) =>
      write([...requestLines, `< ${outcome} in ${clock.now() - startedMs} ms`, ...headers].join('\n'))
    try {
      const response = await fetch(url, outgoing)
      log(String(response.status), headerLines('<', Object.fromEntries(response.headers)))
      return response
    } catch (error) {
      log(redact(String((error as Error | undefined)?.message)))
      throw error
    }
  }
}

/** Formats a log entry for a retry. */
export function formatRetry({ reason, waitMs }: Retry): string {
  return `< ${reason}; retrying in ${waitMs} ms`
}

function describeBody(body: OutgoingRequest['body']): string {
  if (body === undefined) return ''
  return typeof body === 'string' ? ` (${Buffer.byteLength(body)} bytes)` : ' (a stream)'
}

function headerLines(direction: string, headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).map(
    ([name, value]) =>
      `${direction}   ${name}: ${secretHeader.test(name) ? redacted : redact(withoutQuery(name, value))}`,
  )
}

/** Removes the query and fragment of a redirect target, which can contain tokens of a sign-in. */
function withoutQuery(name: string, value: string): string {
  return /^(?:content-)?location$/i.test(name) ? value.replace(/([?#]).*$/s, `$1${redacted}`) : value
}
