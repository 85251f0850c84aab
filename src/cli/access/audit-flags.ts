import * as Flags from '@oclif/core/flags'
import type { Clock } from '../../base/clock.ts'
import { auditActions } from '../../contract/audit-record.ts'
import { momentPast } from '../terminal/moment.ts'

/** Which records are meant, of those that a caller may see. */
export const auditFlags = {
  since: Flags.string({ summary: 'only records since then: 1h, 7d, 2026-01-31', helpValue: 'WHEN' }),
  action: Flags.option({
    options: auditActions,
    summary: 'only records of this action',
    helpValue: 'ACTION',
  })(),
  all: Flags.boolean({ summary: 'records of the whole runtime, not of one workspace' }),
}

/** The same as the API asks for it. */
export function auditQuery(
  { since, action }: { since?: string; action?: (typeof auditActions)[number] },
  clock: Clock,
) {
  return { since: since && momentPast('--since', since, clock.now()), action }
}
