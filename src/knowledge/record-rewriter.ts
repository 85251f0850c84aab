import { isDeepStrictEqual } from 'node:util'
import { fullVisibility } from '../access/row-access.ts'
import type { Payload, RecordView } from '../storage/content.ts'
import { type RowRevision, revisionOf, type Write } from '../storage/rows.ts'
import { requireListing } from '../storage/store-features.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import { keyOf } from './document-key.ts'
import type { BaseContext, KnowledgeBases } from './knowledge-bases.ts'
import { titleOfPayload, updateInheritedFields } from './payload.ts'
import { retryOnSpaceChange, type VectorSpace } from './vector-space.ts'

/** Number of records to rewrite per transaction. */
const recordsPerRewrite = 256

/** A change of the payloads of records. */
interface PayloadChange {
  readonly payloadOf: (view: RecordView) => Payload
  /** A check that must hold when the records are written. */
  readonly check: Write
}

/**
 * Rewrites the payloads of stored records, and their vectors if the runtime fits the space. Sees all records, because a
 * payload must match its document no matter which caller changes the document.
 */
export class RecordRewriter {
  constructor(private readonly parts: { readonly bases: KnowledgeBases; readonly space: VectorSpace }) {}

  /**
   * Updates the fields that the chunks of a document inherit from it. Does not write chunks that are up to date.
   *
   * @param document  the document, with changes that are not stored yet, and the revision of the stored document
   * @returns false if the stored document changed or was deleted in the meantime
   */
  async rewriteChunks(
    { row, ...revision }: RowRevision & { readonly row: DocumentRow },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { workspaceId, knowledgeBaseId, documentId } = row
    const context = await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
    const change: PayloadChange = {
      payloadOf: ({ payload }) => updateInheritedFields(payload, row),
      check: { op: 'require', table: tables.documents, key: keyOf(row), ...revisionOf(revision) },
    }
    let cursor: { chunkIndex: number | null; id: string } | undefined
    for (;;) {
      const views = await requireListing(context.store).listByDocument(context.key, {
        documentId,
        after: cursor,
        limit: recordsPerRewrite,
        visibility: fullVisibility(),
      })
      const last = views.at(-1)
      if (!last) return true
      if (!(await this.#rewrite(context, views, change, signal))) return false
      cursor = { chunkIndex: last.chunkIndex, id: last.id }
    }
  }

  /**
   * Makes the records of a knowledge base that were stored directly visible to everyone, except records whose
   * visibility was set explicitly.
   */
  async publishDirectRecords(context: BaseContext, signal: AbortSignal): Promise<void> {
    const { workspaceId, knowledgeBaseId } = context.base
    const change: PayloadChange = {
      payloadOf: ({ payload }) => ('visible_to' in payload ? payload : { ...payload, visible_to: ['*'] }),
      check: { op: 'require', table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] },
    }
    let after = 0
    for (;;) {
      const views = await requireListing(context.store).listDirect(context.key, {
        after,
        limit: recordsPerRewrite,
        visibility: fullVisibility(),
      })
      const last = views.at(-1)
      if (!last) return
      if (!(await this.#rewrite(context, views, change, signal))) return
      after = last.record
    }
  }

  /** Writes the records whose payload changes. Returns false if the check failed. */
  async #rewrite(
    context: BaseContext,
    listed: readonly RecordView[],
    { payloadOf, check }: PayloadChange,
    signal: AbortSignal,
  ): Promise<boolean> {
    const changed = listed.filter(view => !isDeepStrictEqual(payloadOf(view), view.payload))
    if (changed.length === 0) return true
    const numbers = changed.map(view => view.record)
    return retryOnSpaceChange(async () => {
      // Records that were replaced in the meantime have higher numbers, and are listed again later.
      const views = await context.store.read(context.key, numbers, {
        vectors: !context.isFittedByRuntime,
        visibility: fullVisibility(),
      })
      const payloads = views.map(payloadOf)
      const titles = payloads.map(titleOfPayload)
      const passages = views.map((view, at) => ({ title: titles[at]!, text: view.text ?? '' }))
      const { generation, vectors } = context.isFittedByRuntime
        ? await this.parts.space.embed(context, passages, 'document', signal)
        : { generation: context.collection.generation, vectors: views.map(view => view.vector!) }
      const records = views.map((view, at) => ({
        ...view,
        title: titles[at]!,
        payload: payloads[at]!,
        vector: vectors[at]!,
      }))
      const unchanged = {
        op: 'requireRecords' as const,
        ...context.key,
        records: views.map(view => view.record),
      }
      const upsert = { op: 'upsert' as const, ...context.key, generation, records }
      const outcome = await context.store.write([unchanged, upsert], [check])
      if (outcome.ok) return { isChecked: true }
      return outcome.at === 0 ? { isChecked: false } : undefined
    }).then(({ isChecked }) => isChecked)
  }
}
