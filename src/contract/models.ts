import { z } from 'zod'
import { anyCaller } from './access.ts'
import { chatProviders } from './providers.ts'
import { route } from './route.ts'
import { endpointUrl } from './services/fields.ts'

export const LlmModel = z
  .object({
    id: z.string(),
    name: z.string(),
    supportsTools: z
      .boolean()
      .nullable()
      .meta({ description: 'true if the model can call tools; null if the provider does not report it' }),
    recommended: z.boolean(),
  })
  .meta({ id: 'LlmModel' })
export type LlmModel = z.output<typeof LlmModel>

export const LlmModels = z.object({
  provider: z.enum(chatProviders),
  source: z
    .enum(['live', 'fallback'])
    .meta({ description: '`live` is the list from the provider, `fallback` a built-in list' }),
  models: z.array(LlmModel),
})
export type LlmModels = z.output<typeof LlmModels>

export const llmModels = {
  list: route({
    method: 'GET',
    path: '/api/v1/llm-models',
    summary: 'List models of a provider',
    access: anyCaller,
    query: z.object({
      provider: z.enum(chatProviders).optional(),
      baseUrl: endpointUrl.optional().meta({ description: 'address of the Ollama server' }),
    }),
    replies: { 200: LlmModels },
    errors: [],
  }),
}
