import { UsageError } from '../errors.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const unitMs: Readonly<Record<string, number>> = {
  s: second,
  m: minute,
  min: minute,
  h: hour,
  d: day,
  w: 7 * day,
  y: 365 * day,
}
/** The result must be a date with a year of four digits. */
const spanMaxMs = 1_000 * 365 * day
const span = /^(\d{1,6})(s|m|min|h|d|w|y)$/
const date = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/i

/** The length of a span such as `90d` in milliseconds; undefined for what is none. */
function spanMs(text: string): number | undefined {
  const match = span.exec(text)
  const ms = match ? Number(match[1]) * unitMs[match[2]!]! : Number.NaN
  return ms <= spanMaxMs ? ms : undefined
}

/** Milliseconds since 1970 of a date or a date-time; a date begins at midnight UTC. */
function dateMs(text: string): number | undefined {
  const match = date.exec(text)
  if (!match) return undefined
  const [dayMs, ms] = [Date.parse(match[1]!), Date.parse(text.toUpperCase())]
  // Date.parse takes 31 February for 3 March.
  const isDay = !Number.isNaN(dayMs) && new Date(dayMs).toISOString().startsWith(match[1]!)
  return isDay && !Number.isNaN(ms) ? ms : undefined
}

/**
 * A moment that is still to come: a span from now, or a date.
 *
 * @param flag  what was typed before it
 * @returns ISO-8601 in UTC
 * @throws UsageError  it is neither, or has passed
 */
export function momentAhead(flag: string, text: string, nowMs: number): string {
  const length = spanMs(text)
  const ms = length === undefined ? dateMs(text) : nowMs + length
  if (ms === undefined)
    throw new UsageError(`${flag} is "${text}", which is neither a duration nor a date`, [
      `${flag} 90d`,
      `${flag} 2030-01-31`,
    ])
  if (ms <= nowMs) throw new UsageError(`${flag} ${text} is in the past`, [`${flag} 90d`])
  return new Date(ms).toISOString()
}

/**
 * A moment that has passed: a span ago, or a date.
 *
 * @param flag  what was typed before it
 * @returns ISO-8601 in UTC
 * @throws UsageError  it is neither
 */
export function momentPast(flag: string, text: string, nowMs: number): string {
  const length = spanMs(text)
  const ms = length === undefined ? dateMs(text) : nowMs - length
  if (ms === undefined)
    throw new UsageError(`${flag} is "${text}", which is neither a duration nor a date`, [
      `${flag} 1h`,
      `${flag} 2026-01-31`,
    ])
  return new Date(ms).toISOString()
}

/**
 * The length of a span, in seconds; `0` needs no unit.
 *
 * @param flag  what was typed before it
 * @throws UsageError  it is none, or longer than it may be
 */
export function spanSeconds(flag: string, text: string, maxSeconds: number): number {
  const ms = text === '0' ? 0 : spanMs(text)
  if (ms === undefined)
    throw new UsageError(`${flag} is "${text}", which is not a duration`, [`${flag} 24h`, `${flag} 0`])
  const seconds = ms / second
  if (seconds > maxSeconds)
    throw new UsageError(`${flag} ${text} is longer than the maximum of ${maxSeconds / (day / second)} days`)
  return seconds
}

const steps: [unitMs: number, name: string, untilMs: number][] = [
  [second, 's', minute],
  [minute, 'min', hour],
  [hour, 'h', day],
  [day, 'd', 30 * day],
]

/** How long ago: "3 min ago"; from 30 days on, the date. */
export function ago(thenMs: number, nowMs: number): string {
  if (Number.isNaN(thenMs)) return '–'
  const passedMs = nowMs - thenMs
  if (passedMs < second) return 'now'
  const length = spanOf(passedMs)
  return length === undefined ? dayOf(thenMs) : `${length} ago`
}

/** How long until then: "in 3 min"; from 30 days on, the date. What has passed is told as `ago` does. */
export function due(thenMs: number, nowMs: number): string {
  const leftMs = thenMs - nowMs
  if (Number.isNaN(thenMs) || leftMs < second) return ago(thenMs, nowMs)
  const length = spanOf(leftMs)
  return length === undefined ? dayOf(thenMs) : `in ${length}`
}

/**
 * For how long something goes on, in words that follow "works": `for 3 h`; from 30 days on `until` and the date.
 *
 * @param end  ISO-8601; null where nothing ends it but somebody who revokes it
 */
export function lasting(end: string | null, nowMs: number): string {
  if (end === null) return 'until it is revoked'
  const thenMs = Date.parse(end)
  const leftMs = thenMs - nowMs
  // What was given an hour a moment ago has an hour.
  const stepMs = leftMs > minute ? minute : second
  const length = leftMs > 0 ? spanOf(Math.ceil(leftMs / stepMs) * stepMs) : undefined
  return length === undefined ? `until ${dayOf(thenMs)}` : `for ${length}`
}

/** The hour, minute and second of a line that stays while time goes on. */
export function clockTime(iso: string): string {
  return new Date(iso).toLocaleTimeString('en-GB')
}

function spanOf(ms: number): string | undefined {
  const step = steps.find(([, , untilMs]) => ms < untilMs)
  return step && `${Math.floor(ms / step[0])} ${step[1]}`
}

/** The date, in UTC. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
