import { isInTheClear } from '../base/loopback.ts'
import type { Environment } from '../config/environment.ts'
import { resolveSecret } from '../config/secret-ref.ts'
import { isWebUrl } from '../config/values.ts'
import { WbError } from '../contract/errors.ts'
import { needsKey, type ProviderName, providers } from '../contract/providers.ts'
import type { Outbound } from './outbound.ts'

/** What a record says of a model and of where it is. */
export interface ModelService {
  readonly name: string
  readonly provider: string
  readonly modelName: string
  readonly workspaceId: string
  readonly endpointBaseUrl: string | null
  readonly endpointPath: string | null
  readonly credentialRef: string | null
  readonly requestTimeoutMs: number | null
}

/** Returns true if the secret behind a record's reference may be sent to a host. @see docs/security.md#rule-1 */
export type IsReleased = (ref: string, host: string, workspaceId: string) => Promise<boolean>

/** What models are reached with. */
export interface ModelParts {
  readonly environment: Environment
  /** Asked at each call, so that a release is in force at once. */
  readonly isReleased: IsReleased
  readonly outbound: Outbound
}

/** What is wrong: where the model is, what it is dialled with, or how it answered. */
export type Trouble = 'endpoint' | 'credential' | 'provider'

export type FailureFacts = {
  readonly hint?: string | undefined
  readonly providerStatus?: number | undefined
}

/** A failure of a service, in words of ours; what the provider said stays in the cause. */
export type Failed = (trouble: Trouble, reason: string, facts?: FailureFacts, cause?: unknown) => Error

/** What decides where a service is dialled, and with what. */
export interface Dialling {
  readonly service: ModelService
  readonly provider: ProviderName
  readonly environment: Environment
  /** Asked at each call, so that a release is in force at once. */
  readonly isReleased: IsReleased
  readonly failed: Failed
  /** What the calls are appended as; an address that ends with it already is taken without it. */
  readonly path: string
}

/**
 * The address that the provider's paths are appended to: `endpointBaseUrl` joined with `endpointPath`, else the
 * provider's own. For Ollama `OLLAMA_BASE_URL` stands before the provider's own, and an empty path means `/v1`.
 *
 * @throws the error that `failed` creates, if the address is not an http(s) URL
 */
export function endpointOf({ service, provider, environment, failed, path }: Dialling): URL {
  const base = service.endpointBaseUrl ?? usualBaseUrl(provider, environment)
  const joined = withoutLastSlashes(base) + (service.endpointPath ?? '')
  if (!isWebUrl(joined)) {
    const setting = service.endpointBaseUrl === null ? 'OLLAMA_BASE_URL' : 'endpointBaseUrl'
    throw failed(
      'endpoint',
      `cannot be called: ${setting} must be an http(s) URL without user name and password`,
      {
        hint:
          setting === 'OLLAMA_BASE_URL'
            ? 'Correct OLLAMA_BASE_URL.'
            : 'Check its endpointBaseUrl and endpointPath.',
      },
    )
  }
  return endpointAt(joined, provider, path)
}

export function usualBaseUrl(provider: ProviderName, environment: Environment): string {
  const ollama = provider === 'ollama' ? environment.ollamaBaseUrl : undefined
  return ollama ?? providers[provider].baseUrl
}

/** A base URL without what calls are appended as, and with the path that Ollama has where none is given. */
export function endpointAt(baseUrl: string, provider: ProviderName, path: string): URL {
  const url = new URL(baseUrl)
  const own = withoutLastSlashes(url.pathname)
  const base = own.endsWith(path) ? own.slice(0, -path.length) : own
  url.pathname = provider === 'ollama' && base === '' ? '/v1' : base
  return url
}

/** A pattern that looks for them takes a time that grows with the square of a text of slashes. */
function withoutLastSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end--
  return text.slice(0, end)
}

/**
 * Resolves the credential for an endpoint; undefined if the service names none and the host is not the provider's own.
 *
 * @throws what `failed` makes of one that is missing, not released for the host, about to leave in the clear, or not
 *         resolved
 * @see docs/security.md#rule-1
 */
export async function credentialFor(dialling: Dialling, endpoint: URL): Promise<string | undefined> {
  const { service, provider, failed } = dialling
  const ref = service.credentialRef
  if (ref === null) {
    if (!needsKey(provider, endpoint)) return undefined
    throw failed('credential', `names no credential, and ${endpoint.host} needs one`, {
      hint: credentialHint(service.name, `env:${providers[provider].keyName}`),
    })
  }
  return releasedSecret(dialling, ref, service.workspaceId, endpoint)
}

/**
 * The secret behind a record's reference, resolved now, where it is released for the host.
 *
 * @throws what `failed` makes of one that is not released, is about to leave in the clear, or does not resolve
 */
export async function releasedSecret(
  sending: Pick<Dialling, 'environment' | 'isReleased' | 'failed'>,
  ref: string,
  workspaceId: string,
  endpoint: URL,
): Promise<string> {
  if (await sending.isReleased(ref, endpoint.host, workspaceId)) return secretFor(sending, ref, endpoint)
  throw sending.failed('credential', `uses ${ref}, which is not released for ${endpoint.host}`, {
    hint: releaseHint(ref, endpoint.host),
  })
}

/**
 * The secret behind a reference that may be used, resolved now.
 *
 * @throws what `failed` makes of one that is about to leave in the clear, or does not resolve
 */
export function secretFor(
  { environment, failed }: Pick<Dialling, 'environment' | 'failed'>,
  ref: string,
  endpoint: URL,
): string {
  if (isInTheClear(endpoint))
    throw failed('credential', `would send ${ref} to ${endpoint.host} without encryption`, {
      hint: 'Give the service an https endpoint, or take its credential out.',
    })
  const secret = resolved(ref, environment, failed)
  if (/^[\x21-\x7e]+$/.test(secret)) return secret
  throw failed('credential', `uses ${ref}, which holds characters that no header carries`, {
    hint: 'Store the key alone: one line, no spaces.',
  })
}

function resolved(ref: string, environment: Environment, failed: Failed): string {
  try {
    return resolveSecret(ref, environment)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    throw failed('credential', `lacks its credential: ${error.message}`, { hint: error.hint }, error)
  }
}

/** The line that gives a service a credential, where its name holds no characters that a shell would act on. */
function credentialHint(service: string, ref: string): string {
  const name = /^\w[\w.@+-]*$/.test(service) ? service : 'NAME'
  return `Set its credentialRef, for example with: wb services update ${name} --credential ${ref}`
}

/** The line that releases a reference, where a record's writer did not choose words that a shell would act on. */
function releaseHint(ref: string, host: string): string {
  const isPlain = /^[\w:/.@+-]+$/.test(ref) && /^[\w.:[\]-]+$/.test(host)
  const line = isPlain ? `wb services allow ${ref} --host ${host}` : 'wb services allow REF --host HOST'
  return `Who runs the runtime releases it with: ${line}`
}
