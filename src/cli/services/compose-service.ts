import type { Client } from '../../client/client.ts'
import { llmModels } from '../../contract/models.ts'
import { builtInProvider, chatProviders, isChatProvider, providers } from '../../contract/providers.ts'
import { UsageError } from '../errors.ts'
import type { NamedResource } from '../find/resolve.ts'
import { nearestMatch } from '../terminal/nearest-match.ts'
import { type ServiceType, serviceKinds, serviceTypes, typeOfPreset } from './kinds.ts'

/** Prompts for missing values. Throws a usage error if the user cannot be prompted. */
export interface ServicePrompts {
  readonly client: Client
  readonly canAsk: boolean
  promptForFlag(flag: string, given: string | undefined, question: string): Promise<string>
  chooseForFlag(
    flag: string,
    given: string | undefined,
    question: string,
    choices: () => Promise<readonly NamedResource[]>,
  ): Promise<string>
}

type Fields = Readonly<Record<string, unknown>>

/** Returns the type that was given, or the type of the preset. */
export async function chooseServiceType(
  prompts: ServicePrompts,
  given: string | undefined,
  preset: string | undefined,
): Promise<ServiceType> {
  const implied = preset === undefined ? undefined : typeOfPreset(preset)
  if (preset !== undefined && implied === undefined)
    throw new UsageError(
      `there is no preset "${preset}"`,
      serviceTypes.flatMap(type => Object.keys(serviceKinds[type].presets)),
    )
  if (implied !== undefined && given !== undefined && given !== implied)
    throw new UsageError(`${preset} is a preset of ${implied} services`, [`--type ${implied}`])
  const choices = async () => serviceTypes.map(type => ({ id: type, name: serviceKinds[type].noun }))
  return (await prompts.chooseForFlag('--type', given ?? implied, 'Which kind?', choices)) as ServiceType
}

/**
 * Returns the fields of a new service from its preset, flags and prompts.
 *
 * @throws UsageError  the provider is unknown, and no endpoint was given
 */
export async function composeService(
  prompts: ServicePrompts,
  type: ServiceType,
  preset: string | undefined,
  given: Fields,
): Promise<Fields> {
  const body: Record<string, unknown> = { ...(await choosePreset(prompts, type, preset, given)), ...given }
  for (const [field, flag] of Object.entries(serviceKinds[type].requiredFlags)) {
    if (body[field] !== undefined) continue
    const choices = await findChoices(prompts, type, field, body)
    const text = choices
      ? await prompts.chooseForFlag(`--${flag}`, undefined, `Which ${flag}?`, async () => choices)
      : await prompts.promptForFlag(`--${flag}`, undefined, flag[0]!.toUpperCase() + flag.slice(1))
    body[field] = field === 'embeddingDimension' ? Number(text) : text
  }
  requireProviderOrEndpoint(type, body)
  return body
}

/** Providers by service type. Reranking services are only stored, so any name is accepted. */
const providersOf: Readonly<Partial<Record<ServiceType, readonly string[]>>> = {
  llm: chatProviders,
  embedding: Object.keys(providers),
}
/** Embedding providers that need no server. */
const withoutServer: readonly string[] = [builtInProvider, 'mock']

function requireProviderOrEndpoint(type: ServiceType, { provider, endpointBaseUrl }: Fields): void {
  const known = providersOf[type]
  const name = String(provider)
  if (!known || known.includes(name) || endpointBaseUrl) return
  if (type === 'embedding' && withoutServer.includes(name)) return
  const close = nearestMatch(name, known)
  throw new UsageError(`there is no provider "${name}" for ${serviceKinds[type].noun}s`, [
    ...(close ? [`did you mean --provider ${close}?`] : [`providers: ${known.join(', ')}`]),
    'for another OpenAI-compatible server: --provider openai --endpoint URL',
  ])
}

async function choosePreset(
  prompts: ServicePrompts,
  type: ServiceType,
  given: string | undefined,
  fields: Fields,
) {
  const { presets } = serviceKinds[type]
  const offered = Object.keys(presets).map(name => ({ id: name, name }))
  const isPrompted =
    given === undefined && prompts.canAsk && offered.length > 0 && Object.keys(fields).length === 0
  const own = { id: '', name: 'none' }
  const chosen = isPrompted
    ? await prompts.chooseForFlag('--preset', undefined, 'Which preset?', async () => [...offered, own])
    : given
  return chosen ? presets[chosen] : {}
}

/** Returns the values that the runtime supports; undefined if the user has to type one. */
async function findChoices(
  { client, canAsk }: ServicePrompts,
  type: ServiceType,
  field: string,
  { provider, endpointBaseUrl }: Fields,
): Promise<readonly NamedResource[] | undefined> {
  if (!canAsk) return undefined
  if (field === 'provider') return providersOf[type]?.map(name => ({ id: name, name }))
  if (type !== 'llm' || field !== 'modelName' || !isChatProvider(String(provider))) return undefined
  const name = String(provider) as (typeof chatProviders)[number]
  const baseUrl = typeof endpointBaseUrl === 'string' ? endpointBaseUrl : undefined
  // A custom server has other models than the provider with the same API. Only Ollama can list them.
  if (baseUrl !== undefined && name !== 'ollama') return undefined
  const { models } = await client.call(llmModels.list, { query: { provider: name, baseUrl } })
  return models.map(({ id, name: title }) => ({ id, name: title === id ? id : `${id}  ${title}` }))
}
