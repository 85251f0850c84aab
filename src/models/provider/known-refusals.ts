import { type FailureKind, fieldOfUntrusted, type ProviderReason, plainText } from './provider-failure.ts'

interface KnownRefusal {
  readonly kind: FailureKind
  /** Completes a sentence about the service. Not set if the status says enough. */
  readonly reason?: string
  readonly hint: string
  readonly statuses?: readonly number[]
  /** Matches the code, type or message of the provider's error. */
  readonly pattern?: RegExp
}

const rateLimitHint = 'The provider limits requests. Wait, or request a higher limit from the provider.'

/** Known refusals. The first one that matches applies. */
const knownRefusals: readonly KnownRefusal[] = [
  {
    kind: 'no_images',
    reason: 'has a model that cannot read images',
    hint: 'Use a model that reads images, or send the question without images.',
    pattern:
      /(?:not|n't) support (?:image|vision|multimodal)|support image input|images? (?:input )?(?:is|are) not (?:supported|enabled)|image_url[`'"]? is only supported by certain models|unknown variant `image_url`|is not a multimodal model|at most 0 images?|content' : value must be a string/i,
  },
  {
    kind: 'no_tools',
    reason: 'cannot call tools',
    hint: 'Set supportsTools of the service to false, or use a model that can call tools.',
    pattern:
      /does not support (?:tools|tool use|tool calling|function)|support tool use|(?:tools?|tool[ _](?:use|calls?|calling|choice)|function[ _]calling)[`'"]? (?:is|are) (?:not|un)\s?(?:supported|available|enabled)|tool choice requires|--enable-auto-tool-choice|tools param requires --jinja/i,
  },
  {
    kind: 'tool_call',
    reason: 'could not read a tool call that its model wrote',
    hint: 'Retry, or use another model.',
    pattern: /tool_use_failed|failed to call a function/i,
  },
  {
    kind: 'routing',
    reason: 'found no endpoint that matches the routing rules',
    hint: 'Check the privacy settings of the account at the provider. For OpenRouter, chat.allowDataCollection in the configuration permits endpoints that store prompts.',
    pattern:
      /no (?:endpoints?|allowed providers?)\b.{0,80}\b(?:data policy|guardrail|privacy|available for the selected|matching your|requested parameters)/i,
  },
  {
    kind: 'reasoning_budget',
    reason: 'used all of its output tokens before it wrote an answer',
    hint: 'Increase maxOutputTokens of the service, or decrease its reasoningEffort.',
    pattern: /could not finish the message because max_tokens/i,
  },
  {
    kind: 'context_overflow',
    reason: 'rejected the request, because it is longer than the context window of the model',
    hint: "Set contextWindowTokens of the service to the model's context window, or start a new conversation.",
    pattern:
      /context_length_exceeded|exceed_context_size|maximum context length|context (?:length|window|size)\b.{0,60}\bexceed|exceeds?\b.{0,60}\bcontext (?:length|window|size)|prompt is too long|input (?:is|length|tokens?)\b.{0,40}\b(?:too long|exceed)|too many (?:input )?tokens|reduce (?:the length|your prompt)|input token count\b.{0,60}\bexceeds/i,
  },
  {
    kind: 'content_policy',
    reason: 'rejected the request because of its content policy',
    hint: 'Rephrase the question, or use another model.',
    pattern:
      /content_filter|content_policy|content management policy|responsible ?ai|content policy|usage polic|moderation|\bflagged\b|prohibited_content|data_inspection_failed|safety (?:settings|system|filters?)/i,
  },
  {
    // Must precede `payment`, because such messages can mention quotas and billing.
    kind: 'rate_limit',
    hint: rateLimitHint,
    pattern: /\b(?:try again|retry) in \d/i,
  },
  {
    kind: 'payment',
    reason: 'requires payment',
    hint: 'Add credits to the account at the provider, or use another key.',
    statuses: [402],
    pattern:
      /insufficient[_ ](?:quota|balance|credits?|funds)|exceeded your current quota|credit balance is too low|billing|payment required/i,
  },
  {
    kind: 'too_large',
    reason: 'rejected the request because it is too large',
    hint: 'Decrease contextWindowTokens of the service, or start a new conversation.',
    statuses: [413],
    pattern: /request (?:entity |body )?too large/i,
  },
  {
    kind: 'credential',
    hint: 'The provider rejected the credential. Check the key that credentialRef refers to.',
    statuses: [401, 403],
  },
  {
    kind: 'rate_limit',
    hint: rateLimitHint,
    statuses: [429],
    pattern: /rate_?limit/i,
  },
  {
    kind: 'overloaded',
    reason: 'is overloaded',
    hint: 'The provider has too many requests. Retry in a moment.',
    statuses: [529],
    pattern: /overloaded|engine_overloaded|insufficient_system_resource/i,
  },
]

/** Kinds of refusals after which a retry cannot succeed. */
const finalKinds: ReadonlySet<FailureKind> = new Set([
  'context_overflow',
  'content_policy',
  'payment',
  'too_large',
  'no_tools',
  'no_images',
  'routing',
  'reasoning_budget',
])

/** Returns the known refusal that a response matches; undefined for any other response. */
export function findKnownRefusal(
  status: number | undefined,
  providerReason: ProviderReason,
): KnownRefusal | undefined {
  const text = [providerReason.code, providerReason.type, providerReason.message].join(' ')
  return knownRefusals.find(
    ({ statuses, pattern }) => (status && statuses?.includes(status)) || (pattern?.test(text) ?? false),
  )
}

/** Returns true if a repeated request cannot succeed. */
export function isFinalRefusal(status: number, providerReason: ProviderReason): boolean {
  const kind = findKnownRefusal(status, providerReason)?.kind
  return kind !== undefined && finalKinds.has(kind)
}

/** Returns a hint for an error status that matches no known refusal. */
export function hintForStatus(status: number): string {
  if (status === 404) return 'Check modelName, endpointBaseUrl and endpointPath of the service.'
  if (status >= 500) return 'The provider has an internal problem. Retry in a moment.'
  return 'Check modelName and endpointBaseUrl of the service, and for an embedding service its embeddingDimension.'
}

/**
 * Returns the error in an event or in a whole response, in any known format; undefined if there is no error.
 */
export function errorIn(body: unknown): unknown {
  const first = Array.isArray(body) ? body[0] : body
  const error = fieldOfUntrusted(first, 'error')
  if (error) return error
  if (fieldOfUntrusted(first, 'object') === 'error') return first
  const choices = fieldOfUntrusted(first, 'choices')
  const choice = Array.isArray(choices) ? choices[0] : undefined
  return (
    fieldOfUntrusted(choice, 'error') ??
    (fieldOfUntrusted(choice, 'finish_reason') === 'error' ? {} : undefined)
  )
}

/** HTTP statuses for errors that contain only a code or a type. */
const statusByWord: readonly (readonly [words: RegExp, status: number])[] = [
  [/rate_?limit|quota|too_many_requests/i, 429],
  [/overloaded/i, 529],
  [/server_error|internal|unavailable|api_error|bad_gateway/i, 503],
  [/authentication/i, 401],
  [/not_found/i, 404],
  [/invalid_request|bad_?request/i, 400],
]

/** Returns the HTTP status of an error, from 400 to 599; undefined if unknown. */
export function statusOf(error: unknown): number | undefined {
  const statuses = ['code', 'status', 'status_code'].map(name =>
    Number(plainText(fieldOfUntrusted(error, name)) || NaN),
  )
  const status = statuses.find(number => Number.isInteger(number) && number >= 400 && number < 600)
  if (status !== undefined) return status
  const words = ['code', 'type', 'status'].map(name => plainText(fieldOfUntrusted(error, name))).join(' ')
  return statusByWord.find(([pattern]) => pattern.test(words))?.[1]
}
