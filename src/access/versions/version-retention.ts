import type { RowStore, Write } from '../../storage/rows.ts'
import { type AccessVersionRow, tables } from '../../storage/tables.ts'
import { RecordRetention, type RetentionDependencies } from '../record-retention.ts'
import { versionsStartSetting } from './access-history.ts'

/** Default maximum number of versions of a store, about 100 MB. */
const versionsMaxDefault = 100_000

export interface VersionRetentionDependencies extends RetentionDependencies {
  readonly retentionDays: number
  readonly versionsMax?: number
}

/** Returns the retention of access versions. It also stores the time since which the remaining versions are complete. */
export function openVersionRetention(deps: VersionRetentionDependencies): RecordRetention<AccessVersionRow> {
  const { rows, retentionDays, versionsMax = versionsMaxDefault } = deps
  return new RecordRetention(deps, {
    table: tables.accessVersions,
    retentionDays,
    limits: [{ list: { index: 'byTime', prefix: [] }, max: versionsMax }],
    onDelete: async ({ until }) => [await startWrite(rows, until)],
    failureWarning: 'old access versions could not be deleted',
  })
}

async function startWrite(rows: RowStore, value: string): Promise<Write> {
  const stored = await rows.get(tables.settings, [versionsStartSetting])
  const row = { name: versionsStartSetting, value }
  return { op: stored ? 'replace' : 'insert', table: tables.settings, row }
}
