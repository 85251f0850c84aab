import { z } from 'zod'
import { member, needs } from '../access.ts'
import type { ErrorCode } from '../errors.ts'
import { pageOfItems, pageQuery } from '../page.ts'
import { route } from '../route.ts'
import { optionalSampling, sampling } from '../sampling.ts'
import {
  destinationAccess,
  modelContentCreate,
  modelContentFields,
  nullableFlag,
  nullableNumber,
  nullablePositive,
  nullableText,
  problemQuery,
  serviceBody,
  serviceSystemFields,
  sharedServiceCreate,
  sharedServiceFields,
  sharedServicePatch,
  withProblem,
} from './fields.ts'

const fields = {
  ...sharedServiceFields,
  provider: z.string().min(1),
  engine: nullableText,
  modelName: z.string().min(1),
  modelVersion: nullableText,
  contextWindowTokens: nullablePositive,
  maxOutputTokens: nullablePositive,
  temperatureMin: nullableNumber,
  temperatureMax: nullableNumber,
  supportsStreaming: nullableFlag,
  supportsTools: nullableFlag,
  maxBatchSize: nullablePositive,
  ...modelContentFields,
}
const create = {
  ...fields,
  ...sharedServiceCreate,
  ...modelContentCreate,
  engine: nullableText.default(null),
  modelVersion: nullableText.default(null),
  contextWindowTokens: nullablePositive.default(null),
  maxOutputTokens: nullablePositive.default(null),
  temperatureMin: nullableNumber.default(null),
  temperatureMax: nullableNumber.default(null),
  supportsStreaming: nullableFlag.default(null),
  supportsTools: nullableFlag.default(null),
  maxBatchSize: nullablePositive.default(null),
}

export const LlmService = z
  .object({ llmServiceId: z.uuid(), ...serviceSystemFields, ...fields, ...optionalSampling })
  .meta({ id: 'LlmService' })
export type LlmService = z.output<typeof LlmService>

export const LlmCreate = z.object({ ...create, ...optionalSampling, llmServiceId: z.uuid().optional() })
export type LlmCreate = z.output<typeof LlmCreate>
export type LlmCreateInput = z.input<typeof LlmCreate>
const LlmPatch = z.object({ ...fields, ...sampling, ...sharedServicePatch }).partial()

const probeResults =
  'Your request fails if the provider does not have the model, or if the model does not support chat. Other provider errors are ignored.'

const errors = ['workspace_not_found', 'llm_service_not_found'] as const satisfies ErrorCode[]

export const llmServices = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/llm-services',
    summary: 'List LLM services',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(LlmService) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/llm-services',
    summary: 'Create an LLM service',
    description: `Stores the settings for calling a language model. If the credential can be read, the runtime tests the service by requesting one token from the provider. ${probeResults} ${destinationAccess}`,
    access: needs('write:services'),
    body: { ...serviceBody, schema: LlmCreate },
    replies: { 201: LlmService },
    errors: ['workspace_not_found', 'conflict', 'llm_model_not_chat', 'llm_model_unavailable'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/llm-services/:llmServiceId',
    summary: 'Show an LLM service',
    access: member('read:content'),
    query: problemQuery,
    replies: { 200: LlmService.extend(withProblem) },
    errors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/llm-services/:llmServiceId',
    summary: 'Change an LLM service',
    description: `Changes only the fields that you send. If you send the provider, model, credential or address, and the credential can be read, the runtime tests the service by requesting one token from the provider. ${probeResults} ${destinationAccess}`,
    access: needs('write:services'),
    body: { ...serviceBody, schema: LlmPatch },
    replies: { 200: LlmService },
    errors: [...errors, 'llm_model_not_chat', 'llm_model_unavailable'],
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/llm-services/:llmServiceId',
    summary: 'Delete an LLM service',
    access: needs('write:services'),
    replies: { 204: null },
    errors: [...errors, 'llm_service_in_use'],
  }),
}
