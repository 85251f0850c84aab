import { expect, test } from 'vitest'
import {
  formatAgo,
  formatDue,
  formatLifetime,
  parseDurationSeconds,
  parseFutureTime,
  parsePastTime,
} from '../../src/cli/terminal/duration.ts'

const now = Date.parse('2026-06-15T12:00:00.000Z')
const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000]

test.each([
  ['45s', '2026-06-15T12:00:45.000Z'],
  ['5m', '2026-06-15T12:05:00.000Z'],
  ['5min', '2026-06-15T12:05:00.000Z'],
  ['2h', '2026-06-15T14:00:00.000Z'],
  ['1d', '2026-06-16T12:00:00.000Z'],
  ['2w', '2026-06-29T12:00:00.000Z'],
  ['1y', '2027-06-15T12:00:00.000Z'],
  ['2030-01-31', '2030-01-31T00:00:00.000Z'],
  ['2030-01-31T10:00z', '2030-01-31T10:00:00.000Z'],
  ['2030-01-31T10:00:05.5+02:00', '2030-01-31T08:00:05.500Z'],
])('reads the future time %s', (text, time) => {
  expect(parseFutureTime('--expires', text, now)).toBe(time)
})

test.each(['', 'soon', '5', '5x', '-5d', '1001y', '2030-02-30', '2030-13-01', '2030-01-31T25:00'])(
  'rejects the time "%s"',
  text => {
    const message = `--at is "${text}", which is neither a duration nor a date`
    expect(() => parseFutureTime('--at', text, now)).toThrow(message)
    expect(() => parsePastTime('--at', text, now)).toThrow(message)
  },
)

test('rejects a future time that is in the past, or now', () => {
  for (const text of ['2026-06-15', '2026-06-15T12:00:00Z', '0s'])
    expect(() => parseFutureTime('--expires', text, now)).toThrow(`--expires ${text} is in the past`)
  expect(parseFutureTime('--expires', '1000y', now)).toMatch(/^3025-/)
})

test.each([
  ['1h', '2026-06-15T11:00:00.000Z'],
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2026-01-31T10:00:00-01:00', '2026-01-31T11:00:00.000Z'],
])('reads the past time %s', (text, time) => {
  expect(parsePastTime('--since', text, now)).toBe(time)
})

test('reads a duration in seconds, up to a maximum in days', () => {
  expect(parseDurationSeconds('--grace', '0', 0)).toBe(0)
  expect(parseDurationSeconds('--grace', '24h', 86_400)).toBe(86_400)
  expect(() => parseDurationSeconds('--grace', '8d', 7 * 86_400)).toThrow(
    '--grace 8d is longer than the maximum of 7 days',
  )
  expect(() => parseDurationSeconds('--grace', '2030-01-31', 1)).toThrow('which is not a duration')
})

test.each([
  [0, 'now', 'now'],
  [second - 1, 'now', 'now'],
  [second, '1 s ago', 'in 1 s'],
  [minute - 1, '59 s ago', 'in 59 s'],
  [minute, '1 min ago', 'in 1 min'],
  [hour - 1, '59 min ago', 'in 59 min'],
  [hour, '1 h ago', 'in 1 h'],
  [day - 1, '23 h ago', 'in 23 h'],
  [day, '1 d ago', 'in 1 d'],
  [30 * day - 1, '29 d ago', 'in 29 d'],
  [30 * day, '2026-05-16', '2026-07-15'],
])('formats a time %i ms away', (ms, ago, due) => {
  expect(formatAgo(now - ms, now)).toBe(ago)
  expect(formatDue(now + ms, now)).toBe(due)
})

test('formats a time in the other direction, and an invalid one', () => {
  expect(formatAgo(now + hour, now)).toBe('now')
  expect(formatDue(now - hour, now)).toBe('1 h ago')
  expect(formatAgo(Number.NaN, now)).toBe('–')
  expect(formatDue(Number.NaN, now)).toBe('–')
})

test.each([
  [null, 'until it is revoked'],
  [hour - 20, 'for 1 h'],
  [minute + 1, 'for 2 min'],
  [minute, 'for 1 min'],
  [1_500, 'for 2 s'],
  [29 * day, 'for 29 d'],
  [30 * day, 'until 2026-07-15'],
  [0, 'until 2026-06-15'],
  [-day, 'until 2026-06-14'],
])('formats the lifetime of what ends in %s ms', (ms, expected) => {
  const end = ms === null ? null : new Date(now + ms).toISOString()
  expect(formatLifetime(end, now)).toBe(expected)
})
