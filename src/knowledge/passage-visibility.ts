import type { Caller } from '../access/caller.ts'
import { existedAt } from '../access/document-visibility.ts'
import { documentMatcher } from '../access/policy/document-fields.ts'
import type { RowAccess } from '../access/row-access.ts'
import { WbError } from '../contract/errors.ts'
import type { RowStore } from '../storage/rows.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { Visibility } from '../storage/visibility.ts'
import type { BaseKey } from './document-key.ts'
import type { KnowledgeBases } from './knowledge-bases.ts'

/** A passage that something refers to. Null fields are not known. */
export interface PassageReference {
  /** Null for a passage of an attachment, which every caller who can see its conversation may see. */
  readonly knowledgeBaseId: string | null
  /** Null for a record without a document. */
  readonly documentId: string | null
  /** ID of the chunk or record. */
  readonly chunkId: string | null
}

/** Decides which passages a caller may see, at the moment when the check was opened. Remembers its decisions. */
export interface PassageCheck {
  /** True if the caller may see all passages of the workspace. */
  readonly seesAll: boolean
  /**
   * @param readAt  timestamp of the reference; a document that was created later is another one with the same ID
   * @throws policy_principal_required  row-level access is on, and the caller is no principal
   */
  isVisible(passage: PassageReference, readAt: string): Promise<boolean>
}

/** Returns a check of the passages that a caller may see in a workspace. */
export type OpenPassageCheck = PassageVisibility['open']

interface PassageDecision {
  readonly isVisible: boolean
  /** The document that decided; absent for a record, and for a caller who may see everything. */
  readonly document?: DocumentRow
}

const hidden: PassageDecision = { isVisible: false }

/** Decides which passages callers may see. */
export class PassageVisibility {
  constructor(
    private readonly parts: { readonly rows: RowStore; readonly bases: Pick<KnowledgeBases, 'openContext'> },
  ) {}

  /** @throws workspace_not_found */
  async open(workspaceId: string, caller: Pick<Caller, 'rowAccess'>): Promise<PassageCheck> {
    const access = await caller.rowAccess(workspaceId)
    const decisions = new Map<string, Promise<PassageDecision>>()
    return {
      seesAll: !access.isEnabled || access.actor.kind === 'operator',
      isVisible: async ({ knowledgeBaseId, documentId, chunkId }, readAt) => {
        if (knowledgeBaseId === null || !access.isEnabled) return true
        const key = JSON.stringify([knowledgeBaseId, documentId, chunkId])
        const decision =
          decisions.get(key) ?? this.#decide({ workspaceId, knowledgeBaseId, documentId, chunkId }, access)
        decisions.set(key, decision)
        const { isVisible, document } = await decision
        return isVisible && (!document || existedAt(document, readAt))
      },
    }
  }

  /**
   * A chunk of a document is visible if the document is. A record without a document, or whose document is not in the
   * knowledge base, is visible if the record is, and still belongs to that document. A caller who may not see all rows
   * cannot see a missing row.
   */
  async #decide(
    passage: PassageReference & { readonly workspaceId: string; readonly knowledgeBaseId: string },
    access: RowAccess,
  ): Promise<PassageDecision> {
    const { workspaceId, knowledgeBaseId, documentId, chunkId } = passage
    const { rows } = this.parts
    const [base, document] = await Promise.all([
      rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId]),
      documentId === null
        ? undefined
        : rows.get(tables.documents, [workspaceId, knowledgeBaseId, documentId]),
    ])
    if (!base) return hidden
    let decider: DocumentRow | undefined
    const isVisible = await access.canRead(base.row, { action: 'get' }, async visibility => {
      if (!visibility.filter) return true
      decider = document?.row
      if (decider) return documentMatcher(visibility)(decider)
      return chunkId !== null && this.#isRecordVisible({ ...passage, chunkId }, visibility)
    })
    return { isVisible, ...(decider && { document: decider }) }
  }

  async #isRecordVisible(
    { workspaceId, knowledgeBaseId, documentId, chunkId }: BaseKey & PassageReference & { chunkId: string },
    visibility: Visibility,
  ): Promise<boolean> {
    try {
      const { store, key } = await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
      const [owner] = await store.owners(key, [chunkId], visibility)
      return owner!.exists && owner!.isVisible && owner!.documentId === documentId
    } catch (error) {
      // The content of the knowledge base is gone, or its store is not available.
      if (error instanceof WbError) return false
      throw error
    }
  }
}
