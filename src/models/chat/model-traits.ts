import type { ProviderReason } from '../provider/provider-failure.ts'

/** Request format that a model at an endpoint accepts, learned from its refusals. */
export interface ModelTraits {
  readonly tokenLimit: 'max_tokens' | 'max_completion_tokens'
  /** True if streams are requested without `stream_options`, and therefore without token counts. */
  readonly omitsStreamOptions: boolean
  /** True if reasoning is sent back with the answers of the turn. */
  readonly wantsReasoning: boolean
  /**
   * True if tools are defined even when the model may not call them, because earlier messages contain calls.
   */
  readonly definesTools: boolean
  /** True if IDs of tool calls must have nine letters or digits. */
  readonly wantsShortIds: boolean
  /** True if the system prompt is sent as part of the first user message. */
  readonly lacksSystemRole: boolean
  /** True if the model refused tools. */
  readonly lacksTools: boolean
  /** True if the model refused images. */
  readonly lacksImages: boolean
}

/** Returns the traits of a model before any refusal. */
export function initialTraits(host: string): ModelTraits {
  return {
    tokenLimit: host === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens',
    omitsStreamOptions: false,
    wantsReasoning: false,
    definesTools: false,
    wantsShortIds: false,
    lacksSystemRole: false,
    lacksTools: false,
    lacksImages: false,
  }
}

/**
 * Returns the traits after a refusal that shows how to change the request; undefined if it shows nothing new.
 *
 * @param body  the request that was refused
 */
export function traitsAfterRefusal(
  { message = '', param = '' }: ProviderReason,
  body: Readonly<Record<string, unknown>>,
  traits: ModelTraits,
): ModelTraits | undefined {
  const text = `${param} ${message}`
  if (body.max_tokens !== undefined && /max_completion_tokens/.test(text))
    return { ...traits, tokenLimit: 'max_completion_tokens' }
  const isNamed = (name: string) => body[name] !== undefined && text.includes(name) && refuses.test(text)
  if (isNamed('max_completion_tokens')) return { ...traits, tokenLimit: 'max_tokens' }
  if (isNamed('stream_options')) return { ...traits, omitsStreamOptions: true }
  if (!traits.wantsReasoning && /reasoning_content/.test(text) && /passed back|missing|required/.test(text))
    return { ...traits, wantsReasoning: true }
  if (!traits.definesTools && body.tools === undefined && toolsMissing.test(text))
    return { ...traits, definesTools: true }
  if (!traits.wantsShortIds && /tool call id\b.*\blength of 9\b/i.test(text))
    return { ...traits, wantsShortIds: true }
  if (!traits.lacksSystemRole && systemRefused.test(text)) return { ...traits, lacksSystemRole: true }
  return undefined
}

/** Words in providers' messages about an unsupported parameter. */
const refuses =
  /unsupported|not supported|unrecognized|unknown|unexpected|not permitted|not allowed|not available|invalid|only (?:allowed|supported)/i

/** Message of chat templates without a system role, and of Gemini for models without one. */
const systemRefused = /system role (?:is )?not supported|developer instruction is not enabled/i

/** Message of Anthropic and its proxies about calls without tool definitions. */
const toolsMissing =
  /must define `?tools|`?tools=?`? (?:param|must be|is required)|without specifying `?tools/i

/** Setting of an agent or service for each field of a request. */
const settingOf: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  reasoning_effort: 'reasoningEffort',
  stop: 'stop',
}

/** Returns the setting that a refusal is about; undefined if the request does not contain one. */
export function refusedSetting(
  { message = '', param = '' }: ProviderReason,
  body: Readonly<Record<string, unknown>>,
): string | undefined {
  const named = Object.keys(settingOf).find(
    name =>
      body[name] !== undefined &&
      (param === name || (refuses.test(message) && new RegExp(`\\b${name}\\b`).test(message))),
  )
  return named && settingOf[named]
}
