import type { Clock } from '../../base/clock.ts'
import { hostFacts } from '../../base/host-facts.ts'
import { count } from '../terminal/output.ts'
import { type Finding, failed, ok, skipped, warning } from './check.ts'

/** Providers usually accept tokens that are off by 30 seconds. At two minutes, many sign-ins fail. */
const warnedMs = 30_000
const failedMs = 120_000
/** HTTP dates have a precision of one second. @see RFC 9110 section 5.6.7 */
const datePrecisionMs = 1_000

const settings: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'sudo sntp -sS time.apple.com',
  linux: 'sudo timedatectl set-ntp true',
  win32: 'w32tm /resync',
}

/** Difference between another clock and the local one. */
export interface ClockSkew {
  /** Positive if the other clock is ahead. */
  readonly ms: number
  /** Maximum error in both directions: half of the response time plus half of the date's precision. */
  readonly uncertainMs: number
}

/**
 * Compares the local clock with the clock of a server.
 *
 * @param ask  resolves to the `Date` header of a response
 * @returns undefined if the response has no date
 */
export async function measureClockSkew(
  clock: Clock,
  ask: () => Promise<string | null>,
): Promise<ClockSkew | undefined> {
  const sentAt = clock.now()
  const date = Date.parse((await ask()) ?? '')
  const tookMs = clock.now() - sentAt
  if (Number.isNaN(date)) return undefined
  return {
    ms: date + datePrecisionMs / 2 - (sentAt + tookMs / 2),
    uncertainMs: (tookMs + datePrecisionMs) / 2,
  }
}

/** @param whose  owner of the other clock: "the runtime" */
export function clockSkewFinding(skew: ClockSkew | undefined, whose: string): Finding {
  if (!skew) return skipped(`${whose} sends no time`)
  const leastMs = Math.abs(skew.ms) - skew.uncertainMs
  const mostMs = Math.abs(skew.ms) + skew.uncertainMs
  if (leastMs <= warnedMs) return ok(`within ${seconds(mostMs)} of ${whose}`)
  const detail = `this machine is ${seconds(Math.abs(skew.ms))} ${skew.ms > 0 ? 'behind' : 'ahead of'} ${whose}; set the clock that is wrong`
  return (leastMs > failedMs ? failed : warning)(detail, settings[hostFacts.platform])
}

function seconds(ms: number): string {
  return `${count(Math.ceil(ms / 1_000))} s`
}
