import { UsageError } from '../errors.ts'
import { findLocalServer } from '../local.ts'
import type { Profile } from '../settings/profile.ts'

/** Routes whose answers describe the process that sends them, not the data directory. */
const processReportPaths = ['/metrics', '/health/details', '/health/recent-errors']

/**
 * Refuses such a route with `--as-operator` if a server runs on the data directory. The operator's requests never leave
 * this process, so they would be answered with the counts of this process, not with those of the server.
 *
 * @throws UsageError  a server runs
 * @see docs/security.md#rule-8
 */
export async function refuseProcessReport(
  path: string,
  { asOperator, dataDir }: Pick<Profile, 'asOperator' | 'dataDir'>,
): Promise<void> {
  if (!asOperator || !processReportPaths.includes(path.split('?')[0]!)) return
  const server = await findLocalServer(dataDir)
  if (!server) return
  throw new UsageError(
    `--as-operator runs in this process and cannot read ${path} of the server at ${server.url}`,
    [
      'leave out --as-operator to query the server',
      'if the server requires a credential, set WB_API_KEY to its bootstrap token',
    ],
  )
}
