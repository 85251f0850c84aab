import { unlessAborted } from '../../base/deadline.ts'
import type { Outbound } from '../outbound.ts'
import { connectionProblemIn } from './connection-problem.ts'
import { type Calls, sender, whole } from './exchange.ts'
import { ProviderFailure, type ProviderReason, reasonIn, timedOut } from './failure.ts'
import { hintOn, refusalOf } from './refusal.ts'
import { type Reading, streamed } from './stream.ts'

const timeoutMsDefault = 30_000
const timeoutMsMax = 600_000

type Sdk = typeof import('openai')

/** How a provider is asked. */
export interface ProviderCalls extends Calls {
  /** Of a request and its whole answer, or of a silence where the answer comes in pieces; 30 seconds when null. */
  readonly timeoutMs: number | null
  /** How often a request that timed out, could not connect, or was answered with 408, 409, 429 or 5xx is repeated. */
  readonly retriesMax: number
  /** Requests that time out are not repeated: the model on this machine is still busy with the first one. */
  readonly isLocal?: boolean
}

/** Requests to one provider. Paths are below the endpoint. */
export interface ProviderClient {
  /**
   * @returns the JSON that the provider answers
   * @throws ProviderFailure
   * @throws the reason of the signal
   */
  post(path: string, body: object, signal: AbortSignal): Promise<unknown>
  /**
   * The events of the answer as they come, from the first that begins it. A silence of `timeoutMs` ends it, and ten
   * minutes do. Who leaves the loop ends the request.
   *
   * @throws ProviderFailure  also where the answer ends before the provider says that it is done
   * @throws the reason of the signal
   */
  stream(path: string, body: object, reading: Reading): AsyncGenerator<unknown, void, undefined>
}

/**
 * A client of a provider. Nothing is left to the SDK's own reading of the environment, and it never holds the
 * credential.
 */
export async function openClient(calls: ProviderCalls, outbound: Outbound): Promise<ProviderClient> {
  const sdk = await import('openai')
  const { endpoint, credential } = calls
  const timeoutMs = Math.min(calls.timeoutMs ?? timeoutMsDefault, timeoutMsMax)
  const open = (fetch: typeof globalThis.fetch, timeout: number) =>
    new sdk.OpenAI({
      apiKey: 'set in sender',
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      baseURL: endpoint.origin + endpoint.pathname.replace(/\/$/, ''),
      defaultQuery: Object.fromEntries(endpoint.searchParams),
      maxRetries: calls.retriesMax,
      timeout,
      logLevel: 'off',
      fetch,
    })
  const refused = new AbortController()
  const send = sender(calls, outbound, refusal => refused.abort(refusal))
  let client: InstanceType<Sdk['OpenAI']> | undefined
  return {
    async post(path, body, signal) {
      client ??= open(async (input, init) => {
        try {
          return await whole(await send(input, init), credential)
        } catch (error) {
          const hasTimedOut = init?.signal?.aborted && !signal.aborted
          if (hasTimedOut && calls.isLocal) refused.abort(timedOut(error))
          throw error
        }
      }, timeoutMs)
      const until = AbortSignal.any([signal, refused.signal])
      try {
        return await unlessAborted(client.post<unknown>(path, { body, signal: until }), until)
      } catch (error) {
        until.throwIfAborted()
        throw failureOf(sdk, error)
      }
    },
    stream: (path, body, reading) =>
      streamed({
        ...reading,
        idleMs: timeoutMs,
        totalMs: timeoutMsMax,
        credential,
        isLocal: calls.isLocal ?? false,
        sender: tell => sender(calls, outbound, tell),
        async post(fetch, signal) {
          try {
            await open(fetch, timeoutMsMax).post(path, { body, signal }).asResponse()
          } catch (error) {
            throw failureOf(sdk, error)
          }
        },
      }),
  }
}

function failureOf(sdk: Sdk, cause: unknown): ProviderFailure {
  if (cause instanceof sdk.APIConnectionTimeoutError) return timedOut(cause)
  if (cause instanceof sdk.APIConnectionError) {
    const problem = connectionProblemIn(cause) ?? { reason: 'could not be reached' }
    const { reason, ...facts } = problem
    return new ProviderFailure(reason, facts, {}, cause)
  }
  if (!(cause instanceof sdk.APIError) || cause.status === undefined)
    return new ProviderFailure('sent an answer that cannot be read', {}, {}, cause)
  return refusedWith(Number(cause.status), reasonIn(cause.error), cause)
}

function refusedWith(providerStatus: number, said: ProviderReason, cause: unknown): ProviderFailure {
  const isRedirect = providerStatus >= 300 && providerStatus < 400
  if (isRedirect)
    return new ProviderFailure(
      'answered with a redirect, which is not followed',
      { hint: hintOn(providerStatus), providerStatus },
      said,
      cause,
    )
  const { kind, hint = hintOn(providerStatus), reason } = refusalOf(providerStatus, said) ?? {}
  const what = reason ? `${reason} (status ${providerStatus})` : `answered with status ${providerStatus}`
  return new ProviderFailure(what, { hint, providerStatus, ...(kind && { kind }) }, said, cause)
}
