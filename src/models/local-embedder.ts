import { WbError } from '../contract/errors.ts'
import { localProvider } from '../contract/providers.ts'
import type { EmbeddingService } from '../contract/services.ts'
import { LocalModelError } from '../local-models/local-model.ts'
import type { LocalModels } from '../local-models/local-models.ts'
import { type Embedder, embedderFailure } from './embedder.ts'

/** Returns an embedder that uses a model which was added to this runtime. Loads nothing before the first call. */
export function openLocalEmbedder(service: EmbeddingService, models: LocalModels): Embedder {
  const { modelName, embeddingDimension: dimension } = service
  return {
    dimension,
    async embed(texts, signal, purpose = 'document') {
      signal.throwIfAborted()
      requireLocalModel(service, models)
      try {
        return await models.embed(modelName, texts, { purpose, signal })
      } catch (error) {
        signal.throwIfAborted()
        throw embedderFailure(service, 'failed to run its model', {}, error)
      }
    },
  }
}

/**
 * Checks that the model of a service can be used. Loads nothing.
 *
 * @throws embedding_unavailable         the model was not added, or onnxruntime-node is not installed
 * @throws embedding_dimension_mismatch  the model has another dimension than the service
 */
export function requireLocalModel(service: EmbeddingService, models: LocalModels): void {
  const { modelName, embeddingDimension } = service
  try {
    const { dimension } = models.require(modelName)
    if (dimension === embeddingDimension) return
    throw new WbError(
      'embedding_dimension_mismatch',
      `model "${modelName}" has ${dimension} dimensions, and embedding service "${service.name}" ${embeddingDimension}`,
    )
  } catch (error) {
    if (!(error instanceof LocalModelError)) throw error
    throw embedderFailure(service, `has a model that ${error.message}`, { hint: error.hint })
  }
}

/**
 * Checks a service before it is written, so that records refer only to models that were added on the machine of the runtime.
 * Accepts services of other providers, and changes of other fields.
 *
 * @param sent  fields that the caller sent
 * @throws validation_error
 */
export function checkLocalService(
  service: EmbeddingService,
  sent: Partial<EmbeddingService>,
  models: LocalModels,
): void {
  const { provider, modelName, embeddingDimension } = sent
  const isModelSent = [provider, modelName, embeddingDimension].some(field => field !== undefined)
  if (service.provider !== localProvider || !isModelSent) return
  try {
    requireLocalModel(service, models)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    throw new WbError('validation_error', error.message, { hint: error.hint }, { cause: error })
  }
}
