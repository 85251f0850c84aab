import { shellWord } from '../../base/shell-word.ts'
import type { Announcement, Examined, ReadableTable } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { formatCounted } from '../terminal/output.ts'
import { type Check, type Finding, failed, findingFromError, ok, warning } from './check.ts'

/** Examines the store. A store that cannot be read is reported as a finding. */
export async function checkDataStore(
  { dataDir }: Pick<Profile, 'dataDir'>,
  server: Announcement | undefined,
  examining: Promise<Examined>,
): Promise<{ examined?: Examined; checks: Check[] }> {
  const named = (finding: Finding): Check => ({ name: 'store', ...finding })
  try {
    const examined = await examining
    return { examined, checks: storeFindings(examined, dataDir, server).map(named) }
  } catch (error) {
    return { checks: [named(findingFromError(error))] }
  }
}

/** Returns one finding for each problem. */
function storeFindings(examined: Examined, dataDir: string, server: Announcement | undefined): Finding[] {
  const wrong = examined.checks.filter(({ count }) => count > 0)
  if (wrong.length === 0) return [ok(describeStore(examined))]
  const faults = wrong.map(({ count, check, examples, mend = restoreCommand(dataDir, server) }) =>
    failed(`${count} ${check}: ${examples.join(', ')}`, mend),
  )
  return examined.readable ? [...faults, warning(describeRecoverable(examined.readable))] : faults
}

/** Lists the rows that can be recovered without a backup. */
function describeRecoverable(readable: readonly ReadableTable[]): string {
  const rowsOf = (tables: readonly ReadableTable[]) => tables.reduce((sum, { rows }) => sum + rows, 0)
  const [whole, cut] = [readable.filter(({ isWhole }) => isWhole), readable.filter(({ isWhole }) => !isWhole)]
  const parts = cut.map(({ table, rows }) => `${formatCounted(rows, 'row')} of ${table}`)
  const others = `all ${formatCounted(rowsOf(whole), 'row')} of ${cut.length > 0 ? 'the other' : 'its'} ${formatCounted(whole.length, 'table')}`
  return `recoverable: ${[...parts, others].join(', ')}; see "Damage" in docs/storage.md`
}

/** Describes the path and schema version of a store, and the number of checks. */
function describeStore({ path, schema, checks }: Examined): string {
  if (path === undefined) return 'in memory'
  if (!schema) return `${path}, not created yet`
  const isOld = schema.found !== schema.known ? `, upgraded to ${schema.known} when it is opened` : ''
  return `${path}, schema ${schema.found}${isOld}; ${formatCounted(checks.length, 'check')}`
}

/** Returns the command that restores a backup. @see docs/storage.md */
function restoreCommand(dataDir: string, server: Announcement | undefined): string {
  const [place, aside] = [shellWord(dataDir), shellWord(`${dataDir}.old`)]
  return `${server ? `kill ${server.pid}; ` : ''}mv ${place} ${aside} && cp -a BACKUP ${place}`
}
