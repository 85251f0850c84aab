import type { Clock } from '../../base/clock.ts'
import { WbError } from '../../contract/errors.ts'
import type { DiscoveredProvider } from './discovery.ts'
import type {
  DeviceAuthorization,
  LoginRequest,
  LoginResponse,
  OidcConfig,
  ProviderRejection,
  ProviderTokens,
} from './protocol.ts'
import { createProviderFetch, ProviderUnavailable } from './provider-fetch.ts'
import { discoveryUrl, isSafeTransport } from './transport.ts'

/**
 * Client of the identity provider.
 *
 * Each method throws `identity_provider_unavailable` when the provider cannot be reached or its response is invalid.
 */
export interface IdentityProvider {
  /** Returns the URL of the provider's keys from the configuration or, if it is not set, from discovery. */
  keySetUrl(): Promise<URL>
  hasDeviceEndpoint(): Promise<boolean>
  authorizationUrl(request: LoginRequest): Promise<URL>
  exchangeCode(response: LoginResponse): Promise<ProviderTokens | ProviderRejection>
  refresh(refreshToken: string): Promise<ProviderTokens | ProviderRejection>
  authorizeDevice(): Promise<DeviceAuthorization | ProviderRejection>
  exchangeDeviceCode(deviceCode: string): Promise<ProviderTokens | ProviderRejection>
  /**
   * Discovers the provider now, as a server does at startup.
   *
   * @throws validation_error  when the provider cannot be found; the message contains the URL and the reason
   */
  discover(): Promise<void>
}

export interface ProviderDependencies {
  readonly oidc: OidcConfig
  readonly clientSecret: string | undefined
  readonly fetch: typeof fetch
  readonly clock: Clock
}

/**
 * Creates a client of the identity provider. It checks the URLs from discovery. Configured URLs are checked when
 * the configuration is loaded.
 */
export function openProvider(deps: ProviderDependencies): IdentityProvider {
  const { oidc } = deps
  const { client } = oidc
  const fetchProvider = createProviderFetch(deps)
  let discovery: Promise<DiscoveredProvider> | undefined

  /** Discovers the provider on the first call. Tries again on the next call only if discovery failed. */
  function discoverOnce(): Promise<DiscoveredProvider> {
    discovery ??= import('./discovery.ts')
      .then(({ discoverProvider }) => discoverProvider({ ...deps, fetchProvider }))
      .catch(error => {
        discovery = undefined
        throw error
      })
    return discovery
  }

  const provider = () => throwUnavailable(discoverOnce())
  const flows = async () => {
    const { configuration, metadata } = await provider()
    if (!client) throw new WbError('not_configured', 'auth.oidc.client is not configured')
    const { OAuthFlows } = await import('./oauth-flows.ts')
    return new OAuthFlows({ configuration, metadata, client })
  }

  return {
    keySetUrl: async () => new URL(oidc.jwksUri ?? (await provider()).metadata.jwks_uri!),
    hasDeviceEndpoint: async () => isSafeTransport((await provider()).metadata.device_authorization_endpoint),
    authorizationUrl: async request => (await flows()).authorizationUrl(request),
    exchangeCode: async response => throwUnavailable((await flows()).exchangeCode(response)),
    refresh: async refreshToken => throwUnavailable((await flows()).refresh(refreshToken)),
    authorizeDevice: async () => throwUnavailable((await flows()).authorizeDevice()),
    exchangeDeviceCode: async deviceCode => throwUnavailable((await flows()).exchangeDeviceCode(deviceCode)),
    async discover() {
      if (oidc.jwksUri !== null && !client) return
      await discoverOnce().catch(error => {
        throw error instanceof ProviderUnavailable ? providerNotFound(oidc, error) : error
      })
    },
  }
}

async function throwUnavailable<T>(response: Promise<T>): Promise<T> {
  try {
    return await response
  } catch (error) {
    if (!(error instanceof ProviderUnavailable)) throw error
    throw new WbError(
      'identity_provider_unavailable',
      'the identity provider cannot be reached or does not work',
      {
        why: error.reason,
      },
    )
  }
}

function providerNotFound({ issuer }: OidcConfig, { reason: why }: ProviderUnavailable): WbError {
  return new WbError(
    'validation_error',
    `auth.oidc.issuer: no identity provider was found at ${discoveryUrl(issuer).href}: ${why}`,
    {
      hint: "Check that this machine can reach the address, and that the setting is exactly the provider's issuer.",
    },
  )
}
