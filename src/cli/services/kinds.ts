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

/** A service of any type, as a person meets it. */
export interface Service {
  readonly type: ServiceType
  readonly id: string
  /** As the API has it. */
  readonly record: Readonly<Record<string, unknown>> & { readonly name: string }
}

/** What tells one type of service from another. */
interface Described {
  readonly one: string
  readonly idField: string
  readonly notFound: ErrorCode
  readonly routes:
    | typeof chunkingServices
    | typeof embeddingServices
    | typeof rerankingServices
    | typeof llmServices
  /** Bodies of services that are known by name. */
  readonly presets: Readonly<Record<string, object>>
  /** Fields that must be given, with the flags that give them. */
  readonly required: Readonly<Record<string, string>>
}

const model = { provider: 'provider', modelName: 'model' }

export const kinds: Readonly<Record<ServiceType, Described>> = {
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

/** The type that a preset is of. */
export function typeOfPreset(name: string): ServiceType | undefined {
  return serviceTypes.find(type => name in kinds[type].presets)
}
