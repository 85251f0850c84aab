import { isDeepStrictEqual } from 'node:util'
import { fullVisibility } from '../access/row-access.ts'
import {
  type ContentRecord,
  type ContentWrite,
  embeddedTitle,
  type Payload,
  type RecordView,
} from '../storage/content.ts'
import { revisionOf, type Stored, type Write } from '../storage/rows.ts'
import { requireListing } from '../storage/store-features.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import { undefinedIfDeleted } from './guards.ts'
import type { BaseContext, KnowledgeBases } from './knowledge-bases.ts'
import {
  contextOfPayload,
  folderOfRecord,
  inheritedBytes,
  requireInheritedSize,
  titleOfPayload,
  updateInheritedFields,
} from './payload.ts'
import { retryOnSpaceChange, undefinedIfSpaceChanged, type VectorSpace } from './vector-space.ts'

/** Number of records to read at once. */
const recordsPerRead = 256

type PayloadOf = (view: RecordView) => Payload

/** Records with their new payloads, and the generation of their vectors. */
interface RewrittenRecords {
  readonly generation: number
  readonly records: readonly (ContentRecord & { readonly record: number })[]
}

interface DocumentChange {
  readonly before: Stored<DocumentRow>
  readonly after: DocumentRow
  /** Called before the change is written. Throws an error if the caller may no longer make it. */
  readonly authorize?: () => Promise<unknown>
  /** Writes that record what decided about access before the change. */
  readonly versions?: readonly Write[]
}

/**
 * Rewrites the payloads of stored records, and their vectors if the runtime fits the space. Sees all
 * records, because a payload must match its document no matter which caller changes the document.
 */
export class RecordRewriter {
  constructor(private readonly parts: { readonly bases: KnowledgeBases; readonly space: VectorSpace }) {}

  /**
   * Changes a document and the fields that its chunks inherit from it, in one transaction: at no time is a chunk visible
   * to a caller that cannot see the document.
   *
   * @returns false without changing anything, if the document, its chunks or the vector space changed in the meantime
   * @throws invalid_metadata  the new metadata is too large for the number of chunks
   */
  async replaceDocument(
    { before, after, authorize, versions = [] }: DocumentChange,
    signal: AbortSignal,
  ): Promise<boolean> {
    const context = await this.parts.bases.openContext(after.workspaceId, after.knowledgeBaseId)
    const payloadOf: PayloadOf = ({ payload }) => updateInheritedFields(payload, after)
    // Documents of earlier versions can be larger. Their visibility can still be restricted.
    const isLarger = inheritedBytes(after) > inheritedBytes(before.row)
    const onChunks = (count: number) => isLarger && requireInheritedSize(after, count)
    const chunks = await this.#rewriteChunks(
      context,
      after.documentId,
      { payloadOf, onChunks },
      signal,
    ).catch(undefinedIfSpaceChanged)
    if (!chunks) return false
    if (after === before.row && chunks.records.length === 0) return true
    await authorize?.()
    const replacement = { op: 'replace' as const, table: tables.documents, row: after, ...revisionOf(before) }
    const outcome = await context.store.write(recordWrites(context, chunks), [replacement, ...versions])
    return outcome.ok
  }

  /**
   * Makes the records of a knowledge base that were stored directly visible to everyone, except records whose
   * visibility was set explicitly.
   */
  async publishDirectRecords(context: BaseContext, signal: AbortSignal): Promise<void> {
    const { workspaceId, knowledgeBaseId } = context.base
    const payloadOf: PayloadOf = ({ payload }) =>
      'visible_to' in payload ? payload : { ...payload, visible_to: ['*'] }
    const check: Write = { op: 'require', table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] }
    let after = 0
    for (;;) {
      const views = await requireListing(context.store).listDirect(context.key, {
        after,
        limit: recordsPerRead,
        visibility: fullVisibility(),
      })
      const last = views.at(-1)
      if (!last) return
      const baseExists = await retryOnSpaceChange(async () => {
        // Open the context again, because the embedding service may have changed.
        const current = await this.parts.bases
          .openContext(workspaceId, knowledgeBaseId)
          .catch(undefinedIfDeleted)
        if (!current) return { value: false }
        const rewritten = await this.#rewrite(current, views, payloadOf, signal)
        const outcome = await current.store.write(recordWrites(current, rewritten), [check])
        if (outcome.ok) return { value: true }
        return outcome.at === 0 ? { value: false } : undefined
      })
      if (!baseExists.value) return
      after = last.record
    }
  }

  /**
   * Returns undefined if the vector space changed in the meantime.
   *
   * @param onChunks  called with the number of chunks that were found so far
   */
  async #rewriteChunks(
    context: BaseContext,
    documentId: string,
    { payloadOf, onChunks }: { payloadOf: PayloadOf; onChunks: (count: number) => void },
    signal: AbortSignal,
  ): Promise<RewrittenRecords | undefined> {
    let { generation } = context.collection
    let count = 0
    const records: RewrittenRecords['records'][number][] = []
    let after: { chunkIndex: number | null; id: string } | undefined
    for (;;) {
      const views = await requireListing(context.store).listByDocument(context.key, {
        documentId,
        after,
        limit: recordsPerRead,
        visibility: fullVisibility(),
      })
      const last = views.at(-1)
      if (!last) return { generation, records }
      count += views.length
      onChunks(count)
      const rewritten = await this.#rewrite(context, views, payloadOf, signal)
      if (rewritten.records.length > 0) {
        if (records.length > 0 && rewritten.generation !== generation) return undefined
        generation = rewritten.generation
        records.push(...rewritten.records)
      }
      after = { chunkIndex: last.chunkIndex, id: last.id }
    }
  }

  /** Returns the records whose payload changes. Omits records that were replaced in the meantime. */
  async #rewrite(
    context: BaseContext,
    listed: readonly RecordView[],
    payloadOf: PayloadOf,
    signal: AbortSignal,
  ): Promise<RewrittenRecords> {
    const changed = listed.filter(view => !isDeepStrictEqual(payloadOf(view), view.payload))
    const views = await context.store.read(
      context.key,
      changed.map(view => view.record),
      { vectors: !context.isFittedByRuntime, visibility: fullVisibility() },
    )
    const payloads = views.map(payloadOf)
    const titles = payloads.map((payload, at) => ({
      title: titleOfPayload(payload),
      // The vectors of providers are not computed again, so they still contain the stored context.
      context: context.isFittedByRuntime
        ? contextOfPayload(payload, folderOfRecord(context.base, { ...views[at]!, payload })?.description)
        : views[at]!.context,
    }))
    const passages = views.map((view, at) => ({ title: embeddedTitle(titles[at]!), text: view.text ?? '' }))
    const { generation, vectors } = context.isFittedByRuntime
      ? await this.parts.space.embed(context, passages, 'document', signal)
      : { generation: context.collection.generation, vectors: views.map(view => view.vector!) }
    const records = views.map((view, at) => ({
      ...view,
      ...titles[at]!,
      payload: payloads[at]!,
      vector: vectors[at]!,
    }))
    return { generation, records }
  }
}

/** Returns the changes that write rewritten records. They fail if one of the records was replaced or deleted. */
function recordWrites({ key }: BaseContext, { generation, records }: RewrittenRecords): ContentWrite[] {
  if (records.length === 0) return []
  return [
    { op: 'requireRecords', ...key, records: records.map(({ record }) => record) },
    { op: 'upsert', ...key, generation, records },
  ]
}
