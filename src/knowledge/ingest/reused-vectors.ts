import type { RowAccess } from '../../access/row-access.ts'
import type { EmbeddingOptions } from '../../models/embedder.ts'
import type { EmbeddedPassage } from '../../models/lsa.ts'
import { embeddedTitle } from '../../storage/content.ts'
import type { Visibility } from '../../storage/visibility.ts'
import { requireVectors } from '../guards.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import type { EmbeddedVectors } from '../passage-operations.ts'
import { titleOfPayload } from '../payload.ts'
import { toModelText, type VectorSpace } from '../vector-space.ts'
import type { RecentVectors } from './recent-vectors.ts'

/** Number of chunks of an earlier version to read at once. */
const chunksPerRead = 256

interface EmbeddingParts {
  readonly space: VectorSpace
  readonly recent: RecentVectors
}

/** Options of an embedding, and observers of its progress. */
interface ReusingOptions extends Required<Pick<EmbeddingOptions, 'retryPolicy' | 'onRequest'>> {
  /** Called with the number of passages whose vectors are already known. */
  readonly onReused: (count: number) => void
}

/** A text that a caller ingests, and the earlier versions of its document. */
export interface TextVersions {
  readonly context: BaseContext
  readonly access: RowAccess
  /** Documents that the text replaces. The caller may see them. */
  readonly replaced: readonly { readonly documentId: string }[]
  /** Rows that the caller may see. */
  readonly visibility: Visibility
}

/**
 * Embeds the passages of a text with a model. Requests only vectors that neither an earlier version of its document nor the caller's
 * recent requests have.
 *
 * @see docs/decisions/0061-hosted-embeddings.md
 */
export class ReusedVectors {
  readonly #earlier: ReadonlyMap<string, Float32Array>

  private constructor(
    private readonly parts: EmbeddingParts,
    private readonly versions: TextVersions,
    earlier: ReadonlyMap<string, Float32Array>,
  ) {
    this.#earlier = earlier
  }

  /**
   * Reads the vectors of the passages that an earlier version also has.
   *
   * @throws vector_collection_required  the collection has no vectors
   */
  static async open(
    parts: EmbeddingParts,
    versions: TextVersions,
    passages: readonly EmbeddedPassage[],
  ): Promise<ReusedVectors> {
    requireVectors(versions.context.collection)
    const texts = new Set(passages.map(toModelText))
    const earlier = new Map<string, Float32Array>()
    for (const { documentId } of versions.replaced)
      for await (const { text, vector } of readChunks(versions, documentId, texts)) earlier.set(text, vector)
    return new ReusedVectors(parts, versions, earlier)
  }

  /**
   * Embeds passages, in the order in which they are given.
   *
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async embed(
    passages: readonly EmbeddedPassage[],
    signal: AbortSignal,
    { onReused, ...options }: ReusingOptions,
  ): Promise<EmbeddedVectors> {
    const { space, recent } = this.parts
    const { context, access } = this.versions
    const texts = passages.map(toModelText)
    const vectors = texts.map(text => this.#earlier.get(text) ?? recent.get(context, access, text))
    const missing = [...vectors.keys()].filter(at => vectors[at] === undefined)
    const onVectors: EmbeddingOptions['onVectors'] = (requested, received) => {
      for (const [n, text] of requested.entries()) recent.set(context, access, text, received[n]!)
    }
    const requested = missing.map(at => passages[at]!)
    onReused(passages.length - missing.length)
    const embedded = await space.embed(context, requested, 'document', signal, { ...options, onVectors })
    for (const [n, at] of missing.entries()) vectors[at] = embedded.vectors[n]
    return { generation: context.collection.generation, vectors: vectors as Float32Array[] }
  }
}

/** Yields the chunks of a document whose model texts are in `texts`, with their vectors. */
async function* readChunks(
  { context, visibility }: TextVersions,
  documentId: string,
  texts: ReadonlySet<string>,
): AsyncGenerator<{ text: string; vector: Float32Array }> {
  const { store, key } = context
  let after: { chunkIndex: number | null; id: string } | undefined
  for (;;) {
    const views =
      (await store.listing?.listByDocument(key, { documentId, after, limit: chunksPerRead, visibility })) ??
      []
    const textOf = new Map(
      views.map(({ record, context, text, payload }) => [
        record,
        toModelText({ title: embeddedTitle({ title: titleOfPayload(payload), context }), text: text ?? '' }),
      ]),
    )
    const wanted = views.map(({ record }) => record).filter(record => texts.has(textOf.get(record)!))
    const found = wanted.length > 0 ? await store.read(key, wanted, { vectors: true, visibility }) : []
    for (const { record, vector } of found) if (vector) yield { text: textOf.get(record)!, vector }
    const last = views.at(-1)
    if (!last || views.length < chunksPerRead) return
    after = { chunkIndex: last.chunkIndex, id: last.id }
  }
}
