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

/** Names, routes, presets and flags of a service type. */
interface ServiceTypeDetails {
  readonly noun: string
  readonly idField: string
  readonly notFoundCode: ErrorCode
  readonly routes:
    | typeof chunkingServices
    | typeof embeddingServices
    | typeof rerankingServices
    | typeof llmServices
  /** Request bodies of presets by name. */
  readonly presets: Readonly<Record<string, object>>
  /** Names of the flags for required fields, by field. */
  readonly requiredFlags: Readonly<Record<string, string>>
}

const modelFlags = { provider: 'provider', modelName: 'model' }

export const serviceTypeDetails: Readonly<Record<ServiceType, ServiceTypeDetails>> = {
  chunking: {
    noun: 'chunking service',
    idField: 'chunkingServiceId',
    notFoundCode: 'chunking_service_not_found',
    routes: chunkingServices,
    presets: chunkingPresets,
    requiredFlags: { engine: 'engine' },
  },
  embedding: {
    noun: 'embedding service',
    idField: 'embeddingServiceId',
    notFoundCode: 'embedding_service_not_found',
    routes: embeddingServices,
    presets: embeddingPresets,
    requiredFlags: { ...modelFlags, embeddingDimension: 'dimension' },
  },
  reranking: {
    noun: 'reranking service',
    idField: 'rerankingServiceId',
    notFoundCode: 'reranking_service_not_found',
    routes: rerankingServices,
    presets: {},
    requiredFlags: modelFlags,
  },
  llm: {
    noun: 'LLM service',
    idField: 'llmServiceId',
    notFoundCode: 'llm_service_not_found',
    routes: llmServices,
    presets: llmPresets,
    requiredFlags: modelFlags,
  },
}

/** Returns the type that has a preset with this name. */
export function typeOfPreset(name: string): ServiceType | undefined {
  return serviceTypes.find(type => Object.hasOwn(serviceTypeDetails[type].presets, name))
}
