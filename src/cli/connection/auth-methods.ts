import { parseJson } from '../../base/parse-json.ts'
import { type Client, openClient } from '../../client/client.ts'
import { addressHint, errorFromResponse } from '../../client/error-from-response.ts'
import type { IncomingResponse } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { auth } from '../../contract/auth.ts'
import type { Io } from '../io.ts'
import { type Announcement, findLocalServer } from '../local.ts'
import { profileFlag } from '../settings/login-command.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { connectOverNetwork } from './connect-over-network.ts'
import type { ResolvedRuntime } from './resolve-runtime.ts'
import { withResponseTimeout } from './response-timeout.ts'

/** Authentication methods that a runtime reports. */
export interface AuthMethods {
  readonly modes: { readonly apiKey: boolean; readonly oidc: boolean; readonly device: boolean }
  /** Path for browser sign-in; null if it is not supported. */
  readonly loginPath: string | null
}

export interface RuntimeAuthMethods extends AuthMethods {
  /** True if a server reported them; false if they come from the local configuration. */
  readonly isServer: boolean
}

/** Returns true if the runtime requires no credential. */
export function requiresNoCredential({ modes }: Pick<AuthMethods, 'modes'>): boolean {
  return !modes.apiKey && !modes.oidc
}

/** Returns true if the runtime accepts access tokens but not API keys; false if this is unknown. */
export function acceptsTokensOnly(methods: AuthMethods | undefined): methods is AuthMethods {
  return methods?.modes.oidc === true && !methods.modes.apiKey
}

/**
 * Returns the authentication methods of a runtime. With `--as-operator`, requests them from the server of the data
 * directory if one is running, because other callers send their requests to that server.
 *
 * @returns undefined if they cannot be determined
 */
export async function findAuthMethods(
  profile: Profile,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  { kind, baseUrl, fetch }: ResolvedRuntime,
): Promise<RuntimeAuthMethods | undefined> {
  try {
    const server = profile.asOperator ? await findLocalServer(profile.dataDir) : undefined
    if (server) return { ...(await fetchFromServer(profile, io, server)), isServer: true }
    return {
      ...(await fetchAuthMethods(openClient({ baseUrl, fetch: withResponseTimeout(fetch) }), profile)),
      isServer: kind !== 'process',
    }
  } catch {
    return undefined
  }
}

async function fetchFromServer(
  profile: Profile,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  server: Announcement,
): Promise<AuthMethods> {
  const { fetch, close } = connectOverNetwork(server, io, {})
  try {
    return await fetchAuthMethods(
      openClient({ baseUrl: server.url, fetch: withResponseTimeout(fetch) }),
      profile,
    )
  } finally {
    await close()
  }
}

/**
 * Requests the authentication methods of a runtime. No credential is required.
 *
 * @param profile  profile of the runtime, for error messages
 * @throws Unreachable  the server is not a runtime
 */
export async function fetchAuthMethods(client: Client, profile: Profile): Promise<AuthMethods> {
  const { method, path } = auth.config
  const response = await client.raw({ method, path })
  if (response.status >= 300) throw await responseError(response, profile)
  const methods = parseAuthMethods(parseJson(await response.text()))
  if (methods) return methods
  throw wrongServerError(profile, 'it does not report how to sign in')
}

async function responseError(response: IncomingResponse, profile: Profile): Promise<Error> {
  const error = await errorFromResponse(response)
  const isOtherServer = response.status === 404 || (response.status >= 400 && error instanceof Unreachable)
  return isOtherServer
    ? wrongServerError(profile, `it responds to /auth/config with status ${response.status}`)
    : error
}

function parseAuthMethods(body: unknown): AuthMethods | undefined {
  const { modes, loginPath = null } = { ...(body as Partial<AuthMethods> | undefined) }
  const { apiKey, oidc, device } = { ...modes }
  const isValid =
    typeof apiKey === 'boolean' &&
    typeof oidc === 'boolean' &&
    typeof device === 'boolean' &&
    (loginPath === null || typeof loginPath === 'string')
  return isValid ? { modes: { apiKey, oidc, device }, loginPath } : undefined
}

function wrongServerError(profile: Profile, reason: string): Unreachable {
  return new Unreachable(
    `${runtimeKey(profile)} does not look like a Workbase runtime: ${reason}`,
    addressHint,
    { next: [`wb login URL${profileFlag(profile)}    where URL is the address of the runtime`] },
  )
}
