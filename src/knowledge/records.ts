import type { Caller } from '../access/caller.ts'
import type { Upsert } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import type { ContentRecord } from '../storage/content.ts'
import type { Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { BaseContext, KnowledgeBases } from './bases.ts'
import { collectionGone, refuseRawVector, requireDimension } from './guards.ts'
import { titleOf } from './payload.ts'
import { inOneSpace, type Space } from './space.ts'

/** Records that clients store directly. */
export class Records {
  constructor(
    private readonly bases: KnowledgeBases,
    private readonly space: Space,
  ) {}

  /**
   * Store records, each replacing the one with its id; all or none.
   *
   * @returns how many were stored
   * @throws validation_error               an id stands twice
   * @throws dimension_mismatch, vector_collection_not_allowed, embedding_unavailable
   */
  async upsert(workspaceId: string, knowledgeBaseId: string, body: Upsert, caller: Caller): Promise<number> {
    refuseRepeats(body.records)
    return inOneSpace(async () => {
      const context = await this.bases.context(workspaceId, knowledgeBaseId)
      const { records, generation } = await this.compose(context, body, caller)
      const upsert = { op: 'upsert' as const, ...context.key, generation, records }
      const outcome = await context.store.write([upsert], [stillThere(context)])
      if (outcome.ok) return records.length
      if (outcome.at === 0) await this.bases.get(workspaceId, knowledgeBaseId)
      if (outcome.reason === 'absent') throw collectionGone(context.base)
      return undefined
    })
  }

  /** @returns whether there was such a record */
  async delete(workspaceId: string, knowledgeBaseId: string, recordId: string): Promise<boolean> {
    const context = await this.bases.context(workspaceId, knowledgeBaseId)
    const { store, key } = context
    const outcome = await store.write([{ op: 'deleteRecord', ...key, id: recordId }], [stillThere(context)])
    return outcome.ok
  }

  private async compose(context: BaseContext, body: Upsert, caller: Caller) {
    body.records.forEach((record, at) => {
      if (!record.vector) return
      refuseRawVector(`records.${at}.vector`, context)
      requireDimension(`records.${at}.vector`, record.vector.length, context.collection.dimension)
    })
    const texts = body.records.filter(record => record.text !== undefined)
    const passages = texts.map(record => ({ title: titleOf(record.payload), text: record.text! }))
    const { generation, vectors } = await this.space.embed(context, passages, 'document', caller.signal)
    const embedded = vectors.values()
    const records = body.records.map(
      (record): ContentRecord => ({
        id: record.id,
        documentId: null,
        chunkIndex: null,
        title: titleOf(record.payload),
        text: record.text ?? null,
        payload: record.payload ?? {},
        vector: record.vector ? Float32Array.from(record.vector) : embedded.next().value!,
      }),
    )
    return { records, generation }
  }
}

/** A collection is known by its name, which another knowledge base may have meanwhile. */
function stillThere({ base: { workspaceId, knowledgeBaseId } }: BaseContext): Write {
  return { op: 'require', table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] }
}

function refuseRepeats(records: Upsert['records']): void {
  const seen = new Map<string, number>()
  records.forEach(({ id }, at) => {
    const first = seen.get(id)
    if (first !== undefined)
      throw new WbError('validation_error', `records.${at}.id: repeats records.${first}.id`)
    seen.set(id, at)
  })
}
