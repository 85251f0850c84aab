import { z } from 'zod'
import { openToAll, signedIn } from './access.ts'
import { isoTimestamp } from './fields.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'
import { roles, scopes } from './scopes.ts'

const nullablePath = z.string().nullable()

const AuthConfig = z.object({
  modes: z.object({ apiKey: z.boolean(), oidc: z.boolean(), login: z.boolean(), device: z.boolean() }),
  loginPath: nullablePath,
  refreshPath: nullablePath,
  deviceAuthorizePath: nullablePath,
  deviceTokenPath: nullablePath,
  deviceRefreshPath: nullablePath,
})

export type AuthConfig = z.output<typeof AuthConfig>

const Me = z.object({
  id: z.string(),
  label: z.string().nullable(),
  type: z.enum(['apiKey', 'oidc', 'bootstrap', 'system']),
  workspaceScopes: z.array(z.string()).nullable(),
  role: z.enum(roles).nullable(),
  scopes: z.array(z.enum(scopes)).nullable(),
  expiresAt: z.int().nullable().meta({
    description: 'expiry of the access token, in seconds since 1970; null for other credentials',
  }),
  canRefresh: z.boolean(),
  keyExpiresAt: isoTimestamp.nullable().optional().meta({
    description: 'expiry of the API key, null if it does not expire; absent for callers without an API key',
  }),
})
export type Me = z.output<typeof Me>

/**
 * Response of the identity provider, unchanged.
 *
 * @see RFC 8628 section 3.2
 */
const DeviceAuthorization = z.looseObject({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: z.string(),
  verification_uri_complete: z.string().optional(),
  expires_in: z.number(),
  interval: z.number(),
})

/**
 * Token response in the format of RFC 6749 section 5.1. The runtime encrypts the refresh token, so only
 * `/auth/device/refresh` accepts it.
 */
const DeviceTokens = z.object({
  access_token: z.string(),
  token_type: z.string(),
  expires_in: z.number().optional(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
})
export type DeviceTokens = z.output<typeof DeviceTokens>

function oauthBody<S extends z.ZodType>(schema: S) {
  return {
    kind: 'json',
    schema,
    mode: 'lenient',
    limitBytes: limits.authBodyBytes,
    invalidBodyCode: 'invalid_request',
  } as const
}

/**
 * Error codes that an identity provider can send when it redirects the browser back.
 *
 * @see RFC 6749 section 4.1.2.1, OpenID Connect Core section 3.1.2.6
 */
export const authorizationErrors = [
  'access_denied',
  'account_selection_required',
  'consent_required',
  'interaction_required',
  'invalid_request',
  'invalid_scope',
  'login_required',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_response_type',
] as const

/**
 * Error codes of the identity provider that are returned to a device unchanged.
 *
 * @see RFC 8628 section 3.5, RFC 6749 section 5.2
 */
export const deviceTokenErrors = [
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'invalid_grant',
] as const

const signInUnavailableErrors = ['not_configured', 'identity_provider_unavailable'] as const

export const auth = {
  config: route({
    method: 'GET',
    path: '/auth/config',
    summary: 'List the authentication methods',
    access: openToAll,
    replies: { 200: AuthConfig },
    errors: [],
  }),
  login: route({
    method: 'GET',
    path: '/auth/login',
    summary: 'Start a browser sign-in',
    access: openToAll,
    query: z.object({ redirect_after: z.string().optional() }),
    replies: { 302: null },
    errors: [...signInUnavailableErrors],
  }),
  callback: route({
    method: 'GET',
    path: '/auth/callback',
    summary: 'Complete a browser sign-in',
    access: openToAll,
    query: z.object({
      code: z.string().optional(),
      state: z.string().optional(),
      error: z.string().optional(),
      iss: z.string().optional(),
    }),
    replies: { 302: null },
    errors: [
      ...signInUnavailableErrors,
      ...authorizationErrors,
      'invalid_callback',
      'invalid_state',
      'token_exchange_failed',
      'token_validation_failed',
      'session_too_large',
    ],
  }),
  me: route({
    method: 'GET',
    path: '/auth/me',
    summary: 'Show the authenticated caller',
    access: signedIn,
    replies: { 200: Me },
    errors: [],
  }),
  refresh: route({
    method: 'POST',
    path: '/auth/refresh',
    summary: 'Renew a browser session',
    access: openToAll,
    replies: { 200: z.object({ ok: z.literal(true), expiresAt: z.int().nullable() }) },
    errors: [
      ...signInUnavailableErrors,
      'no_refresh_token',
      'refresh_failed',
      'token_validation_failed',
      'session_too_large',
    ],
  }),
  logout: route({
    method: 'POST',
    path: '/auth/logout',
    summary: 'Sign a browser out',
    access: openToAll,
    replies: { 200: z.object({ postLogoutPath: z.string() }) },
    errors: ['not_configured'],
  }),
  deviceAuthorize: route({
    method: 'POST',
    path: '/auth/device/authorize',
    summary: 'Start a device sign-in',
    access: openToAll,
    replies: { 200: DeviceAuthorization },
    errors: [...signInUnavailableErrors, 'device_flow_not_supported', 'device_authorize_failed'],
  }),
  deviceToken: route({
    method: 'POST',
    path: '/auth/device/token',
    summary: 'Poll for the tokens of a device',
    access: openToAll,
    body: oauthBody(z.object({ device_code: z.string().min(1) })),
    replies: { 200: DeviceTokens },
    errors: [
      ...signInUnavailableErrors,
      ...deviceTokenErrors,
      'invalid_request',
      'device_flow_not_supported',
      'device_token_failed',
    ],
  }),
  deviceRefresh: route({
    method: 'POST',
    path: '/auth/device/refresh',
    summary: 'Renew the tokens of a device',
    access: openToAll,
    body: oauthBody(z.object({ refresh_token: z.string().min(1) })),
    replies: { 200: DeviceTokens },
    errors: [
      ...signInUnavailableErrors,
      'invalid_request',
      'invalid_grant',
      'device_flow_not_supported',
      'refresh_failed',
      'token_validation_failed',
    ],
  }),
}
