import { shellWord } from '../../base/shell-word.ts'
import type { Announcement, DataDirReport, ReadableTable } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { formatCounted } from '../terminal/output.ts'
import { type Check, type Finding, failed, findingFromError, ok, warning } from './check.ts'

/** Converts the report about the data directory to checks. If the report fails, returns one failed check. */
export async function checkDataStore(
  { dataDir }: Pick<Profile, 'dataDir'>,
  server: Announcement | undefined,
  pendingReport: Promise<DataDirReport>,
): Promise<{ storeReport?: DataDirReport; checks: Check[] }> {
  const toCheck = (finding: Finding): Check => ({ name: 'store', ...finding })
  try {
    const storeReport = await pendingReport
    return { storeReport, checks: storeFindings(storeReport, dataDir, server).map(toCheck) }
  } catch (error) {
    return { checks: [toCheck(findingFromError(error))] }
  }
}

/** Returns one finding for each problem, or a finding that there are none. */
function storeFindings(
  storeReport: DataDirReport,
  dataDir: string,
  server: Announcement | undefined,
): Finding[] {
  const failedChecks = storeReport.checks.filter(({ count }) => count > 0)
  if (failedChecks.length === 0) return [ok(describeStore(storeReport))]
  const faults = failedChecks.map(({ count, check, examples, fix = restoreCommand(dataDir, server) }) =>
    failed(`${count} ${check}: ${examples.join(', ')}`, fix),
  )
  return storeReport.readable ? [...faults, warning(describeRecoverable(storeReport.readable))] : faults
}

/** Lists the rows that can be recovered without a backup. */
function describeRecoverable(readable: readonly ReadableTable[]): string {
  const rowsOf = (tables: readonly ReadableTable[]) => tables.reduce((sum, { rows }) => sum + rows, 0)
  const [whole, partial] = [
    readable.filter(({ isComplete }) => isComplete),
    readable.filter(({ isComplete }) => !isComplete),
  ]
  const parts = partial.map(({ table, rows }) => `${formatCounted(rows, 'row')} of ${table}`)
  const others = `all ${formatCounted(rowsOf(whole), 'row')} of ${partial.length > 0 ? 'the other' : 'its'} ${formatCounted(whole.length, 'table')}`
  return `recoverable: ${[...parts, others].join(', ')}; see "Damage" in docs/storage.md`
}

/** Describes a store: its path, its schema version, and the number of checks. */
function describeStore({ path, schema, checks }: DataDirReport): string {
  if (path === undefined) return 'in memory'
  if (!schema) return `${path}, not created yet`
  const upgradeNote = schema.found !== schema.known ? `, upgraded to ${schema.known} when it is opened` : ''
  return `${path}, schema ${schema.found}${upgradeNote}; ${formatCounted(checks.length, 'check')}`
}

/** Returns the command that restores a backup. @see docs/storage.md */
function restoreCommand(dataDir: string, server: Announcement | undefined): string {
  const [folder, oldFolder] = [shellWord(dataDir), shellWord(`${dataDir}.old`)]
  return `${server ? `kill ${server.pid}; ` : ''}mv ${folder} ${oldFolder} && cp -a BACKUP ${folder}`
}
