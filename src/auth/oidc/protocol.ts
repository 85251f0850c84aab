import type { Config } from '../../config/schema.ts'

export type OidcConfig = NonNullable<Config['auth']['oidc']>
export type OidcClient = NonNullable<OidcConfig['client']>

export interface ProviderTokens {
  readonly accessToken: string
  readonly tokenType: string
  readonly refreshToken?: string
  readonly expiresInSeconds?: number
  readonly scope?: string
}

/** The OAuth error code with which the provider rejected a request. */
export interface ProviderRejection {
  readonly errorCode: string
}

/**
 * Device authorization response, as the provider sends it.
 *
 * @see RFC 8628 section 3.2
 */
export type DeviceAuthorization = Record<string, unknown>

/** Parameters of an authorization request. */
export interface LoginRequest {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly codeChallenge: string
}

/** Response to an authorization request, with those parameters of the request that the response must match. */
export interface LoginResponse {
  /** Callback URL with the complete query from the provider. */
  readonly callbackUrl: URL
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}
