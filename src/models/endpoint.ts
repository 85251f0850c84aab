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
  /** Present in a reranking service. */
  readonly rerankingServiceId?: string
}

/** Returns true if the secret that a record refers to may be sent to a host. @see docs/security.md#rule-1 */
export type IsReleased = (ref: string, host: string, workspaceId: string) => Promise<boolean>

/** Dependencies of a client that sends requests to models. */
export interface ModelDependencies {
  readonly environment: ConfigEnvironment
  /** Called for each request, so that a changed release takes effect immediately. */
  readonly isReleased: IsReleased
  readonly outbound: Outbound
}

/** Cause of a failed request: the address, the credential, or the provider. */
export type FailureSource = 'endpoint' | 'credential' | 'provider'

export type FailureFacts = {
  readonly hint?: string | undefined
  readonly providerStatus?: number | undefined
}

/**
 * Creates the error for a failure of a service. `reason` completes a sentence about the service. Text from the provider
 * must not be in `reason`, but can be in `cause`.
 */
export type CreateFailure = (
  source: FailureSource,
  reason: string,
  facts?: FailureFacts,
  cause?: unknown,
) => Error

/** Inputs that determine the endpoint and the credential of a service. */
export interface EndpointSettings {
  readonly service: ModelService
  readonly provider: ProviderName
  readonly environment: ConfigEnvironment
  /** Called for each request, so that a changed release takes effect immediately. */
  readonly isReleased: IsReleased
  readonly createFailure: CreateFailure
  /** Path of the requests, relative to the endpoint. If a configured URL ends with this path, the path is removed. */
  readonly path: string
}

/**
 * Returns the URL to which request paths are appended: `endpointBaseUrl`, or the provider's default, followed by
 * `endpointPath`. For Ollama, `OLLAMA_BASE_URL` overrides the default, and an empty path means `/v1`.
 *
 * @throws the error that `createFailure` creates, if the address is not an http(s) URL
 */
export function resolveEndpoint({
  service,
  provider,
  environment,
  createFailure,
  path,
}: EndpointSettings): URL {
  const base = service.endpointBaseUrl ?? defaultBaseUrl(provider, environment)
  const joinedUrl = withoutLastSlashes(base) + (service.endpointPath ?? '')
  if (!isWebUrl(joinedUrl)) {
    const setting = service.endpointBaseUrl === null ? 'OLLAMA_BASE_URL' : 'endpointBaseUrl'
    throw createFailure(
      'endpoint',
      `cannot be called: ${setting} must be an http(s) URL without a user name and password`,
      {
        hint:
          setting === 'OLLAMA_BASE_URL'
            ? 'Correct OLLAMA_BASE_URL.'
            : 'Check endpointBaseUrl and endpointPath of the service.',
      },
    )
  }
  return parseEndpoint(joinedUrl, provider, path)
}

export function defaultBaseUrl(provider: ProviderName, environment: ConfigEnvironment): string {
  const ollama = provider === 'ollama' ? environment.ollamaBaseUrl : undefined
  return ollama ?? providers[provider].baseUrl
}

/** Parses a base URL. Removes `path` from its end. For Ollama, an empty path becomes `/v1`. */
export function parseEndpoint(baseUrl: string, provider: ProviderName, path: string): URL {
  const url = new URL(baseUrl)
  const pathname = withoutLastSlashes(url.pathname)
  const basePath = pathname.endsWith(path) ? pathname.slice(0, -path.length) : pathname
  url.pathname = provider === 'ollama' && basePath === '' ? '/v1' : basePath
  return url
}

/** Removes trailing slashes. A regular expression would take quadratic time for a string of slashes. */
function withoutLastSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end--
  return text.slice(0, end)
}

/**
 * Resolves the credential of a service for an endpoint. Returns undefined if the service has no credential and the
 * provider does not need one.
 *
 * @throws the error that `createFailure` creates, if the credential is missing, is not released for the host, would be
 *   sent unencrypted, or does not resolve
 * @see docs/security.md#rule-1
 */
export async function resolveCredential(
  settings: EndpointSettings,
  endpoint: URL,
): Promise<string | undefined> {
  const { service, provider, createFailure } = settings
  const ref = service.credentialRef
  if (ref === null) {
    if (!needsKey(provider, endpoint)) return undefined
    throw createFailure('credential', `has no credential, and ${endpoint.host} requires one`, {
      hint: credentialHint(service.name, `env:${providers[provider].keyName}`),
    })
  }
  return resolveReleasedSecret(settings, ref, service.workspaceId, endpoint)
}

/**
 * Resolves the secret reference of a record. The secret must be released for the host of the endpoint.
 *
 * @throws the error that `createFailure` creates, if the secret is not released, would be sent unencrypted, or does not
 *   resolve
 */
export async function resolveReleasedSecret(
  deps: Pick<EndpointSettings, 'environment' | 'isReleased' | 'createFailure'>,
  ref: string,
  workspaceId: string,
  endpoint: URL,
): Promise<string> {
  if (await deps.isReleased(ref, endpoint.host, workspaceId))
    return resolveEndpointSecret(deps, ref, endpoint)
  throw deps.createFailure('credential', `uses ${ref}, which is not released for ${endpoint.host}`, {
    hint: releaseHint(ref, endpoint.host),
  })
}

/**
 * Resolves a secret reference without checking whether the secret is released.
 *
 * @throws the error that `createFailure` creates, if the secret would be sent unencrypted, or does not resolve
 */
export function resolveEndpointSecret(
  { environment, createFailure }: Pick<EndpointSettings, 'environment' | 'createFailure'>,
  ref: string,
  endpoint: URL,
): string {
  if (isUnencryptedRemote(endpoint))
    throw createFailure('credential', `would send ${ref} to ${endpoint.host} without encryption`, {
      hint: 'Use an https endpoint, or remove the credential of the service.',
    })
  const secret = resolveRef(ref, environment, createFailure)
  if (/^[\x21-\x7e]+$/.test(secret)) return secret
  throw createFailure(
    'credential',
    `uses ${ref}, which contains characters that are not allowed in a header`,
    {
      hint: 'The secret must contain only the key, in one line without spaces.',
    },
  )
}

function resolveRef(ref: string, environment: ConfigEnvironment, createFailure: CreateFailure): string {
  try {
    return resolveSecret(ref, environment)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    throw createFailure(
      'credential',
      `cannot use its credential: ${error.message}`,
      { hint: error.hint },
      error,
    )
  }
}

/**
 * Returns a hint with the command that sets a service's credential. Uses a placeholder if the name of the service
 * contains characters that are special in a shell.
 */
function credentialHint(service: string, ref: string): string {
  const name = /^\w[\w.@+-]*$/.test(service) ? service : 'NAME'
  return `Set its credentialRef, for example with: wb services update ${name} --credential ${ref}`
}

/**
 * Returns a hint with the command that releases a secret. Uses placeholders if the values contain characters that are
 * special in a shell.
 */
function releaseHint(ref: string, host: string): string {
  const isPlain = /^[\w:/.@+-]+$/.test(ref) && /^[\w.:[\]-]+$/.test(host)
  const line = isPlain ? `wb services allow ${ref} --host ${host}` : 'wb services allow REF --host HOST'
  return `The operator of the runtime can release it with: ${line}`
}
