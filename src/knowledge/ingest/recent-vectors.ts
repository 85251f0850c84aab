import type { RowAccess } from '../../access/row-access.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/id.ts'
import type { BaseContext } from '../knowledge-bases.ts'

/** Maximum size of all vectors in bytes. */
const bytesMax = 64_000_000
/** Approximate size of an entry without its vector. */
const entryBytes = 200
/** Time in milliseconds for which a vector is kept. An ingest that failed is usually repeated earlier. */
const keptMs = 15 * 60_000

interface RecentVector {
  readonly vector: Float32Array
  readonly expiresMs: number
}

/**
 * Vectors that were requested in the last minutes, by content and model, so that they are not paid for again after an ingest failed.
 *
 * A vector is found only in its knowledge base. With row-level access, it is found only by the principal that requested it: otherwise,
 * the time of an ingest would reveal that a hidden document contains the same text.
 *
 * @see docs/decisions/0061-hosted-embeddings.md
 */
export class RecentVectors {
  readonly #vectors = new BoundedCache<string, RecentVector>(bytesMax, sizeOf)

  constructor(private readonly clock: Clock) {}

  /** Returns the vector of a text; undefined if it is not kept, or must not be revealed to the caller. */
  get(context: BaseContext, access: RowAccess, text: string): Float32Array | undefined {
    const key = keyOf(context, access, text)
    const found = key === undefined ? undefined : this.#vectors.get(key)
    return found && found.expiresMs > this.clock.now() ? found.vector : undefined
  }

  set(context: BaseContext, access: RowAccess, text: string, vector: Float32Array): void {
    const key = keyOf(context, access, text)
    if (key !== undefined) this.#vectors.set(key, { vector, expiresMs: this.clock.now() + keptMs })
  }
}

function sizeOf({ vector }: RecentVector): number {
  return vector.byteLength + entryBytes
}

/** Returns undefined for a caller whose vectors are not kept, because it cannot be distinguished from others. */
function keyOf(
  context: BaseContext,
  { isEnabled, ownerId, actor }: RowAccess,
  text: string,
): string | undefined {
  if (isEnabled && (ownerId === null || actor.viewedBy)) return undefined
  const { workspaceId, knowledgeBaseId } = context.base
  const audience = isEnabled ? { ownerId } : 'everyone'
  return sha256(JSON.stringify([workspaceId, knowledgeBaseId, audience, modelOf(context), text]))
}

/** Returns the properties that identify the model of a knowledge base. Vectors of different models cannot be compared. */
export function modelOf({ embedding }: BaseContext) {
  const { embeddingServiceId, provider, modelName, embeddingDimension, endpointBaseUrl, endpointPath } =
    embedding
  return [embeddingServiceId, provider, modelName, embeddingDimension, endpointBaseUrl, endpointPath]
}
