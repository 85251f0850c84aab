import * as Flags from '@oclif/core/flags'
import type { Clock } from '../../base/clock.ts'
import { auditActions } from '../../contract/audit-record.ts'
import { parsePastTime } from '../terminal/duration.ts'

/** Flags that filter audit records. */
export const auditFlags = {
  since: Flags.string({ summary: 'only records since then: 1h, 7d, 2026-01-31', helpValue: 'WHEN' }),
  action: Flags.option({
    options: auditActions,
    summary: 'only records of this action',
    helpValue: 'ACTION',
  })(),
  all: Flags.boolean({ summary: 'records of the whole runtime, not of one workspace' }),
}

/** Converts the flags to a query of the API. @throws UsageError  `--since` is neither a duration nor a date */
export function auditQuery(
  { since, action }: { since?: string; action?: (typeof auditActions)[number] },
  clock: Clock,
) {
  return { since: since && parsePastTime('--since', since, clock.now()), action }
}
