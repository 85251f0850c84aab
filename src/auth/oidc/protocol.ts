import type { Config } from '../../config/schema.ts'

export type OidcConfig = NonNullable<Config['auth']['oidc']>
export type OidcClient = NonNullable<OidcConfig['client']>

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
