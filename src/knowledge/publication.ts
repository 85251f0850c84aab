import { type Clock, timestamp } from '../base/clock.ts'
import { limits } from '../contract/limits.ts'
import type { Pager } from '../storage/cursor.ts'
import { type RowStore, revisionOf, type Stored } from '../storage/rows.ts'
import { type DeletedDocumentRow, type DocumentRow, tables } from '../storage/tables.ts'
import type { DocumentChanges } from './document-changes.ts'
import { keyOf } from './document-key.ts'
import { undefinedIfDeleted } from './guards.ts'
import type { KnowledgeBases } from './knowledge-bases.ts'
import type { RecordRewriter } from './record-rewriter.ts'

interface PublicationParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly bases: KnowledgeBases
  readonly rewriter: RecordRewriter
  readonly changes: DocumentChanges
}

/**
 * Prepares the rows of a workspace for row-level access: makes them visible to everyone, except rows whose visibility was
 * set explicitly, and writes the fields that policies can refer to into all chunks.
 *
 * Row-level access must be off in the meantime. If the work is interrupted, it can be repeated from the start.
 */
export class Publication {
  constructor(private readonly parts: PublicationParts) {}

  async publish(workspaceId: string, signal: AbortSignal): Promise<void> {
    let cursor: string | undefined
    do {
      const page = await this.parts.bases.list(workspaceId, { limit: limits.pageMax, cursor })
      for (const { knowledgeBaseId } of page.items)
        await this.#publishBase(workspaceId, knowledgeBaseId, signal).catch(undefinedIfDeleted)
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
  }

  async #publishBase(workspaceId: string, knowledgeBaseId: string, signal: AbortSignal): Promise<void> {
    const { bases, pager, rewriter } = this.parts
    const context = await bases.openContext(workspaceId, knowledgeBaseId)
    await rewriter.publishDirectRecords(context, signal)
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
    for await (const slice of pager.slices(tables.documents, list))
      for (const { row } of slice) await this.#publishDocument(row, signal)
    for await (const slice of pager.slices(tables.deletedDocuments, list))
      for (const entry of slice) await this.#publishEntry(entry, signal)
  }

  /** Changes a document with its chunks. Repeats it if they changed in the meantime. */
  async #publishDocument(listed: DocumentRow, signal: AbortSignal): Promise<void> {
    const { changes } = this.parts
    let isDone: true | undefined
    while (!isDone) isDone = await changes.run(listed, () => this.#replaceDocument(listed, signal))
  }

  /** Publishes a deleted document, unless it was restored in the meantime. A restore gives its chunks the same visibility. */
  async #publishEntry(entry: Stored<DeletedDocumentRow>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (!isUndecided(entry.row)) return
    const row = { ...entry.row, visibleTo: ['*'] }
    await this.parts.rows.atomic([
      { op: 'replace', table: tables.deletedDocuments, row, ...revisionOf(entry) },
    ])
  }

  /** Returns undefined if the document or its chunks changed in the meantime. */
  async #replaceDocument(listed: DocumentRow, signal: AbortSignal): Promise<true | undefined> {
    const { rows, rewriter, clock } = this.parts
    signal.throwIfAborted()
    const before = await rows.get(tables.documents, keyOf(listed))
    if (!before) return true
    const { row } = before
    const after = isUndecided(row) ? { ...row, visibleTo: ['*'], updatedAt: timestamp(clock) } : row
    return (await rewriter.replaceDocument({ before, after }, signal)) || undefined
  }
}

/** Returns true if the visibility of a document was never set. */
function isUndecided({ visibleTo, isVisibilityDecided }: DocumentRow): boolean {
  return visibleTo === null && !isVisibilityDecided
}
