import * as Flags from '@oclif/core/flags'
import type { Clock } from '../../base/clock.ts'
import { auditActions } from '../../contract/audit-record.ts'
import { parsePastTime } from '../terminal/duration.ts'

/** Flags that filter audit records. */
export const auditFlags = {
  since: Flags.string({
    summary: 'show only records since this time: 1h, 7d, 2026-01-31',
    helpValue: 'WHEN',
  }),
  action: Flags.option({
    options: auditActions,
    summary: 'show only records of this action',
    helpValue: 'ACTION',
  })(),
  all: Flags.boolean({ summary: 'show records of the whole runtime, not just one workspace' }),
}

/** Converts the flags to an API query. @throws UsageError  `--since` is neither a duration nor a date */
export function auditQuery(
  { since, action }: { since?: string; action?: (typeof auditActions)[number] },
  clock: Clock,
) {
  return { since: since && parsePastTime('--since', since, clock.now()), action }
}
