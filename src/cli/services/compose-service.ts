import { nearestMatch } from '../../base/nearest-match.ts'
import type { Client } from '../../client/client.ts'
import { llmModels } from '../../contract/models.ts'
import {
  builtInProvider,
  chatProviders,
  isChatProvider,
  localProvider,
  providers,
  rerankProtocols,
} from '../../contract/providers.ts'
import { UsageError } from '../errors.ts'
import type { NamedResource } from '../find/resolve.ts'
import { type ServiceType, serviceTypeDetails, serviceTypes, typeOfPreset } from './service-types.ts'

/**
 * Prompts for missing values. Both methods return `value` if it is defined, and throw a usage error if the user
 * cannot be prompted.
 */
export interface ServicePrompts {
  readonly client: Client
  /** True if the user can be prompted. */
  readonly canAsk: boolean
  promptForFlag(flag: string, value: string | undefined, question: string): Promise<string>
  chooseForFlag(
    flag: string,
    value: string | undefined,
    question: string,
    choices: () => Promise<readonly NamedResource[]>,
  ): Promise<string>
}

type Fields = Readonly<Record<string, unknown>>

/** Returns the type from the flag, or else the type of the preset. Prompts if both are missing. */
export async function chooseServiceType(
  prompts: ServicePrompts,
  typeFlag: string | undefined,
  preset: string | undefined,
): Promise<ServiceType> {
  const presetType = preset === undefined ? undefined : typeOfPreset(preset)
  if (preset !== undefined && presetType === undefined)
    throw new UsageError(
      `there is no preset "${preset}"`,
      serviceTypes.flatMap(type => Object.keys(serviceTypeDetails[type].presets)),
    )
  if (presetType !== undefined && typeFlag !== undefined && typeFlag !== presetType)
    throw new UsageError(`${preset} is a preset of ${presetType} services`, [`--type ${presetType}`])
  const choices = async () => serviceTypes.map(type => ({ id: type, name: serviceTypeDetails[type].noun }))
  const type = typeFlag ?? presetType
  return (await prompts.chooseForFlag('--type', type, 'Which type of service?', choices)) as ServiceType
}

/**
 * Returns the fields of a new service from its preset, flags and prompts.
 *
 * @throws UsageError  the provider is unknown, and there is no endpoint
 */
export async function composeService(
  prompts: ServicePrompts,
  type: ServiceType,
  preset: string | undefined,
  fields: Fields,
): Promise<Fields> {
  const body: Record<string, unknown> = { ...(await choosePreset(prompts, type, preset, fields)), ...fields }
  for (const [field, flag] of Object.entries(serviceTypeDetails[type].requiredFlags)) {
    if (body[field] !== undefined) continue
    const choices = await findChoices(prompts, type, field, body)
    const value = choices
      ? await prompts.chooseForFlag(`--${flag}`, undefined, `Which ${flag}?`, async () => choices)
      : await prompts.promptForFlag(`--${flag}`, undefined, flag[0]!.toUpperCase() + flag.slice(1))
    body[field] = field === 'embeddingDimension' ? Number(value) : value
  }
  requireProviderOrEndpoint(type, body)
  return body
}

/** Providers by service type. */
const providersByType: Readonly<Partial<Record<ServiceType, readonly string[]>>> = {
  llm: chatProviders,
  embedding: Object.keys(providers),
  reranking: [...rerankProtocols, ...chatProviders],
}
/** Embedding providers that run in the process of the runtime. */
const inProcessProviders: readonly string[] = [builtInProvider, localProvider, 'mock']

function requireProviderOrEndpoint(type: ServiceType, { provider, endpointBaseUrl }: Fields): void {
  const knownProviders = providersByType[type]
  const name = String(provider)
  if (!knownProviders || knownProviders.includes(name) || endpointBaseUrl) return
  if (type === 'embedding' && inProcessProviders.includes(name)) return
  const similar = nearestMatch(name, knownProviders)
  throw new UsageError(`there is no provider "${name}" for ${serviceTypeDetails[type].noun}s`, [
    ...(similar ? [`did you mean --provider ${similar}?`] : [`providers: ${knownProviders.join(', ')}`]),
    'for another OpenAI-compatible server: --provider openai --endpoint URL',
  ])
}

/** Returns the fields of the preset. Prompts for a preset only if there are no flags at all. */
async function choosePreset(
  prompts: ServicePrompts,
  type: ServiceType,
  presetFlag: string | undefined,
  fields: Fields,
) {
  const { presets } = serviceTypeDetails[type]
  const choices = Object.keys(presets).map(name => ({ id: name, name }))
  const isPrompted =
    presetFlag === undefined && prompts.canAsk && choices.length > 0 && Object.keys(fields).length === 0
  const noPreset = { id: '', name: 'none' }
  const preset = isPrompted
    ? await prompts.chooseForFlag('--preset', undefined, 'Which preset?', async () => [...choices, noPreset])
    : presetFlag
  return preset ? presets[preset] : {}
}

/** Returns the values to choose from; undefined if the user has to type the value. */
async function findChoices(
  { client, canAsk }: ServicePrompts,
  type: ServiceType,
  field: string,
  { provider, endpointBaseUrl }: Fields,
): Promise<readonly NamedResource[] | undefined> {
  if (!canAsk) return undefined
  if (field === 'provider') return providersByType[type]?.map(name => ({ id: name, name }))
  if (type !== 'llm' || field !== 'modelName' || !isChatProvider(String(provider))) return undefined
  const name = String(provider) as (typeof chatProviders)[number]
  const baseUrl = typeof endpointBaseUrl === 'string' ? endpointBaseUrl : undefined
  // The models of a custom server differ from those of the provider whose API it uses. Only Ollama can list them.
  if (baseUrl !== undefined && name !== 'ollama') return undefined
  const { models } = await client.call(llmModels.list, { query: { provider: name, baseUrl } })
  return models.map(({ id, name: title }) => ({ id, name: title === id ? id : `${id}  ${title}` }))
}
