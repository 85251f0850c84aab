import type { Announcement, Examined } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { counted } from '../terminal/output.ts'
import { shellWord } from '../terminal/shell-word.ts'
import { type Check, type Finding, failed, faultFound, ok } from './check.ts'

/** A look through the store; one that cannot be read is a finding. */
export async function lookThroughStore(
  { dataDir }: Pick<Profile, 'dataDir'>,
  server: Announcement | undefined,
  examining: Promise<Examined>,
): Promise<{ examined?: Examined; checks: Check[] }> {
  const named = (finding: Finding): Check => ({ name: 'store', ...finding })
  try {
    const examined = await examining
    return { examined, checks: storeFound(examined, dataDir, server).map(named) }
  } catch (error) {
    return { checks: [named(faultFound(error))] }
  }
}

/** What was found, a line for each thing that is wrong. */
function storeFound(examined: Examined, dataDir: string, server: Announcement | undefined): Finding[] {
  const wrong = examined.checks.filter(({ count }) => count > 0)
  if (wrong.length === 0) return [ok(storeState(examined))]
  return wrong.map(({ count, check, examples, mend = backToCopy(dataDir, server) }) =>
    failed(`${count} ${check}: ${examples.join(', ')}`, mend),
  )
}

/** Where a store lies, of which version it is, and how much was looked for. */
function storeState({ path, schema, checks }: Examined): string {
  if (path === undefined) return 'in memory'
  if (!schema) return `${path}, not made yet`
  const isOld = schema.found !== schema.known ? `; ${schema.known} once it is opened` : ''
  return `${path}, schema ${schema.found}${isOld}; ${counted(checks.length, 'check')}`
}

/** @see docs/storage.md */
function backToCopy(dataDir: string, server: Announcement | undefined): string {
  const [place, aside] = [shellWord(dataDir), shellWord(`${dataDir}.old`)]
  return `${server ? `kill ${server.pid}; ` : ''}mv ${place} ${aside} && cp -a BACKUP ${place}`
}
