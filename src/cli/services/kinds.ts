import type { ErrorCode } from '../../contract/errors.ts'
import { chunkingPresets, embeddingPresets, llmPresets } from '../../contract/services/presets.ts'
import {
  chunkingServices,
  embeddingServices,
  llmServices,
  rerankingServices,
} from '../../contract/services.ts'

export const serviceTypes = ['chunking', 'embedding', 'reranking', 'llm'] as const
export type ServiceType = (typeof serviceTypes)[number]

/** A service of any type. */
export interface Service {
  readonly type: ServiceType
  readonly id: string
  /** Record as returned by the API. */
  readonly record: Readonly<Record<string, unknown>> & { readonly name: string }
}

/** Properties of a service type. */
interface ServiceKind {
  readonly one: string
  readonly idField: string
  readonly notFound: ErrorCode
  readonly routes:
    | typeof chunkingServices
    | typeof embeddingServices
    | typeof rerankingServices
    | typeof llmServices
  /** Request bodies of presets by name. */
  readonly presets: Readonly<Record<string, object>>
  /** Required fields and their flags. */
  readonly required: Readonly<Record<string, string>>
}

const model = { provider: 'provider', modelName: 'model' }

export const serviceKinds: Readonly<Record<ServiceType, ServiceKind>> = {
  chunking: {
    one: 'chunking service',
    idField: 'chunkingServiceId',
    notFound: 'chunking_service_not_found',
    routes: chunkingServices,
    presets: chunkingPresets,
    required: { engine: 'engine' },
  },
  embedding: {
    one: 'embedding service',
    idField: 'embeddingServiceId',
    notFound: 'embedding_service_not_found',
    routes: embeddingServices,
    presets: embeddingPresets,
    required: { ...model, embeddingDimension: 'dimension' },
  },
  reranking: {
    one: 'reranking service',
    idField: 'rerankingServiceId',
    notFound: 'reranking_service_not_found',
    routes: rerankingServices,
    presets: {},
    required: model,
  },
  llm: {
    one: 'LLM service',
    idField: 'llmServiceId',
    notFound: 'llm_service_not_found',
    routes: llmServices,
    presets: llmPresets,
    required: model,
  },
}

/** Returns the type of a preset. */
export function typeOfPreset(name: string): ServiceType | undefined {
  return serviceTypes.find(type => name in serviceKinds[type].presets)
}
