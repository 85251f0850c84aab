import { isUnencryptedRemote } from '../base/loopback.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import { resolveSecret } from '../config/secret-ref.ts'
import { isWebUrl } from '../config/values.ts'
import { WbError } from '../contract/errors.ts'
import { needsKey, type ProviderName, providers } from '../contract/providers.ts'
import type { Outbound } from './outbound.ts'

/** Fields of a service record that identify a model and its endpoint. */
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

/** Dependencies of requests to models. */
export interface ModelParts {
  readonly environment: ConfigEnvironment
  /** Called for each request, so that a change applies immediately. */
  readonly isReleased: IsReleased
  readonly outbound: Outbound
}

/** Part of a request that failed: the address, the credential, or the provider's answer. */
export type FailureSource = 'endpoint' | 'credential' | 'provider'

export type FailureFacts = {
  readonly hint?: string | undefined
  readonly providerStatus?: number | undefined
}

/** Creates the failure of a service with our own message. The provider's message belongs in the cause. */
export type CreateFailure = (
  trouble: FailureSource,
  reason: string,
  facts?: FailureFacts,
  cause?: unknown,
) => Error

/** Inputs that decide the endpoint and the credential of a service. */
export interface EndpointSettings {
  readonly service: ModelService
  readonly provider: ProviderName
  readonly environment: ConfigEnvironment
  /** Called for each request, so that a change applies immediately. */
  readonly isReleased: IsReleased
  readonly failed: CreateFailure
  /** Path of the calls. It is removed from the end of an address that already contains it. */
  readonly path: string
}

/**
 * Returns the URL that request paths are appended to: `endpointBaseUrl` with `endpointPath`, or the
 * provider's default. For Ollama, `OLLAMA_BASE_URL` overrides the default, and an empty path means `/v1`.
 *
 * @throws the error that `failed` creates, if the address is not an http(s) URL
 */
export function resolveEndpoint({ service, provider, environment, failed, path }: EndpointSettings): URL {
  const base = service.endpointBaseUrl ?? defaultBaseUrl(provider, environment)
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
  return parseEndpoint(joined, provider, path)
}

export function defaultBaseUrl(provider: ProviderName, environment: ConfigEnvironment): string {
  const ollama = provider === 'ollama' ? environment.ollamaBaseUrl : undefined
  return ollama ?? providers[provider].baseUrl
}

/** Parses a base URL. Removes the path of the calls from its end. An empty path becomes `/v1` for Ollama. */
export function parseEndpoint(baseUrl: string, provider: ProviderName, path: string): URL {
  const url = new URL(baseUrl)
  const own = withoutLastSlashes(url.pathname)
  const base = own.endsWith(path) ? own.slice(0, -path.length) : own
  url.pathname = provider === 'ollama' && base === '' ? '/v1' : base
  return url
}

/** Removes trailing slashes. A regular expression would take quadratic time for a text of slashes. */
function withoutLastSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end--
  return text.slice(0, end)
}

/**
 * Resolves the credential for an endpoint; undefined if the service has none and the provider needs none.
 *
 * @throws the error that `failed` creates, if the credential is missing, is not released for the host, would
 * be sent unencrypted, or does not resolve
 * @see docs/security.md#rule-1
 */
export async function resolveCredential(
  dialling: EndpointSettings,
  endpoint: URL,
): Promise<string | undefined> {
  const { service, provider, failed } = dialling
  const ref = service.credentialRef
  if (ref === null) {
    if (!needsKey(provider, endpoint)) return undefined
    throw failed('credential', `has no credential, and ${endpoint.host} requires one`, {
      hint: credentialHint(service.name, `env:${providers[provider].keyName}`),
    })
  }
  return resolveReleasedSecret(dialling, ref, service.workspaceId, endpoint)
}

/**
 * Resolves a secret reference of a record, if it is released for the host.
 *
 * @throws the error that `failed` creates, if the secret is not released, would be sent unencrypted, or does
 * not resolve
 */
export async function resolveReleasedSecret(
  sending: Pick<EndpointSettings, 'environment' | 'isReleased' | 'failed'>,
  ref: string,
  workspaceId: string,
  endpoint: URL,
): Promise<string> {
  if (await sending.isReleased(ref, endpoint.host, workspaceId))
    return resolveEndpointSecret(sending, ref, endpoint)
  throw sending.failed('credential', `uses ${ref}, which is not released for ${endpoint.host}`, {
    hint: releaseHint(ref, endpoint.host),
  })
}

/**
 * Resolves a secret reference, without checking its release.
 *
 * @throws the error that `failed` creates, if the secret would be sent unencrypted, or does not resolve
 */
export function resolveEndpointSecret(
  { environment, failed }: Pick<EndpointSettings, 'environment' | 'failed'>,
  ref: string,
  endpoint: URL,
): string {
  if (isUnencryptedRemote(endpoint))
    throw failed('credential', `would send ${ref} to ${endpoint.host} without encryption`, {
      hint: 'Give the service an https endpoint, or remove its credential.',
    })
  const secret = resolveRef(ref, environment, failed)
  if (/^[\x21-\x7e]+$/.test(secret)) return secret
  throw failed('credential', `uses ${ref}, which contains characters that are not allowed in a header`, {
    hint: 'Store only the key: one line without spaces.',
  })
}

function resolveRef(ref: string, environment: ConfigEnvironment, failed: CreateFailure): string {
  try {
    return resolveSecret(ref, environment)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    throw failed('credential', `cannot use its credential: ${error.message}`, { hint: error.hint }, error)
  }
}

/**
 * Returns a hint with the command that sets a credential. Uses a placeholder if the name contains characters
 * that are special to a shell.
 */
function credentialHint(service: string, ref: string): string {
  const name = /^\w[\w.@+-]*$/.test(service) ? service : 'NAME'
  return `Set its credentialRef, for example with: wb services update ${name} --credential ${ref}`
}

/**
 * Returns a hint with the command that releases a reference. Uses placeholders if the record contains
 * characters that are special to a shell.
 */
function releaseHint(ref: string, host: string): string {
  const isPlain = /^[\w:/.@+-]+$/.test(ref) && /^[\w.:[\]-]+$/.test(host)
  const line = isPlain ? `wb services allow ${ref} --host ${host}` : 'wb services allow REF --host HOST'
  return `The operator of the runtime can release it with: ${line}`
}
