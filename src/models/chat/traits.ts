import type { ProviderReason } from '../provider/failure.ts'

/** Request format of a model at an endpoint, as learned from its refusals. */
export interface ModelTraits {
  readonly tokenLimit: 'max_tokens' | 'max_completion_tokens'
  /** Streams are requested without `stream_options`, so without token counts. */
  readonly omitsStreamOptions: boolean
  /** Reasoning is sent back with the answers of the turn. */
  readonly wantsReasoning: boolean
  /** Tools are defined even if they may not be called, because earlier messages call them. */
  readonly definesTools: boolean
  /** IDs of tool calls have nine letters or digits. */
  readonly wantsShortIds: boolean
  /** The system prompt is part of the first question. */
  readonly lacksSystemRole: boolean
  /** The model refused tools. */
  readonly lacksTools: boolean
  /** The model refused images. */
  readonly lacksImages: boolean
}

/** Returns the traits of a model that has refused nothing yet. */
export function usualTraits(host: string): ModelTraits {
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
 * Returns the traits after a refusal that says how to change the request; undefined if it says nothing new.
 *
 * @param body  the request that was refused
 */
export function learnedFrom(
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

/** Words of providers for a parameter that they do not support. */
const refuses =
  /unsupported|not supported|unrecognized|unknown|unexpected|not permitted|not allowed|not available|invalid|only (?:allowed|supported)/i

/** Message of chat templates without a system role, and of Gemini for such models. */
const systemRefused = /system role (?:is )?not supported|developer instruction is not enabled/i

/** Message of Anthropic and its proxies. */
const toolsMissing =
  /must define `?tools|`?tools=?`? (?:param|must be|is required)|without specifying `?tools/i

/** Names of the settings behind the fields of a request. */
const settingOf: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  reasoning_effort: 'reasoningEffort',
  stop: 'stop',
}

/** Returns the setting that a refusal names; undefined if the request does not have it. */
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
