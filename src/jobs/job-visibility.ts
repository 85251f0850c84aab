import type { Caller } from '../access/caller.ts'
import { documentMatcher } from '../access/policy/document-fields.ts'
import type { Job } from '../contract/jobs.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/**
 * Returns true if a caller may see a job: if it may see the document of the job. A caller who may not see all rows cannot
 * see jobs whose document no longer exists.
 *
 * @throws policy_principal_required  row-level access is on, and the caller is no principal
 */
export async function isJobVisible(
  rows: RowStore,
  { workspaceId, knowledgeBaseId, documentId }: Job,
  caller: Pick<Caller, 'rowAccess'>,
): Promise<boolean> {
  const access = await caller.rowAccess(workspaceId)
  if (!access.isEnabled) return true
  const [base, document] = await Promise.all([
    rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId]),
    rows.get(tables.documents, [workspaceId, knowledgeBaseId, documentId]),
  ])
  if (!base) return false
  const visibility = access.visibility(base.row)
  if (!visibility.filter) return true
  return document !== undefined && documentMatcher(visibility)(document.row)
}
