import { unlessAborted } from '../../base/deadline.ts'
import { BodyTooLong } from '../../base/read-body.ts'
import type { Outbound } from '../outbound.ts'
import { connectionProblemIn } from './connection-problem.ts'
import { createSend, type RequestTarget, toSdkResponse } from './exchange.ts'
import { findKnownRefusal, hintForStatus } from './known-refusals.ts'
import {
  ProviderFailure,
  type ProviderReason,
  providerReasonIn,
  providerTimeout,
} from './provider-failure.ts'
import { type StreamOptions, streamEvents } from './stream.ts'

const timeoutMsDefault = 30_000
const timeoutMsMax = 600_000

type Sdk = typeof import('openai')

/** Endpoint and limits of requests to a provider. */
export interface ProviderCalls extends RequestTarget {
  /** Maximum time for a whole answer, or between two parts of a streamed one; null for 30 seconds. */
  readonly timeoutMs: number | null
  /** Maximum number of retries after a timeout, a failed connection, or status 408, 409, 429 or 5xx. */
  readonly retriesMax: number
  /**
   * True if requests that time out are not repeated, because a local model is still busy with the first one.
   */
  readonly isLocal?: boolean
}

/** Sends requests to one provider. Paths are relative to the endpoint. */
export interface ProviderClient {
  /**
   * Sends a request.
   *
   * @returns the JSON of the response
   * @throws ProviderFailure
   * @throws the reason of the signal
   */
  post(path: string, body: object, signal: AbortSignal): Promise<unknown>
  /**
   * Streams the events of an answer, from the first one with content. Ends after a silence of `timeoutMs`, or
   * after ten minutes. Leaving the loop cancels the request.
   *
   * @throws ProviderFailure  also if the answer ends before the provider marks its end
   * @throws the reason of the signal
   */
  stream(path: string, body: object, reading: StreamOptions): AsyncGenerator<unknown, void, undefined>
}

/** Opens a client of a provider. The SDK reads nothing from the environment, and never has the credential. */
export async function openProviderClient(calls: ProviderCalls, outbound: Outbound): Promise<ProviderClient> {
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
  const send = createSend(calls, outbound, refusal => refused.abort(refusal))
  let client: InstanceType<Sdk['OpenAI']> | undefined
  return {
    async post(path, body, signal) {
      client ??= open(async (input, init) => {
        try {
          return await toSdkResponse(await send(input, init), credential)
        } catch (error) {
          const hasTimedOut = init?.signal?.aborted && !signal.aborted
          if (hasTimedOut && calls.isLocal) refused.abort(providerTimeout(error))
          // The SDK would repeat the request, as after a failed connection.
          if (error instanceof BodyTooLong)
            refused.abort(new ProviderFailure('sent an answer that is too large', {}, {}, error))
          throw error
        }
      }, timeoutMs)
      const until = AbortSignal.any([signal, refused.signal])
      try {
        return await unlessAborted(client.post<unknown>(path, { body, signal: until }), until)
      } catch (error) {
        until.throwIfAborted()
        throw sdkFailure(sdk, error)
      }
    },
    stream: (path, body, reading) =>
      streamEvents({
        ...reading,
        idleMs: timeoutMs,
        totalMs: timeoutMsMax,
        credential,
        isLocal: calls.isLocal ?? false,
        createSender: tell => createSend(calls, outbound, tell),
        async post(fetch, signal) {
          try {
            await open(fetch, timeoutMsMax).post(path, { body, signal }).asResponse()
          } catch (error) {
            throw sdkFailure(sdk, error)
          }
        },
      }),
  }
}

function sdkFailure(sdk: Sdk, cause: unknown): ProviderFailure {
  if (cause instanceof sdk.APIConnectionTimeoutError) return providerTimeout(cause)
  if (cause instanceof sdk.APIConnectionError) {
    const problem = connectionProblemIn(cause) ?? { reason: 'could not be reached' }
    const { reason, ...facts } = problem
    return new ProviderFailure(reason, facts, {}, cause)
  }
  if (!(cause instanceof sdk.APIError) || cause.status === undefined)
    return new ProviderFailure('sent an answer that cannot be read', {}, {}, cause)
  return refusedFailure(Number(cause.status), providerReasonIn(cause.error), cause)
}

function refusedFailure(providerStatus: number, said: ProviderReason, cause: unknown): ProviderFailure {
  const isRedirect = providerStatus >= 300 && providerStatus < 400
  if (isRedirect)
    return new ProviderFailure(
      'answered with a redirect, which is not followed',
      { hint: hintForStatus(providerStatus), providerStatus },
      said,
      cause,
    )
  const { kind, hint = hintForStatus(providerStatus), reason } = findKnownRefusal(providerStatus, said) ?? {}
  const what = reason ? `${reason} (status ${providerStatus})` : `answered with status ${providerStatus}`
  return new ProviderFailure(what, { hint, providerStatus, ...(kind && { kind }) }, said, cause)
}
