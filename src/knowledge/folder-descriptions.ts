import type { Caller } from '../access/caller.ts'
import { documentMatcher } from '../access/policy/document-fields.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { compareCodePoints } from '../base/compare-code-points.ts'
import { WbError } from '../contract/errors.ts'
import { containsFile, type FolderDescription } from '../contract/folder-description.ts'
import { limits } from '../contract/limits.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { type KnowledgeBaseRow, tables } from '../storage/tables.ts'
import type { Visibility } from '../storage/visibility.ts'
import type { BaseKey } from './document-key.ts'
import { documentsIn } from './documents.ts'
import { concurrentChange } from './guards.ts'
import type { KnowledgeBases } from './knowledge-bases.ts'

interface FolderDescriptionsParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly bases: Pick<KnowledgeBases, 'get'>
}

/** Lists and changes the descriptions of the folders of knowledge bases. */
export class FolderDescriptions {
  constructor(private readonly parts: FolderDescriptionsParts) {}

  /**
   * Returns the descriptions of the folders in which the caller may see a document, sorted by path.
   *
   * @throws knowledge_base_not_found, policy_principal_required
   */
  async list(baseKey: BaseKey, caller: Pick<Caller, 'rowAccess'>): Promise<readonly FolderDescription[]> {
    const { bases, pager } = this.parts
    const base: KnowledgeBaseRow = await bases.get(baseKey.workspaceId, baseKey.knowledgeBaseId)
    const access = await caller.rowAccess(baseKey.workspaceId)
    return visibleFolders(pager, base, access.visibility(base, { action: 'list' }))
  }

  /**
   * Sets or removes the description of a folder, and returns all descriptions.
   *
   * @param change.description  null to remove the description
   * @throws knowledge_base_not_found, folder_not_described, folder_limit_exceeded, policy_principal_required
   * @throws forbidden  the caller may see only some rows, but a description affects all rows of the folder
   * @throws conflict   the knowledge base changed during every attempt
   */
  async update(
    { workspaceId, knowledgeBaseId }: BaseKey,
    { path, description }: { readonly path: string; readonly description: string | null },
    caller: Pick<Caller, 'rowAccess' | 'record'>,
  ): Promise<readonly FolderDescription[]> {
    const { rows, bases, clock } = this.parts
    const { name } = await bases.get(workspaceId, knowledgeBaseId)
    const access = await caller.rowAccess(workspaceId)
    const changed = await changeRow(
      rows,
      tables.knowledgeBases,
      [workspaceId, knowledgeBaseId],
      row => {
        if (access.visibility(row, { action: 'list' }).filter)
          throw new WbError('forbidden', 'a description affects documents that you cannot see')
        const others = (row.folders ?? []).filter(folder => folder.path !== path)
        if (description === null && others.length === (row.folders ?? []).length)
          throw new WbError('folder_not_described', `folder '${path}' has no description`)
        if (description !== null && others.length >= limits.describedFolders)
          throw new WbError(
            'folder_limit_exceeded',
            `a knowledge base can have ${limits.describedFolders} descriptions of folders`,
          )
        const folders = description === null ? others : [...others, { path, description }]
        folders.sort((a, b) => compareCodePoints(a.path, b.path))
        return { ...row, folders, updatedAt: timestamp(clock) }
      },
      () => [caller.record({ label: name })],
    )
    if ('row' in changed) return changed.row.folders ?? []
    await bases.get(workspaceId, knowledgeBaseId)
    throw concurrentChange()
  }
}

/** Returns the described folders that contain one of the documents that a caller may see. */
export async function visibleFolders(
  pager: Pager,
  base: KnowledgeBaseRow,
  visibility: Visibility,
): Promise<readonly FolderDescription[]> {
  const { folders = [] } = base
  if (!visibility.filter || folders.length === 0) return folders
  const isVisible = documentMatcher(visibility)
  const found = new Set<FolderDescription>()
  for await (const slice of pager.slices(tables.documents, documentsIn(base, visibility))) {
    for (const { row } of slice.filter(stored => isVisible(stored.row)))
      for (const folder of folders) if (containsFile(folder.path, row.sourceFilename)) found.add(folder)
    if (found.size === folders.length) break
  }
  return folders.filter(folder => found.has(folder))
}
