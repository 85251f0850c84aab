import * as Flags from '@oclif/core/flags'
import { parseJson } from '../../base/parse-json.ts'
import { samplingFlags } from '../agents/sampling-flags.ts'
import { UsageError } from '../errors.ts'
import { type ServiceType, serviceTypes } from './service-types.ts'

const typeOption = (summary: string) => Flags.option({ char: 't', options: serviceTypes, summary })()

export const typeFlag = typeOption('type of service')

/** `--type` flag of commands that find a service by name or ID. */
export const lookupTypeFlag = typeOption('type of the service, if several have this name')

/** Fields that have a flag, and the service types that have the field. Other fields are set with `--set`. */
const fieldOfFlag: Readonly<Record<string, readonly [field: string, types: readonly ServiceType[]]>> = {
  description: ['description', serviceTypes],
  status: ['status', serviceTypes],
  endpoint: ['endpointBaseUrl', serviceTypes],
  credential: ['credentialRef', serviceTypes],
  'timeout-ms': ['requestTimeoutMs', serviceTypes],
  engine: ['engine', serviceTypes],
  strategy: ['strategy', ['chunking']],
  'max-size': ['maxChunkSize', ['chunking']],
  'min-size': ['minChunkSize', ['chunking']],
  overlap: ['overlapSize', ['chunking']],
  provider: ['provider', ['embedding', 'reranking', 'llm']],
  model: ['modelName', ['embedding', 'reranking', 'llm']],
  dimension: ['embeddingDimension', ['embedding']],
  metric: ['distanceMetric', ['embedding']],
  'batch-size': ['maxBatchSize', ['embedding', 'reranking', 'llm']],
  'max-tokens': ['maxOutputTokens', ['llm']],
  temperature: ['temperature', ['llm']],
  'top-p': ['topP', ['llm']],
  'reasoning-effort': ['reasoningEffort', ['llm']],
  stop: ['stop', ['llm']],
}

/** Flags for the fields of services. */
export const serviceFlags = {
  description: Flags.string({ summary: 'purpose of the service' }),
  status: Flags.string({
    options: ['active', 'deprecated', 'experimental'],
    summary: 'lifecycle status',
  }),
  provider: Flags.string({ summary: 'provider: openai, openrouter, ollama, cohere, onnx, …' }),
  model: Flags.string({ summary: 'model name that the provider uses' }),
  dimension: Flags.integer({ min: 1, summary: 'number of vector dimensions' }),
  metric: Flags.string({ options: ['cosine', 'dot', 'euclidean'], summary: 'similarity metric for vectors' }),
  endpoint: Flags.string({ summary: 'base URL of the API [provider default]', helpValue: 'URL' }),
  credential: Flags.string({
    summary: 'secret reference for the API key: env:NAME or file:/path',
    helpValue: 'REF',
  }),
  engine: Flags.string({ summary: 'chunker: workbase or langchain_ts' }),
  strategy: Flags.string({ summary: 'chunking strategy: sentence, recursive or line' }),
  'max-size': Flags.integer({ min: 1, summary: 'maximum number of characters in a chunk' }),
  'min-size': Flags.integer({ min: 0, summary: 'minimum number of characters in a chunk' }),
  overlap: Flags.integer({ min: 0, summary: 'number of characters that consecutive chunks share' }),
  'batch-size': Flags.integer({ min: 1, summary: 'maximum number of texts per request' }),
  'max-tokens': Flags.integer({ min: 1, summary: 'maximum number of tokens in an answer' }),
  ...samplingFlags,
  'timeout-ms': Flags.integer({ min: 1, summary: 'request timeout, in milliseconds' }),
  set: Flags.string({
    multiple: true,
    summary: 'set any other field to VALUE, which is JSON or a string; can be repeated',
    helpValue: 'FIELD=VALUE',
  }),
}

type FlagValues = Readonly<Record<string, unknown>>

/**
 * Returns the fields that the flags set.
 *
 * @throws UsageError  when services of this type do not have the field of a flag
 */
export function serviceFieldsFrom(flags: FlagValues, type: ServiceType): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const [flag, [field, types]] of Object.entries(fieldOfFlag)) {
    if (flags[flag] === undefined) continue
    if (!types.includes(type))
      throw new UsageError(`--${flag} does not apply to ${type} services, only to ${types.join(', ')}`)
    body[field] = flags[flag]
  }
  for (const entry of (flags.set ?? []) as string[]) Object.assign(body, parseAssignment(entry))
  return body
}

/** Parses `FIELD=VALUE`. The value is JSON, or else a string. */
function parseAssignment(entry: string): Record<string, unknown> {
  const [, field, value] = /^(\w+)=(.*)$/s.exec(entry) ?? []
  if (field === undefined || value === undefined)
    throw new UsageError(`--set ${entry} is not FIELD=VALUE`, ['--set maxInputTokens=512'])
  const parsed = parseJson(value)
  return { [field]: parsed === undefined ? value : parsed }
}
