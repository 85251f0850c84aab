import { type Client, connect } from '../../client/client.ts'
import { addressHint, failure } from '../../client/failure.ts'
import type { Incoming } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { auth } from '../../contract/auth.ts'
import type { Io } from '../io.ts'
import { type Announcement, findLocalServer } from '../local.ts'
import { profileFlag } from '../settings/login-command.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { connectOverNetwork } from './over-network.ts'
import { parseJson } from './raw-call.ts'
import type { ResolvedRuntime } from './resolve-runtime.ts'
import { withResponseTimeout } from './response-timeout.ts'

/** What a runtime says of how callers prove who they are to it. */
export interface AuthMethods {
  readonly modes: { readonly apiKey: boolean; readonly oidc: boolean; readonly device: boolean }
  /** Where a browser signs in; null where none does. */
  readonly loginPath: string | null
}

export interface RuntimeAuthMethods extends AuthMethods {
  /** It is a server that said so, and not the configuration of this command. */
  readonly isServer: boolean
}

/** Whoever calls may: nobody is asked who they are. */
export function requiresNoCredential({ modes }: Pick<AuthMethods, 'modes'>): boolean {
  return !modes.apiKey && !modes.oidc
}

/** API keys are not looked at; undefined where nothing says which ways in there are. */
export function acceptsTokensOnly(ways: AuthMethods | undefined): ways is AuthMethods {
  return ways?.modes.oidc === true && !ways.modes.apiKey
}

/**
 * Ask which ways in there are. An operator works beside the server of the data directory, which may run on another
 * configuration than this command; then the server is asked, as it is what callers meet.
 *
 * @returns undefined where nothing says so
 */
export async function findAuthMethods(
  profile: Profile,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  { kind, baseUrl, fetch }: ResolvedRuntime,
): Promise<RuntimeAuthMethods | undefined> {
  try {
    const server = profile.asOperator ? await findLocalServer(profile.dataDir) : undefined
    if (server) return { ...(await askServer(profile, io, server)), isServer: true }
    return {
      ...(await fetchAuthMethods(connect({ baseUrl, fetch: withResponseTimeout(fetch) }), profile)),
      isServer: kind !== 'process',
    }
  } catch {
    return undefined
  }
}

async function askServer(
  profile: Profile,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  server: Announcement,
): Promise<AuthMethods> {
  const { fetch, close } = connectOverNetwork(server, io, {})
  try {
    return await fetchAuthMethods(
      connect({ baseUrl: server.url, fetch: withResponseTimeout(fetch) }),
      profile,
    )
  } finally {
    await close()
  }
}

/**
 * Ask a runtime how people sign in. Every runtime says so, to everybody.
 *
 * @param profile  whose runtime it is
 * @throws Unreachable  what answers is no runtime
 */
export async function fetchAuthMethods(client: Client, profile: Profile): Promise<AuthMethods> {
  const { method, path } = auth.config
  const answer = await client.raw({ method, path })
  if (answer.status >= 300) throw await refusal(answer, profile)
  const said = parseAuthMethods(parseJson(await answer.text()))
  if (said) return said
  throw notARuntime(profile, 'it does not report how to sign in')
}

async function refusal(answer: Incoming, profile: Profile): Promise<Error> {
  const error = await failure(answer)
  const isNoRuntime = answer.status === 404 || (answer.status >= 400 && error instanceof Unreachable)
  return isNoRuntime
    ? notARuntime(profile, `it responds to /auth/config with status ${answer.status}`)
    : error
}

function parseAuthMethods(answer: unknown): AuthMethods | undefined {
  const { modes, loginPath = null } = { ...(answer as Partial<AuthMethods> | undefined) }
  const { apiKey, oidc, device } = { ...modes }
  const isSound =
    typeof apiKey === 'boolean' &&
    typeof oidc === 'boolean' &&
    typeof device === 'boolean' &&
    (loginPath === null || typeof loginPath === 'string')
  return isSound ? { modes: { apiKey, oidc, device }, loginPath } : undefined
}

function notARuntime(profile: Profile, why: string): Unreachable {
  return new Unreachable(
    `${runtimeKey(profile)} does not look like a Workbase runtime: ${why}`,
    addressHint,
    { next: [`wb login URL${profileFlag(profile)}    with the address of the runtime itself`] },
  )
}
