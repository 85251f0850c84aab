import { redact } from '../../base/redact.ts'

/** Maximum length in UTF-16 units of the part of a provider's message that is searched for patterns. */
export const searchedCharsMax = 2_000
/** Maximum length in UTF-16 units of the code, type or parameter in an error. */
const wordCharsMax = 200
/** Maximum length in UTF-16 units of a provider's message that is shown. */
const shownCharsMax = 300

/** Kinds of failures that have different solutions. */
export type FailureKind =
  | 'context_overflow'
  | 'content_policy'
  | 'payment'
  | 'too_large'
  | 'no_tools'
  | 'no_images'
  | 'tool_call'
  | 'routing'
  | 'credential'
  | 'rate_limit'
  | 'overloaded'
  | 'reasoning_budget'

/** Error details in a provider's response. */
export interface ProviderReason {
  readonly code?: string
  readonly type?: string
  /** Name of the request parameter that the provider rejected. */
  readonly param?: string
  /** Untrusted text. Use {@link formatProviderReason} to show it. */
  readonly message?: string
}

/** Thrown when a request to a provider fails. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'

  constructor(
    /** Completes a sentence about the service, for example `could not be reached`. */
    readonly reason: string,
    readonly facts: {
      readonly hint?: string
      readonly providerStatus?: number
      readonly kind?: FailureKind
    } = {},
    readonly providerReason: ProviderReason = {},
    cause?: unknown,
  ) {
    super(reason, { cause })
  }
}

/** Returns the failure of a request that timed out. */
export function providerTimeout(cause: unknown): ProviderFailure {
  const hint = 'Increase requestTimeoutMs of the service, or use a faster model.'
  return new ProviderFailure('did not respond in time', { hint }, {}, cause)
}

/**
 * Returns the error details in a response. Supports the format of OpenAI and its variants: a list that contains the
 * error (Gemini), an error that is a string (Ollama), no `error` field (vLLM, Mistral), and an error inside the error
 * (OpenRouter).
 *
 * @param body  parsed JSON of the response, or one event of a stream
 */
export function providerReasonIn(body: unknown): ProviderReason {
  const answer = Array.isArray(body) ? body[0] : body
  const error = fieldOfUntrusted(answer, 'error') ?? answer
  if (typeof error === 'string') return { message: error.slice(0, searchedCharsMax) }
  const code = fieldOfUntrusted(error, 'code')
  const type = fieldOfUntrusted(error, 'type')
  const param = fieldOfUntrusted(error, 'param')
  const message = messageIn(error)
  return {
    ...(typeof code === 'string' ? { code: code.slice(0, wordCharsMax) } : {}),
    ...(typeof type === 'string' ? { type: type.slice(0, wordCharsMax) } : {}),
    ...(typeof param === 'string' ? { param: param.slice(0, wordCharsMax) } : {}),
    ...(message === '' ? {} : { message: message.slice(0, searchedCharsMax) }),
  }
}

function messageIn(error: unknown): string {
  const texts = [
    fieldOfUntrusted(error, 'message'),
    fieldOfUntrusted(error, 'detail'),
    fieldOfUntrusted(fieldOfUntrusted(error, 'metadata'), 'raw'),
  ].flatMap(textsIn)
  return [...new Set(texts)].join(': ')
}

/** Returns the strings in a message, which can also be a list of problems, or JSON in a string. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [innerMessage(value) ?? value].filter(text => text.trim() !== '')
  const problems = Array.isArray(value) ? value : fieldOfUntrusted(value, 'detail')
  if (!Array.isArray(problems)) return []
  return problems.slice(0, 3).map(problem => {
    const location = fieldOfUntrusted(problem, 'loc')
    const text = fieldOfUntrusted(problem, 'msg') ?? fieldOfUntrusted(problem, 'message')
    const prefix = Array.isArray(location) ? `${location.map(plainText).join('.')}: ` : ''
    return `${prefix}${plainText(text)}`
  })
}

/** Converts a string or a number to a string. Returns '' for other values, because converting an object can throw. */
export function plainText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** Returns the message in an error that is JSON in a string; undefined for other strings. */
function innerMessage(text: string): string | undefined {
  if (!/^\s*[[{]/.test(text) || text.length > searchedCharsMax * 4) return undefined
  try {
    return providerReasonIn(JSON.parse(text)).message
  } catch {
    return undefined
  }
}

/** Matches partially masked keys in providers' messages, such as `sk-proj-****abcd`. */
const maskedKey = /\b(?:sk|pk|rk|key|api)[-_][\w*.…-]{4,}/g

/**
 * Returns a provider's message for display: one line of at most 300 characters, without control characters and secrets.
 *
 * @param credential  credential of the request
 */
export function formatProviderReason({ message = '' }: ProviderReason, credential = ''): string {
  const line = (credential === '' ? message : message.replaceAll(credential, '[redacted]'))
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
  const redactedLine = redact(line).replace(maskedKey, '[redacted]')
  return redactedLine.length <= shownCharsMax ? redactedLine : `${redactedLine.slice(0, shownCharsMax - 1)}…`
}

/** Returns a field of untrusted JSON; undefined if the value is not an object. */
export function fieldOfUntrusted(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}
