import { UsageError } from '../errors.ts'
import { findLocalServer } from '../local.ts'
import type { Profile } from '../settings/profile.ts'

/** Routes whose responses describe the process that sends them, not the data directory. */
const processReportPaths = ['/metrics', '/health/details', '/health/recent-errors']

/**
 * Rejects a request with `--as-operator` to one of the {@link processReportPaths} while a server uses the data
 * directory. The request would be processed in this process, so the response would not describe the server.
 *
 * @throws UsageError  the route describes a process, and a server is running
 * @see docs/security.md#rule-8
 */
export async function rejectProcessReport(
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
