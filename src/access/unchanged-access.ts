import { type RowStore, revisionOf, type Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { Caller } from './caller.ts'
import { workspaceNotFound } from './require-workspace.ts'
import { principalIdOf } from './subject.ts'

/**
 * Returns writes that fail if the workspace or the principal of a caller has changed since this call. Call it before the
 * decision that the transaction depends on. The decision also depends on the policy: check the revision of the knowledge base.
 *
 * @throws workspace_not_found
 */
export async function unchangedAccess(
  rows: RowStore,
  workspaceId: string,
  { auth }: Pick<Caller, 'auth'>,
): Promise<Write[]> {
  const workspace = await rows.get(tables.workspaces, [workspaceId])
  if (!workspace) throw workspaceNotFound(workspaceId)
  const checks: Write[] = [
    { op: 'require', table: tables.workspaces, key: [workspaceId], ...revisionOf(workspace) },
  ]
  const principalId = principalIdOf(auth)
  if (principalId === null) return checks
  const key = [workspaceId, principalId]
  const principal = await rows.get(tables.principals, key)
  return [
    ...checks,
    principal
      ? { op: 'require', table: tables.principals, key, ...revisionOf(principal) }
      : { op: 'requireNone', table: tables.principals, index: 'byWorkspace', prefix: key },
  ]
}
