import type { ProviderReason } from '../provider/provider-failure.ts'

/** Request format that a model at an endpoint accepts, learned from error messages. */
export interface ModelTraits {
  readonly tokenLimit: 'max_tokens' | 'max_completion_tokens'
  /** True if requests for streams must not contain `stream_options`. These streams have no token counts. */
  readonly omitsStreamOptions: boolean
  /** True if requests must contain the reasoning of earlier answers in the turn. */
  readonly wantsReasoning: boolean
  /**
   * True if requests must define the tools even when the model may not call any, because earlier messages contain calls.
   */
  readonly definesTools: boolean
  /** True if tool call IDs must consist of nine letters or digits. */
  readonly wantsShortIds: boolean
  /** True if the system prompt must be part of the first user message. */
  readonly lacksSystemRole: boolean
  /** True if the model does not support tools. */
  readonly lacksTools: boolean
  /** True if the model does not support images. */
  readonly lacksImages: boolean
}

/** Returns the traits to assume for a model before its first refusal. */
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
 * Returns the traits after a provider rejected a request, if its message shows how to change the request; undefined
 * otherwise.
 *
 * @param body  the rejected request
 */
export function traitsAfterRefusal(
  { message = '', param = '' }: ProviderReason,
  body: Readonly<Record<string, unknown>>,
  traits: ModelTraits,
): ModelTraits | undefined {
  const text = `${param} ${message}`
  if (body.max_tokens !== undefined && /max_completion_tokens/.test(text))
    return { ...traits, tokenLimit: 'max_completion_tokens' }
  const isUnsupported = (name: string) =>
    body[name] !== undefined && text.includes(name) && unsupportedPattern.test(text)
  if (isUnsupported('max_completion_tokens')) return { ...traits, tokenLimit: 'max_tokens' }
  if (isUnsupported('stream_options')) return { ...traits, omitsStreamOptions: true }
  if (!traits.wantsReasoning && /reasoning_content/.test(text) && /passed back|missing|required/.test(text))
    return { ...traits, wantsReasoning: true }
  if (!traits.definesTools && body.tools === undefined && toolsMissing.test(text))
    return { ...traits, definesTools: true }
  if (!traits.wantsShortIds && /tool call id\b.*\blength of 9\b/i.test(text))
    return { ...traits, wantsShortIds: true }
  if (!traits.lacksSystemRole && systemRoleMissing.test(text)) return { ...traits, lacksSystemRole: true }
  return undefined
}

/** Matches words in providers' messages about an unsupported parameter. */
const unsupportedPattern =
  /unsupported|not supported|unrecognized|unknown|unexpected|not permitted|not allowed|not available|invalid|only (?:allowed|supported)/i

/** Matches messages of chat templates and of Gemini about an unsupported system role. */
const systemRoleMissing = /system role (?:is )?not supported|developer instruction is not enabled/i

/** Matches messages of Anthropic, and of proxies to it, about tool calls without tool definitions. */
const toolsMissing =
  /must define `?tools|`?tools=?`? (?:param|must be|is required)|without specifying `?tools/i

/** Names of settings of agents and services, by request field. */
const settingsByField: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  reasoning_effort: 'reasoningEffort',
  stop: 'stop',
}

/** Returns the setting that a provider rejected; undefined if it rejected something else. */
export function refusedSetting(
  { message = '', param = '' }: ProviderReason,
  body: Readonly<Record<string, unknown>>,
): string | undefined {
  const field = Object.keys(settingsByField).find(
    name =>
      body[name] !== undefined &&
      (param === name || (unsupportedPattern.test(message) && new RegExp(`\\b${name}\\b`).test(message))),
  )
  return field && settingsByField[field]
}
