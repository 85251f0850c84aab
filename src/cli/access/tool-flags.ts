import * as Flags from '@oclif/core/flags'
import type { Clock } from '../../base/clock.ts'
import { parsePastTime } from '../terminal/duration.ts'

/** `--at` flag of commands that answer for a past time. */
export const atFlag = Flags.string({
  summary: 'past time to answer for: 1h, 7d, 2026-01-31 [now]',
  helpValue: 'WHEN',
})

/** Converts `--at` to a timestamp. @throws UsageError  it is neither a duration nor a date */
export function parseAt(at: string | undefined, clock: Clock): string | undefined {
  return at === undefined ? undefined : parsePastTime('--at', at, clock.now())
}
