import { expect, it } from 'vitest'
import { formatElapsed } from '../../src/cli/ingest/summary.ts'

it.each([
  [0, '0.0 s'],
  [2_140, '2.1 s'],
  [59_949, '59.9 s'],
  [59_950, '1 min 0 s'],
  [119_600, '2 min 0 s'],
  [192_000, '3 min 12 s'],
])('formats %d ms as %s', (elapsedMs, text) => {
  expect(formatElapsed(elapsedMs)).toBe(text)
})
