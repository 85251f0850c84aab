import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/schema.ts'

export type OidcConfig = NonNullable<Config['auth']['oidc']>

/** What a provider issued. */
export interface Tokens {
  readonly accessToken: string
  readonly tokenType: string
  readonly refreshToken?: string
  readonly expiresInSeconds?: number
  readonly scope?: string
}

/** The provider said no, with an OAuth error code. */
export interface Refused {
  readonly refused: string
}

/** RFC 8628 section 3.2, as the provider sends it. */
export type DeviceAuthorization = Record<string, unknown>

/** A browser on its way to the provider. */
export interface LoginRequest {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly codeChallenge: string
}

/** A browser on its way back. */
export interface LoginResponse {
  /** The callback URL with all that the provider put into its query. */
  readonly callbackUrl: URL
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/**
 * The identity provider, as the runtime speaks to it.
 *
 * Each method throws `identity_provider_unavailable` when the provider cannot be reached or answers 5xx.
 */
export interface IdentityProvider {
  /** Where its keys are, from discovery unless they are configured. */
  keySetUrl(): Promise<URL>
  hasDeviceEndpoint(): Promise<boolean>
  authorizationUrl(request: LoginRequest): Promise<URL>
  exchangeCode(response: LoginResponse): Promise<Tokens | Refused>
  refresh(refreshToken: string): Promise<Tokens | Refused>
  authorizeDevice(): Promise<DeviceAuthorization | Refused>
  exchangeDeviceCode(deviceCode: string): Promise<Tokens | Refused>
  /**
   * Look the provider up now, as a server does when it starts.
   *
   * @throws validation_error  it cannot be found; the message says what was tried
   */
  discover(): Promise<void>
}

export interface ProviderParts {
  readonly oidc: OidcConfig
  readonly clientSecret: string | undefined
  readonly fetch: typeof fetch
  readonly clock: Clock
}

export function openProvider(_parts: ProviderParts): IdentityProvider {
  throw new Error('not written')
}
