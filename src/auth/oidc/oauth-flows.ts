import {
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientError,
  genericGrantRequest,
  initiateDeviceAuthorization,
  ResponseBodyError,
  refreshTokenGrant,
  type TokenEndpointResponse,
} from 'openid-client'
import type { DiscoveredProvider } from './discovery.ts'
import type {
  DeviceAuthorization,
  LoginRequest,
  LoginResponse,
  OidcClient,
  ProviderRejection,
  ProviderTokens,
} from './protocol.ts'
import { ProviderUnavailable } from './provider-fetch.ts'

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** The OAuth flows of a client. Each flow throws `ProviderUnavailable` when the provider does not respond correctly. */
export class OAuthFlows {
  readonly #client: OidcClient

  constructor(private readonly provider: DiscoveredProvider & { client: OidcClient }) {
    this.#client = provider.client
  }

  authorizationUrl(request: LoginRequest): URL {
    return buildAuthorizationUrl(this.provider.configuration, {
      redirect_uri: request.redirectUri,
      scope: this.#scope,
      state: request.state,
      ...(this.#isOpenId && { nonce: request.nonce }),
      code_challenge: request.codeChallenge,
      code_challenge_method: 'S256',
      ...this.#resource,
    })
  }

  exchangeCode(response: LoginResponse): Promise<ProviderTokens | ProviderRejection> {
    // Use the redirect URI that was sent to the provider, because a proxy may have changed the callback URL.
    const callbackUrl = new URL(response.redirectUri)
    callbackUrl.search = response.callbackUrl.search
    const checks = {
      expectedState: response.state,
      pkceCodeVerifier: response.codeVerifier,
      ...(this.#isOpenId && { expectedNonce: response.nonce }),
    }
    return toTokens(authorizationCodeGrant(this.provider.configuration, callbackUrl, checks, this.#resource))
  }

  refresh(refreshToken: string): Promise<ProviderTokens | ProviderRejection> {
    return toTokens(refreshTokenGrant(this.provider.configuration, refreshToken, this.#resource))
  }

  authorizeDevice(): Promise<DeviceAuthorization | ProviderRejection> {
    const parameters = { scope: this.#scope, ...this.#resource }
    return returnRejection(initiateDeviceAuthorization(this.provider.configuration, parameters))
  }

  exchangeDeviceCode(deviceCode: string): Promise<ProviderTokens | ProviderRejection> {
    const parameters = { device_code: deviceCode, ...this.#resource }
    return toTokens(genericGrantRequest(this.provider.configuration, deviceGrant, parameters))
  }

  /** True if the provider must return an ID token that contains the nonce. */
  get #isOpenId(): boolean {
    return this.#client.scopes.includes('openid')
  }

  /**
   * Scopes to request. They include `offline_access` if the provider supports it, to get a refresh token.
   *
   * @see docs/security.md#rule-13
   */
  get #scope(): string {
    const isOffline = this.provider.metadata.scopes_supported?.includes('offline_access')
    return [...new Set([...this.#client.scopes, ...(isOffline ? ['offline_access'] : [])])].join(' ')
  }

  /**
   * The parameter with the API for which tokens are requested. Without it, many providers issue opaque tokens.
   *
   * @see RFC 8707
   */
  get #resource(): Record<string, string> {
    const { resource } = this.#client
    return resource === null ? {} : { resource }
  }
}

/**
 * Converts a token response. Omits the ID token, which the library has already validated.
 *
 * @see docs/security.md#rule-12
 */
function toTokens(response: Promise<TokenEndpointResponse>): Promise<ProviderTokens | ProviderRejection> {
  return returnRejection(
    response.then(({ access_token, token_type, refresh_token, expires_in, scope }) =>
      token_type === 'bearer'
        ? {
            accessToken: access_token,
            tokenType: 'Bearer',
            ...(refresh_token !== undefined && { refreshToken: refresh_token }),
            ...(expires_in !== undefined && { expiresInSeconds: expires_in }),
            ...(scope !== undefined && { scope }),
          }
        : { errorCode: invalidResponseCode },
    ),
  )
}

/** Error code for an invalid response, such as one with a wrong state, a wrong issuer or an invalid ID token. */
const invalidResponseCode = 'invalid_response'
/** Error codes with which a provider reports that it is unavailable. */
const unavailableCodes: readonly string[] = ['server_error', 'temporarily_unavailable']
/** Codes of the library's errors for a response that is not an OAuth response. */
const notOAuthCodes: readonly (string | undefined)[] = [
  undefined,
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
]

async function returnRejection<T>(response: Promise<T>): Promise<T | ProviderRejection> {
  try {
    return await response
  } catch (error) {
    return toProviderRejection(error)
  }
}

/** @throws ProviderUnavailable  when the provider is unavailable */
function toProviderRejection(error: unknown): ProviderRejection {
  if (error instanceof AuthorizationResponseError) return { errorCode: wellFormedCode(error.error) }
  if (error instanceof ResponseBodyError) {
    const isBusy = error.status === 429 && error.error !== 'slow_down'
    if (isBusy || unavailableCodes.includes(error.error))
      throw new ProviderUnavailable('it reports that it is unavailable')
    return { errorCode: wellFormedCode(error.error) }
  }
  if (!(error instanceof ClientError)) throw error
  if (error.cause instanceof ProviderUnavailable) throw error.cause
  if (notOAuthCodes.includes(error.code))
    throw new ProviderUnavailable('its response is not an OAuth response')
  return { errorCode: invalidResponseCode }
}

/** Returns an error code if it is well-formed, because codes are used in audit records and responses. */
function wellFormedCode(code: string): string {
  return /^[a-z_]{1,64}$/.test(code) ? code : invalidResponseCode
}
