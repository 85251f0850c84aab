import { isInTheClear } from '../base/loopback.ts'
import type { Environment } from '../config/environment.ts'
import { type ReleasePolicy, released } from '../config/release.ts'
import { resolveSecret } from '../config/secret-ref.ts'
import { isWebUrl } from '../config/values.ts'
import { WbError } from '../contract/errors.ts'
import { type ProviderName, providers } from '../contract/providers.ts'
import type { EmbeddingService } from '../contract/services.ts'

/** What decides where a service is dialled, and with what. */
export interface Dialling {
  readonly service: EmbeddingService
  readonly provider: ProviderName
  readonly workspaceId: string
  readonly environment: Environment
  /** Asked at each call, so that a release is in force at once. */
  readonly policy: () => ReleasePolicy
}

/** A failure of a service, in words of ours; what the provider said stays in the cause. */
export function unavailable(
  { name, provider }: EmbeddingService,
  reason: string,
  facts: { hint?: string; providerStatus?: number } = {},
  cause?: unknown,
): WbError {
  return new WbError('embedding_unavailable', `embedding service "${name}" (${provider}) ${reason}`, facts, {
    cause,
  })
}

/**
 * The address that the provider's paths are appended to: `endpointBaseUrl` joined with `endpointPath`, else the
 * provider's own. For Ollama `OLLAMA_BASE_URL` stands before the provider's own, and an empty path means `/v1`.
 *
 * @throws embedding_unavailable  it is no http(s) URL
 */
export function endpointOf({ service, provider, environment }: Dialling): URL {
  const ollama = provider === 'ollama' ? environment.ollamaBaseUrl : undefined
  const base = service.endpointBaseUrl ?? ollama ?? providers[provider].baseUrl
  const joined = base.replace(/\/+$/, '') + (service.endpointPath ?? '')
  if (!isWebUrl(joined)) {
    const setting = service.endpointBaseUrl === null ? 'OLLAMA_BASE_URL' : 'endpointBaseUrl'
    throw unavailable(service, `cannot be dialled: ${setting} is not an http(s) URL without user information`)
  }
  const url = new URL(joined)
  const path = url.pathname.replace(/\/+$/, '').replace(/\/embeddings$/, '')
  url.pathname = provider === 'ollama' && path === '' ? '/v1' : path
  return url
}

/**
 * The credential for an endpoint, resolved now; undefined where none is needed and none is named.
 *
 * @throws embedding_unavailable  missing, not released for the host, about to leave in the clear, or not resolved
 * @see security decision 1
 */
export function credentialFor(dialling: Dialling, endpoint: URL): string | undefined {
  const { service, provider, workspaceId, environment, policy } = dialling
  const { keyName } = providers[provider]
  const ref = service.credentialRef
  if (ref === null) {
    if (keyName === null) return undefined
    throw unavailable(service, 'names no credential', {
      hint: `Set its credentialRef, for example to env:${keyName}.`,
    })
  }
  if (!released(ref, endpoint.host, workspaceId, policy()))
    throw unavailable(service, `uses ${ref}, which is not released for ${endpoint.host}`, {
      hint: `Add {ref: "${ref}", hosts: ["${endpoint.host}"]} to runtime.secretRefs.allow in the configuration.`,
    })
  if (isInTheClear(endpoint))
    throw unavailable(service, `would send ${ref} to ${endpoint.host} without encryption`, {
      hint: 'Give the service an https endpoint, or take its credential out.',
    })
  return sendable(service, ref, environment)
}

function sendable(service: EmbeddingService, ref: string, environment: Environment): string {
  const secret = resolved(service, ref, environment)
  if (/^[\x21-\x7e]+$/.test(secret)) return secret
  throw unavailable(service, `uses ${ref}, which holds characters that no header carries`, {
    hint: 'Store the key alone: one line, no spaces.',
  })
}

function resolved(service: EmbeddingService, ref: string, environment: Environment): string {
  try {
    return resolveSecret(ref, environment)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    throw unavailable(service, `lacks its credential: ${error.message}`, { hint: error.hint }, error)
  }
}
