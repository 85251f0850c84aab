import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/client'
import type { Clock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { isUnencryptedRemote } from '../../base/loopback.ts'
import { BodyTooLong, readBody } from '../../base/read-body.ts'
import { resolveReleasedSecret } from '../endpoint.ts'
import { type EndpointGuard, endpointRefusalIn } from '../endpoint-guard.ts'
import {
  causeWithNameOnly,
  McpFailure,
  type McpSdk,
  mcpCredentialFailure,
  mcpEndpointRefusal,
} from './client.ts'
import type { McpHttpDependencies } from './http.ts'

/** A server that requires sign-in, and the OAuth client that is configured for it. */
export interface AuthorizedServer {
  readonly workspaceId: string
  readonly url: string
  /** ID of the client; null to register a client dynamically (RFC 7591). */
  readonly oauthClientId: string | null
  readonly oauthClientSecretRef: string | null
  /** Scopes to request; null to request those that the server advertises. */
  readonly oauthScopes: readonly string[] | null
}

/**
 * Authorization server, client and resource of a sign-in. Contains the client's secret only if the client was
 * registered dynamically.
 */
export interface AuthorizationContext {
  readonly metadata: AuthorizationServerMetadata
  readonly client: OAuthClientInformationMixed
  /** Resource identifier of the MCP server (RFC 8707). */
  readonly resource: string
}

/** A sign-in that has no authorization code yet. */
export interface PendingAuthorization {
  readonly context: AuthorizationContext
  readonly codeVerifier: string
  readonly redirectUri: string
  readonly scope: string | undefined
}

/** Tokens that an authorization server issued. */
export interface GrantedTokens {
  readonly accessToken: string
  readonly refreshToken: string | null
  readonly expiresInSeconds: number | null
  readonly scopes: string[] | null
}

/** Maximum total time for the requests of one step. */
const stepTimeoutMs = 10_000
/** Maximum size of one response. */
const responseBytesMax = 262_144
const requestsPerStepMax = 16
const tokenCharsMax = 16_384
const clientCharsMax = 2_048
const urlCharsMax = 2_048
const scopeCharsMax = 4_096
const authorizationUrlCharsMax = 16_384

/** Supported methods of client authentication, most preferred first. */
const clientAuthMethods = ['none', 'client_secret_basic', 'client_secret_post'] as const
type ClientAuthMethod = (typeof clientAuthMethods)[number]

/**
 * Signs users in to MCP servers, as an OAuth client with the authorization code flow and PKCE. All metadata comes from
 * remote servers. Therefore, the endpoint guard checks each request, and time and response sizes are limited.
 *
 * @see docs/tool-servers.md#sign-in-as-yourself,
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization
 */
export class McpAuthorization {
  constructor(
    private readonly deps: McpHttpDependencies & { readonly clock: Clock; readonly guard: EndpointGuard },
  ) {}

  /**
   * Finds the authorization server, registers a client if none is configured, and returns the URL at which the user
   * signs in.
   *
   * @throws McpFailure
   */
  start(
    server: AuthorizedServer,
    { redirectUri, state }: { readonly redirectUri: string; readonly state: string },
    signal: AbortSignal,
  ): Promise<{ authorizationUrl: string; pending: PendingAuthorization }> {
    return this.#step(signal, async (sdk, fetchFn) => {
      const challenge = await requestChallenge(server, sdk, fetchFn)
      const { resourceMetadataUrl } = challenge
      const resource = await sdk.discoverOAuthProtectedResourceMetadata(
        server.url,
        resourceMetadataUrl && { resourceMetadataUrl },
        fetchFn,
      )
      const requestedResource = sdk.resourceUrlFromServerUrl(server.url)
      const isForServer = sdk.checkResourceAllowed({
        requestedResource,
        configuredResource: resource.resource,
      })
      if (!isForServer || resource.resource.length > urlCharsMax)
        throw signInNotPossible('its metadata is for another resource')
      const issuer = resource.authorization_servers?.[0]
      if (issuer === undefined) throw signInNotPossible('its metadata contains no authorization server')
      const discovered = await sdk.discoverAuthorizationServerMetadata(issuer, { fetchFn })
      if (!discovered) throw signInNotPossible('its authorization server has no metadata')
      const metadata = this.#checkMetadata(discovered)
      const scope = requestedScope(
        server,
        challenge.scope ?? resource.scopes_supported?.join(' '),
        discovered,
      )
      const client = await this.#getClient(server, metadata, redirectUri, sdk, fetchFn)
      const { authorizationUrl, codeVerifier } = await sdk.startAuthorization(issuer, {
        metadata,
        clientInformation: client,
        redirectUrl: redirectUri,
        state,
        resource: resource.resource,
        ...(scope !== undefined && { scope }),
      })
      if (authorizationUrl.href.length > authorizationUrlCharsMax)
        throw signInNotPossible('the address of its sign-in page is too long')
      const context = { metadata, client, resource: resource.resource }
      return {
        authorizationUrl: authorizationUrl.href,
        pending: { context, codeVerifier, redirectUri, scope },
      }
    })
  }

  /**
   * Exchanges an authorization code for tokens.
   *
   * @param iss  issuer of the authorization response (RFC 9207)
   * @throws McpFailure
   */
  finish(
    server: AuthorizedServer,
    { context, codeVerifier, redirectUri, scope }: PendingAuthorization,
    { code, iss }: { readonly code: string; readonly iss?: string | undefined },
    signal: AbortSignal,
  ): Promise<GrantedTokens> {
    return this.#step(signal, async (sdk, fetchFn) => {
      const { metadata, resource } = context
      const tokens = await sdk.exchangeAuthorization(metadata.issuer, {
        metadata,
        clientInformation: await this.#withSecret(server, context, metadata.token_endpoint),
        authorizationCode: code,
        codeVerifier,
        redirectUri,
        resource,
        fetchFn,
        ...(iss !== undefined && { iss }),
      })
      return toGrantedTokens(tokens, scope)
    })
  }

  /**
   * Exchanges a refresh token for new tokens. The refresh token can become invalid in the process.
   *
   * @throws McpFailure  code `sign_in_required` if the user must sign in again
   */
  refresh(
    server: AuthorizedServer,
    context: AuthorizationContext,
    refreshToken: string,
    scopes: readonly string[] | null,
  ): Promise<GrantedTokens> {
    return this.#step(new AbortController().signal, async (sdk, fetchFn) => {
      const { metadata, resource } = context
      const tokens = await sdk.refreshAuthorization(metadata.issuer, {
        metadata,
        clientInformation: await this.#withSecret(server, context, metadata.token_endpoint),
        refreshToken,
        resource,
        fetchFn,
      })
      return toGrantedTokens(tokens, scopes?.join(' '))
    })
  }

  /** Revokes a token if the authorization server supports revocation (RFC 7009). @throws McpFailure */
  async revoke(
    server: AuthorizedServer,
    context: AuthorizationContext,
    { token, hint }: { readonly token: string; readonly hint: 'access_token' | 'refresh_token' },
  ): Promise<void> {
    const endpoint = revocationEndpointOf(context.metadata)
    if (endpoint === undefined) return
    await this.#step(new AbortController().signal, async (sdk, fetchFn) => {
      const body = new URLSearchParams({ token, token_type_hint: hint })
      const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded' })
      const client = await this.#withSecret(server, context, endpoint)
      const methods = context.metadata.token_endpoint_auth_methods_supported ?? []
      addClientCredentials(sdk.selectClientAuthMethod(client, methods), client, headers, body)
      await fetchFn(endpoint, { method: 'POST', headers, body })
    })
  }

  /** Runs one step, with limits for time and requests. Converts each failure to an `McpFailure`. */
  async #step<T>(signal: AbortSignal, work: (sdk: McpSdk, fetchFn: typeof fetch) => Promise<T>): Promise<T> {
    const sdk = await import('@modelcontextprotocol/client')
    try {
      return await withTimeout(
        this.deps.clock,
        stepTimeoutMs,
        stepSignal => work(sdk, this.#fetch(stepSignal)),
        signal,
      )
    } catch (error) {
      signal.throwIfAborted()
      throw toMcpFailure(error, sdk)
    }
  }

  #fetch(signal: AbortSignal): typeof fetch {
    let requests = 0
    return async (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input)
      requireSafe(url)
      if (++requests > requestsPerStepMax) throw signInNotPossible('it requires too many requests')
      const response = await this.deps.fetch(url, { ...init, redirect: 'manual', signal })
      if (response.status >= 300 && response.status < 400) {
        await response.body?.cancel()
        throw new McpFailure('redirected', `${url.host} responded with a redirect, which is not followed.`)
      }
      const body = await readBody(response.body, responseBytesMax)
      const { status, headers } = response
      return new Response(status === 204 || status === 205 ? null : body, { status, headers })
    }
  }

  /**
   * Checks the metadata of an authorization server, and returns the fields that are used later.
   *
   * @throws McpFailure  a required feature is not supported, or an endpoint may not be called
   */
  #checkMetadata(discovered: AuthorizationServerMetadata): AuthorizationServerMetadata {
    if (!discovered.code_challenge_methods_supported?.includes('S256'))
      throw signInNotPossible('its authorization server does not support PKCE with S256')
    if (!discovered.response_types_supported.includes('code'))
      throw signInNotPossible('its authorization server does not support authorization codes')
    const { authorization_endpoint, token_endpoint, registration_endpoint } = discovered
    const methods = discovered.token_endpoint_auth_methods_supported
    if (discovered.issuer.length > urlCharsMax)
      throw signInNotPossible('its authorization server has an issuer that is too long')
    const revocation_endpoint = revocationEndpointOf(discovered)
    for (const endpoint of [
      authorization_endpoint,
      token_endpoint,
      registration_endpoint,
      revocation_endpoint,
    ])
      if (endpoint !== undefined) this.#requireAllowed(endpoint)
    return {
      issuer: discovered.issuer,
      authorization_endpoint,
      token_endpoint,
      ...(registration_endpoint !== undefined && { registration_endpoint }),
      ...(revocation_endpoint !== undefined && { revocation_endpoint }),
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      ...(methods && {
        token_endpoint_auth_methods_supported: clientAuthMethods.filter(method => methods.includes(method)),
      }),
      ...('authorization_response_iss_parameter_supported' in discovered && {
        authorization_response_iss_parameter_supported:
          discovered.authorization_response_iss_parameter_supported === true,
      }),
    }
  }

  #requireAllowed(endpoint: string): void {
    if (!URL.canParse(endpoint) || endpoint.length > urlCharsMax)
      throw signInNotPossible('its authorization server has an endpoint that is too long or is not a URL')
    requireSafe(new URL(endpoint))
    this.deps.guard.requireUrl(endpoint)
  }

  async #getClient(
    { oauthClientId }: AuthorizedServer,
    metadata: AuthorizationServerMetadata,
    redirectUri: string,
    sdk: McpSdk,
    fetchFn: typeof fetch,
  ): Promise<OAuthClientInformationMixed> {
    if (oauthClientId !== null) return { client_id: oauthClientId }
    if (metadata.registration_endpoint === undefined)
      throw signInNotPossible('its authorization server does not register clients; set oauthClientId')
    const methods = metadata.token_endpoint_auth_methods_supported ?? ['none']
    const method = clientAuthMethods.find(method => methods.includes(method))
    if (method === undefined)
      throw signInNotPossible(
        'its authorization server supports none of the client authentication methods that this runtime supports',
      )
    const clientMetadata = sdk.resolveClientMetadata({
      redirectUrl: redirectUri,
      clientMetadata: {
        client_name: 'Workbase',
        redirect_uris: [redirectUri],
        response_types: ['code'],
        token_endpoint_auth_method: method,
      },
    })
    const registered = await sdk.registerClient(metadata.issuer, { metadata, clientMetadata, fetchFn })
    if (
      registered.client_id.length > clientCharsMax ||
      (registered.client_secret?.length ?? 0) > clientCharsMax
    )
      throw signInNotPossible(
        'the client that its authorization server registered has an ID or a secret that is too long',
      )
    const { client_id, client_secret } = registered
    return {
      client_id,
      token_endpoint_auth_method: method,
      ...(client_secret !== undefined && { client_secret }),
    }
  }

  /** Adds the configured secret to a client. The secret must be released for the endpoint that receives it. */
  async #withSecret(
    { workspaceId, oauthClientSecretRef: ref }: AuthorizedServer,
    { client }: AuthorizationContext,
    endpoint: string,
  ): Promise<OAuthClientInformationMixed> {
    if (ref === null) return client
    const deps = { ...this.deps, createFailure: mcpCredentialFailure }
    return {
      ...client,
      client_secret: await resolveReleasedSecret(deps, ref, workspaceId, new URL(endpoint)),
    }
  }
}

/**
 * Sends a request without a token. If the response has status 401, returns the metadata URL and the required scopes
 * in it, if any.
 */
async function requestChallenge({ url }: AuthorizedServer, sdk: McpSdk, fetchFn: typeof fetch) {
  const response = await fetchFn(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  })
  return response.status === 401 ? sdk.extractWWWAuthenticateParams(response) : {}
}

/**
 * Returns the configured scopes. If none are configured, returns the scopes that the server requires, and
 * `offline_access` if the authorization server supports it.
 */
function requestedScope(
  { oauthScopes }: AuthorizedServer,
  serverScope: string | undefined,
  { scopes_supported = [] }: AuthorizationServerMetadata,
): string | undefined {
  if (oauthScopes) return oauthScopes.join(' ') || undefined
  const scopes = new Set((serverScope ?? '').split(' ').filter(Boolean))
  if (scopes_supported.includes('offline_access')) scopes.add('offline_access')
  const scope = [...scopes].join(' ')
  if (scope.length > scopeCharsMax) throw signInNotPossible('it requires too many scopes')
  return scope || undefined
}

/** @throws McpFailure  a token cannot be sent as a bearer token */
function toGrantedTokens(tokens: OAuthTokens, defaultScope: string | undefined): GrantedTokens {
  const { access_token, refresh_token, token_type, expires_in, scope = defaultScope } = tokens
  if (token_type.toLowerCase() !== 'bearer')
    throw signInNotPossible('its authorization server does not issue bearer tokens')
  const isUsable = (token: string) => token.length <= tokenCharsMax && /^[\x21-\x7e]+$/.test(token)
  if (![access_token, refresh_token ?? access_token].every(isUsable))
    throw signInNotPossible('its authorization server issues tokens that cannot be sent in a header')
  return {
    accessToken: access_token,
    refreshToken: refresh_token ?? null,
    expiresInSeconds: expires_in === undefined ? null : Math.min(Math.max(expires_in, 0), 31_536_000),
    scopes: scope === undefined ? null : scope.slice(0, scopeCharsMax).split(' ').filter(Boolean),
  }
}

/** Returns the revocation endpoint. The SDK's type for OpenID Connect metadata lacks this field. */
function revocationEndpointOf(metadata: AuthorizationServerMetadata): string | undefined {
  const { revocation_endpoint } = metadata as { revocation_endpoint?: unknown }
  return typeof revocation_endpoint === 'string' ? revocation_endpoint : undefined
}

/**
 * Adds the client's credentials to a request.
 *
 * @see RFC 6749 section 2.3.1
 */
function addClientCredentials(
  method: ClientAuthMethod,
  { client_id, client_secret = '' }: OAuthClientInformationMixed,
  headers: Headers,
  body: URLSearchParams,
): void {
  if (method === 'client_secret_basic') {
    headers.set('authorization', `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`)
    return
  }
  body.set('client_id', client_id)
  if (method === 'client_secret_post') body.set('client_secret', client_secret)
}

/** @throws McpFailure  the URL is not HTTP(S), or uses unencrypted HTTP to another machine */
function requireSafe(url: URL): void {
  if (!/^https?:$/.test(url.protocol))
    throw new McpFailure('endpoint_refused', `An endpoint has the scheme ${url.protocol} instead of https.`)
  if (isUnencryptedRemote(url))
    throw new McpFailure('endpoint_refused', `${url.host} would be called without encryption.`)
}

function signInNotPossible(reason: string): McpFailure {
  return new McpFailure('protocol_error', `You cannot sign in to the server: ${reason}.`)
}

function toMcpFailure(error: unknown, { OAuthError, OAuthErrorCode }: McpSdk): McpFailure {
  if (error instanceof McpFailure) return error
  const failure = (code: McpFailure['code'], message: string, cause = error) =>
    new McpFailure(code, message, cause)
  const refusal = endpointRefusalIn(error)
  if (refusal) return mcpEndpointRefusal(refusal, error)
  if (error instanceof TimedOut)
    return failure('timeout', 'The server or its authorization server did not respond in time.')
  if (error instanceof BodyTooLong)
    return failure('too_large', `The authorization server sent more than ${responseBytesMax} bytes.`)
  if (error instanceof OAuthError) {
    const { code } = error
    const rejection = (kind: McpFailure['code'], message: string) =>
      failure(kind, message, causeWithNameOnly(error))
    if (code === OAuthErrorCode.InvalidGrant)
      return rejection('sign_in_required', 'The authorization server no longer accepts the sign-in.')
    if (code === OAuthErrorCode.ServerError || code === OAuthErrorCode.TemporarilyUnavailable)
      return rejection('http_error', 'The authorization server failed. Try again later.')
    const isKnown = (Object.values(OAuthErrorCode) as string[]).includes(code)
    return rejection(
      'unauthorized',
      `The authorization server rejected the sign-in${isKnown ? `: ${code}` : ''}.`,
    )
  }
  if (error instanceof TypeError && error.message === 'fetch failed')
    return failure('unreachable', 'The server or its authorization server cannot be reached.')
  return failure(
    'protocol_error',
    'The server or its authorization server does not follow the MCP authorization specification.',
    causeWithNameOnly(error),
  )
}
