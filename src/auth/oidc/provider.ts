import type { Clock } from '../../base/clock.ts'
import { WbError } from '../../contract/errors.ts'
import { boundedFetch, NoAnswer } from './ask.ts'
import type { Found } from './discovery.ts'
import type {
  DeviceAuthorization,
  LoginRequest,
  LoginResponse,
  OidcConfig,
  Refused,
  Tokens,
} from './protocol.ts'
import { isSafe, wellKnown } from './transport.ts'

/**
 * Client of the identity provider.
 *
 * Each method throws `identity_provider_unavailable` when the provider cannot be reached or answers 5xx.
 */
export interface IdentityProvider {
  /** Returns the URL of the provider's keys: the configured one, or from discovery. */
  keySetUrl(): Promise<URL>
  hasDeviceEndpoint(): Promise<boolean>
  authorizationUrl(request: LoginRequest): Promise<URL>
  exchangeCode(response: LoginResponse): Promise<Tokens | Refused>
  refresh(refreshToken: string): Promise<Tokens | Refused>
  authorizeDevice(): Promise<DeviceAuthorization | Refused>
  exchangeDeviceCode(deviceCode: string): Promise<Tokens | Refused>
  /**
   * Discovers the provider now, as a server does at startup.
   *
   * @throws validation_error  when the provider cannot be found; the message says what was tried
   */
  discover(): Promise<void>
}

export interface ProviderParts {
  readonly oidc: OidcConfig
  readonly clientSecret: string | undefined
  readonly fetch: typeof fetch
  readonly clock: Clock
}

/**
 * Creates a client of the identity provider. The configuration rules ensure that configured URLs are safe;
 * discovered ones are checked here.
 */
export function openProvider(parts: ProviderParts): IdentityProvider {
  const { oidc } = parts
  const { client } = oidc
  const ask = boundedFetch(parts)
  let finding: Promise<Found> | undefined

  /** Discovers the provider once, and again after a failure. */
  function found(): Promise<Found> {
    finding ??= import('./discovery.ts')
      .then(({ findProvider }) => findProvider({ ...parts, ask }))
      .catch(error => {
        finding = undefined
        throw error
      })
    return finding
  }

  const provider = () => orUnavailable(found())
  const flows = async () => {
    const { configuration, metadata } = await provider()
    if (!client) throw new WbError('not_configured', 'auth.oidc.client is not configured')
    const { Flows } = await import('./flows.ts')
    return new Flows({ configuration, metadata, client })
  }

  return {
    keySetUrl: async () => new URL(oidc.jwksUri ?? (await provider()).metadata.jwks_uri!),
    hasDeviceEndpoint: async () => isSafe((await provider()).metadata.device_authorization_endpoint),
    authorizationUrl: async request => (await flows()).authorizationUrl(request),
    exchangeCode: async response => orUnavailable((await flows()).exchangeCode(response)),
    refresh: async refreshToken => orUnavailable((await flows()).refresh(refreshToken)),
    authorizeDevice: async () => orUnavailable((await flows()).authorizeDevice()),
    exchangeDeviceCode: async deviceCode => orUnavailable((await flows()).exchangeDeviceCode(deviceCode)),
    async discover() {
      if (oidc.jwksUri !== null && !client) return
      await found().catch(error => {
        throw error instanceof NoAnswer ? notFound(oidc, error) : error
      })
    },
  }
}

async function orUnavailable<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    throw new WbError(
      'identity_provider_unavailable',
      'the identity provider is out of reach or out of order',
      {
        why: error.why,
      },
    )
  }
}

function notFound({ issuer }: OidcConfig, { why }: NoAnswer): WbError {
  return new WbError(
    'validation_error',
    `auth.oidc.issuer: no identity provider was found at ${wellKnown(issuer).href}: ${why}`,
    {
      hint: 'Check that this machine reaches it, and write the issuer exactly as the provider names itself.',
    },
  )
}
