import { readWhole } from '../base/read-whole.ts'
import { type EndpointRefused, refusalIn } from './guard.ts'
import { type Outbound, type OutboundAnswer, retryAfterMs } from './outbound.ts'

const answerBytesMax = 64_000_000
/** A provider that asks for a longer pause is not asked again. */
const retryAfterMsMax = 20_000
const timeoutMsDefault = 30_000
const timeoutMsMax = 600_000
/** Of what a provider gives as its reason, as much as a person reads: it is searched for words. */
const toldCharsMax = 2_000

type Sdk = typeof import('openai')

/** How a provider is asked. */
export interface ProviderCalls {
  readonly endpoint: URL
  readonly credential: string | undefined
  readonly timeoutMs: number | null
  /** How often a request that timed out, could not connect, or was answered with 408, 409, 429 or 5xx is repeated. */
  readonly retriesMax: number
  /** Beside those that every request has. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Requests to one provider. */
export interface ProviderClient {
  /**
   * @param path  below the endpoint
   * @returns the JSON that the provider answers
   * @throws ProviderFailure
   */
  post(path: string, body: object, signal: AbortSignal): Promise<unknown>
}

/** A request that came to nothing. Its message is ours; what the provider said is in `told` and in the cause. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'

  constructor(
    /** Completes a sentence about the service: `could not be reached`. */
    readonly reason: string,
    readonly facts: { readonly hint?: string; readonly providerStatus?: number } = {},
    /** What the provider gives as its reason; for us to read, and not to repeat. */
    readonly told: { readonly code?: string; readonly message?: string } = {},
    cause?: unknown,
  ) {
    super(reason, { cause })
  }
}

/**
 * A client of a provider. Nothing is left to the SDK's own reading of the environment, and it never holds the
 * credential.
 */
export async function openClient(calls: ProviderCalls, outbound: Outbound): Promise<ProviderClient> {
  const sdk = await import('openai')
  const { endpoint } = calls
  const refused = new AbortController()
  const send = unlessRefused(outbound, refusal =>
    refused.abort(
      new ProviderFailure(`cannot be dialled: ${refusal.message}`, { hint: refusal.hint }, {}, refusal),
    ),
  )
  const client = new sdk.OpenAI({
    apiKey: 'set in exchange',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    baseURL: endpoint.origin + endpoint.pathname.replace(/\/$/, ''),
    defaultQuery: Object.fromEntries(endpoint.searchParams),
    maxRetries: calls.retriesMax,
    timeout: Math.min(calls.timeoutMs ?? timeoutMsDefault, timeoutMsMax),
    logLevel: 'off',
    fetch: exchange(calls, send),
  })
  return {
    post: (path, body, signal) =>
      client
        .post<unknown>(path, { body, signal: AbortSignal.any([signal, refused.signal]) })
        .catch((error: unknown) => {
          refused.signal.throwIfAborted()
          throw failureOf(sdk, error)
        }),
  }
}

/** Tells of a dial that is refused at once: the SDK would try it again, and hide the reason. */
function unlessRefused(outbound: Outbound, tell: (refusal: EndpointRefused) => void): Outbound {
  return async (url, request) => {
    try {
      return await outbound(url, request)
    } catch (error) {
      const refusal = refusalIn(error)
      if (refusal) tell(refusal)
      throw error
    }
  }
}

/**
 * One request and its whole answer, so that the time-out and the retries cover the body too. Only our own headers
 * are sent: the SDK's describe this machine, and some come from the environment.
 */
function exchange({ endpoint, credential, headers }: ProviderCalls, outbound: Outbound): typeof fetch {
  return async (input, init) => {
    const url = new URL(String(input))
    if (url.origin !== endpoint.origin) throw new Error(`${url.origin} is not ${endpoint.origin}`)
    const answer = await outbound(url, {
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/json',
        'user-agent': 'workbase',
        ...headers,
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
      },
      body: String(init?.body ?? ''),
      signal: init?.signal ?? null,
    })
    const body = await readWhole(answer.body, answerBytesMax)
    const told = { 'content-type': 'application/json', ...retryHeaders(answer.headers) }
    const { status } = answer
    if (body.length === 0) return new Response(null, { status, headers: told })
    const text = status < 300 ? new Uint8Array(body) : withoutSecret(body.toString(), credential)
    return new Response(text, { status, headers: told })
  }
}

/** A refusal goes to the log as it came, and some providers repeat the key that they refuse. */
function withoutSecret(refusal: string, credential: string | undefined): string {
  return credential === undefined ? refusal : refusal.replaceAll(credential, '[redacted]')
}

/** The pause that a provider asks for, in the words that the SDK reads, within our bound. */
function retryHeaders(headers: OutboundAnswer['headers']): Record<string, string> {
  const waitMs = retryAfterMs(headers)
  if (waitMs === undefined) return {}
  return waitMs > retryAfterMsMax ? { 'x-should-retry': 'false' } : { 'retry-after-ms': String(waitMs) }
}

function failureOf(sdk: Sdk, cause: unknown): ProviderFailure {
  if (cause instanceof sdk.APIConnectionTimeoutError)
    return new ProviderFailure('did not answer in time', {}, {}, cause)
  if (cause instanceof sdk.APIConnectionError)
    return new ProviderFailure('could not be reached', {}, {}, cause)
  if (!(cause instanceof sdk.APIError) || cause.status === undefined)
    return new ProviderFailure('sent an answer that cannot be read', {}, {}, cause)
  const providerStatus = Number(cause.status)
  const isRedirect = providerStatus >= 300 && providerStatus < 400
  const what = isRedirect ? 'with a redirect, which is not followed' : `with status ${providerStatus}`
  const facts = { hint: hintOn(providerStatus), providerStatus }
  return new ProviderFailure(`answered ${what}`, facts, toldIn(cause.error), cause)
}

/** The reason of a refusal, in the form that OpenAI gave it and others took over. */
export function toldIn(error: unknown): ProviderFailure['told'] {
  if (typeof error !== 'object' || error === null) return {}
  const { code, message } = error as Record<string, unknown>
  return {
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof message === 'string' ? { message: message.slice(0, toldCharsMax) } : {}),
  }
}

function hintOn(status: number): string {
  if (status === 401 || status === 403)
    return 'The provider refuses the credential: check the key that credentialRef names.'
  if (status === 404) return 'Check modelName, endpointBaseUrl and endpointPath of the service.'
  if (status === 429) return 'The provider limits requests: wait, or ask it for a higher limit.'
  if (status >= 500) return 'The provider has trouble of its own: retry in a moment.'
  return 'Check modelName and endpointBaseUrl of the service, and the dimension of an embedding service.'
}

/** A field of what a provider answered; undefined where that is no object. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}
