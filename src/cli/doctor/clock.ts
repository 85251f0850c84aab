import type { Clock } from '../../base/clock.ts'
import { hostFacts } from '../../base/host-facts.ts'
import { formatCount } from '../terminal/output.ts'
import { type Finding, failed, ok, skipped, warning } from './check.ts'

/** Identity providers usually tolerate a clock skew of 30 seconds. With a skew of two minutes, many sign-ins fail. */
const warningSkewMs = 30_000
const failureSkewMs = 120_000
/** Precision of HTTP dates. @see RFC 9110 section 5.6.7 */
const datePrecisionMs = 1_000

const clockCommands: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'sudo sntp -sS time.apple.com',
  linux: 'sudo timedatectl set-ntp true',
  win32: 'w32tm /resync',
}

/** Difference between another clock and the local one. */
export interface ClockSkew {
  /** Positive if the other clock is ahead. */
  readonly ms: number
  /** Maximum error in both directions: half of the response time plus half of the date's precision. */
  readonly uncertaintyMs: number
}

/**
 * Compares the local clock with the clock of a server.
 *
 * @param fetchDate  resolves to the `Date` header of a response
 * @returns undefined if the response has no date
 */
export async function measureClockSkew(
  clock: Clock,
  fetchDate: () => Promise<string | null>,
): Promise<ClockSkew | undefined> {
  const sentAt = clock.now()
  const date = Date.parse((await fetchDate()) ?? '')
  const elapsedMs = clock.now() - sentAt
  if (Number.isNaN(date)) return undefined
  return {
    ms: date + datePrecisionMs / 2 - (sentAt + elapsedMs / 2),
    uncertaintyMs: (elapsedMs + datePrecisionMs) / 2,
  }
}

/** @param owner  owner of the other clock: "the runtime" */
export function clockSkewFinding(skew: ClockSkew | undefined, owner: string): Finding {
  if (!skew) return skipped(`${owner} does not send its time`)
  const minMs = Math.abs(skew.ms) - skew.uncertaintyMs
  const maxMs = Math.abs(skew.ms) + skew.uncertaintyMs
  if (minMs <= warningSkewMs) return ok(`within ${formatSeconds(maxMs)} of ${owner}`)
  const detail = `this machine is ${formatSeconds(Math.abs(skew.ms))} ${skew.ms > 0 ? 'behind' : 'ahead of'} ${owner}; set the clock that is wrong`
  return (minMs > failureSkewMs ? failed : warning)(detail, clockCommands[hostFacts.platform])
}

function formatSeconds(ms: number): string {
  return `${formatCount(Math.ceil(ms / 1_000))} s`
}
