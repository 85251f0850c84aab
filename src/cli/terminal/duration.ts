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
/** Maximum duration: 1,000 years, so that the year of the resulting date has four digits. */
const durationMaxMs = 1_000 * 365 * day
const durationPattern = /^(\d{1,6})(s|m|min|h|d|w|y)$/
const datePattern = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/i

/** Returns the milliseconds of a duration such as `90d`; undefined for other text. */
function parseDurationMs(text: string): number | undefined {
  const match = durationPattern.exec(text)
  const ms = match ? Number(match[1]) * unitMs[match[2]!]! : Number.NaN
  return ms <= durationMaxMs ? ms : undefined
}

/**
 * Returns the milliseconds since 1970 of a date or date-time; undefined for other text. A date starts at
 * midnight UTC.
 */
function parseDateMs(text: string): number | undefined {
  const match = datePattern.exec(text)
  if (!match) return undefined
  const [dayMs, ms] = [Date.parse(match[1]!), Date.parse(text.toUpperCase())]
  // Date.parse accepts 31 February as 3 March.
  const isExistingDay = !Number.isNaN(dayMs) && new Date(dayMs).toISOString().startsWith(match[1]!)
  return isExistingDay && !Number.isNaN(ms) ? ms : undefined
}

/**
 * Parses a future time: a duration from now, or a date.
 *
 * @param flag  name of the flag, for messages
 * @returns time in ISO 8601, UTC
 * @throws UsageError  it is neither, or in the past
 */
export function parseFutureTime(flag: string, text: string, nowMs: number): string {
  const durationMs = parseDurationMs(text)
  const ms = durationMs === undefined ? parseDateMs(text) : nowMs + durationMs
  if (ms === undefined)
    throw new UsageError(`${flag} is "${text}", which is neither a duration nor a date`, [
      `${flag} 90d`,
      `${flag} 2030-01-31`,
    ])
  if (ms <= nowMs) throw new UsageError(`${flag} ${text} is in the past`, [`${flag} 90d`])
  return new Date(ms).toISOString()
}

/**
 * Parses a past time: a duration before now, or a date.
 *
 * @param flag  name of the flag, for messages
 * @returns time in ISO 8601, UTC
 * @throws UsageError  it is neither
 */
export function parsePastTime(flag: string, text: string, nowMs: number): string {
  const durationMs = parseDurationMs(text)
  const ms = durationMs === undefined ? parseDateMs(text) : nowMs - durationMs
  if (ms === undefined)
    throw new UsageError(`${flag} is "${text}", which is neither a duration nor a date`, [
      `${flag} 1h`,
      `${flag} 2026-01-31`,
    ])
  return new Date(ms).toISOString()
}

/**
 * Parses a duration, and returns seconds. `0` needs no unit.
 *
 * @param flag      name of the flag, for messages
 * @param examples  values of the flag to suggest
 * @throws UsageError  it is not a duration, or exceeds the maximum
 */
export function parseDurationSeconds(
  flag: string,
  text: string,
  maxSeconds: number,
  examples: readonly string[] = ['24h', '0'],
): number {
  const ms = text === '0' ? 0 : parseDurationMs(text)
  if (ms === undefined)
    throw new UsageError(
      `${flag} is "${text}", which is not a duration`,
      examples.map(example => `${flag} ${example}`),
    )
  const seconds = ms / second
  if (seconds > maxSeconds)
    throw new UsageError(`${flag} ${text} is longer than the maximum of ${maxSeconds / (day / second)} days`)
  return seconds
}

/** Units for durations below a limit. */
const unitSteps: [unitMs: number, name: string, belowMs: number][] = [
  [second, 's', minute],
  [minute, 'min', hour],
  [hour, 'h', day],
  [day, 'd', 30 * day],
]

/** Formats a past time as "3 min ago", or as a date if it is 30 or more days ago. */
export function formatAgo(thenMs: number, nowMs: number): string {
  if (Number.isNaN(thenMs)) return '–'
  const passedMs = nowMs - thenMs
  if (passedMs < second) return 'now'
  const duration = formatDuration(passedMs)
  return duration === undefined ? formatDate(thenMs) : `${duration} ago`
}

/**
 * Formats a future time as "in 3 min", or as a date if it is 30 or more days away. Formats a past time like
 * {@link formatAgo}.
 */
export function formatDue(thenMs: number, nowMs: number): string {
  const remainingMs = thenMs - nowMs
  if (Number.isNaN(thenMs) || remainingMs < second) return formatAgo(thenMs, nowMs)
  const duration = formatDuration(remainingMs)
  return duration === undefined ? formatDate(thenMs) : `in ${duration}`
}

/**
 * Formats an expiration so that it can follow "works": `for 3 h`, or `until 2030-01-31` if it is 30 or more
 * days away.
 *
 * @param end  time in ISO 8601; null if there is no expiration
 */
export function formatLifetime(end: string | null, nowMs: number): string {
  if (end === null) return 'until it is revoked'
  const thenMs = Date.parse(end)
  const remainingMs = thenMs - nowMs
  // Rounded up, so that an expiration of one hour that was set a moment ago is shown as one hour.
  const stepMs = remainingMs > minute ? minute : second
  const duration = remainingMs > 0 ? formatDuration(Math.ceil(remainingMs / stepMs) * stepMs) : undefined
  return duration === undefined ? `until ${formatDate(thenMs)}` : `for ${duration}`
}

/** Formats the time of day, for lines that stay on the screen, where a relative time would become outdated. */
export function formatTimeOfDay(iso: string): string {
  return new Date(iso).toLocaleTimeString('en-GB')
}

/** Returns undefined for 30 days or more. */
function formatDuration(ms: number): string | undefined {
  const step = unitSteps.find(([, , belowMs]) => ms < belowMs)
  return step && `${Math.floor(ms / step[0])} ${step[1]}`
}

/** Formats a date in UTC. */
export function formatDate(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
