import type { Caller } from '../access/caller.ts'
import { existedAt } from '../access/document-visibility.ts'
import { documentMatcher } from '../access/policy/document-fields.ts'
import type { RowAccess } from '../access/row-access.ts'
import { WbError } from '../contract/errors.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
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

/** Decides which passages a caller may see, based on its access when the check was opened. Caches its decisions. */
export interface PassageCheck {
  /** True if the caller may see all passages of the workspace. */
  readonly seesAll: boolean
  /**
   * @param readAt  timestamp of the reference; a document that was created later is a different one with the same ID
   * @throws policy_principal_required  row-level access is on, and the caller is not a principal
   */
  isVisible(passage: PassageReference, readAt: string): Promise<boolean>
}

/** Returns a check of the passages that a caller may see in a workspace. */
export type OpenPassageCheck = PassageVisibility['open']

/** A reference to a passage of a knowledge base. */
interface StoredReference extends PassageReference, BaseKey {
  readonly knowledgeBaseId: string
  readonly readAt: string
}

/** Decides which passages callers may see. */
export class PassageVisibility {
  constructor(
    private readonly parts: { readonly rows: RowStore; readonly bases: Pick<KnowledgeBases, 'openContext'> },
  ) {}

  /** @throws workspace_not_found */
  async open(workspaceId: string, caller: Pick<Caller, 'rowAccess'>): Promise<PassageCheck> {
    const access = await caller.rowAccess(workspaceId)
    const decisions = new Map<string, Promise<boolean>>()
    return {
      seesAll: !access.isEnabled || access.actor.kind === 'operator',
      isVisible: ({ knowledgeBaseId, documentId, chunkId }, readAt) => {
        if (knowledgeBaseId === null || !access.isEnabled) return Promise.resolve(true)
        const reference = { workspaceId, knowledgeBaseId, documentId, chunkId, readAt }
        const key = JSON.stringify(reference)
        const decision = decisions.get(key) ?? this.#decide(reference, access)
        decisions.set(key, decision)
        return decision
      },
    }
  }

  /**
   * A chunk of a document is visible if the document is. A record without a document, or whose document is not in the
   * knowledge base, is visible if the record is, and still belongs to that document. A caller who may not see all rows
   * cannot see a missing row.
   */
  async #decide(reference: StoredReference, access: RowAccess): Promise<boolean> {
    const { workspaceId, knowledgeBaseId, documentId, readAt } = reference
    const { rows } = this.parts
    const [base, document] = await Promise.all([
      rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId]),
      documentId === null
        ? undefined
        : rows.get(tables.documents, [workspaceId, knowledgeBaseId, documentId]),
    ])
    if (!base) return false
    return access.canRead(base.row, { action: 'get' }, async visibility => {
      if (!visibility.filter) return true
      if (document) return existedAt(document.row, readAt) && documentMatcher(visibility)(document.row)
      return this.#isRecordVisible(reference, visibility)
    })
  }

  async #isRecordVisible(
    { workspaceId, knowledgeBaseId, documentId, chunkId }: StoredReference,
    visibility: Visibility,
  ): Promise<boolean> {
    if (chunkId === null) return false
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
