import type { Clock } from '../../base/clock.ts'
import { host } from '../../base/host.ts'
import { count } from '../terminal/output.ts'
import { type Finding, failed, ok, skipped, warning } from './check.ts'

/** Tokens bear half a minute, as a rule; two minutes end many a sign-in. */
const warnedMs = 30_000
const failedMs = 120_000
/** An HTTP date is cut to the second. @see RFC 9110 section 5.6.7 */
const datePrecisionMs = 1_000

const settings: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'sudo sntp -sS time.apple.com',
  linux: 'sudo timedatectl set-ntp true',
  win32: 'w32tm /resync',
}

/** How far another clock is from this one, as an answer tells. */
export interface Skew {
  /** Above 0 where the other is ahead. */
  readonly ms: number
  /** It may be as much more or less: half of the time that the answer took, and of what a date leaves out. */
  readonly uncertainMs: number
}

/**
 * Compare this clock with the one of whoever answers.
 *
 * @param ask  resolves to the `Date` of an answer
 * @returns undefined where the answer had none
 */
export async function skewTo(clock: Clock, ask: () => Promise<string | null>): Promise<Skew | undefined> {
  const sentAt = clock.now()
  const date = Date.parse((await ask()) ?? '')
  const tookMs = clock.now() - sentAt
  if (Number.isNaN(date)) return undefined
  return {
    ms: date + datePrecisionMs / 2 - (sentAt + tookMs / 2),
    uncertainMs: (tookMs + datePrecisionMs) / 2,
  }
}

/** @param whose  has the other clock: "the runtime" */
export function skewFound(skew: Skew | undefined, whose: string): Finding {
  if (!skew) return skipped(`${whose} says no time`)
  const leastMs = Math.abs(skew.ms) - skew.uncertainMs
  const mostMs = Math.abs(skew.ms) + skew.uncertainMs
  if (leastMs <= warnedMs) return ok(`within ${seconds(mostMs)} of ${whose}`)
  const detail = `this machine is ${seconds(Math.abs(skew.ms))} ${skew.ms > 0 ? 'behind' : 'ahead of'} ${whose}; set the clock that is wrong`
  return (leastMs > failedMs ? failed : warning)(detail, settings[host.platform])
}

function seconds(ms: number): string {
  return `${count(Math.ceil(ms / 1_000))} s`
}
