import { type Client, openClient } from '../../client/client.ts'
import { addressHint, failure } from '../../client/failure.ts'
import type { Incoming } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { auth } from '../../contract/auth.ts'
import type { Io } from '../io.ts'
import { type Announcement, findLocalServer } from '../local.ts'
import { profileFlag } from '../settings/login-line.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { overNetwork } from './over-network.ts'
import { jsonOf } from './raw-call.ts'
import type { ResolvedRuntime } from './resolve-runtime.ts'
import { timely } from './timely.ts'

/** What a runtime says of how callers prove who they are to it. */
export interface WaysSaid {
  readonly modes: { readonly apiKey: boolean; readonly oidc: boolean; readonly device: boolean }
  /** Where a browser signs in; null where none does. */
  readonly loginPath: string | null
}

export interface WaysIn extends WaysSaid {
  /** It is a server that said so, and not the configuration of this command. */
  readonly isServer: boolean
}

/** Whoever calls may: nobody is asked who they are. */
export function asksNobody({ modes }: Pick<WaysSaid, 'modes'>): boolean {
  return !modes.apiKey && !modes.oidc
}

/** API keys are not looked at; undefined where nothing says which ways in there are. */
export function looksAtTokensOnly(ways: WaysSaid | undefined): ways is WaysSaid {
  return ways?.modes.oidc === true && !ways.modes.apiKey
}

/**
 * Ask which ways in there are. An operator works beside the server of the data directory, which may run on another
 * configuration than this command; then the server is asked, as it is what callers meet.
 *
 * @returns undefined where nothing says so
 */
export async function waysIn(
  profile: Profile,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  { kind, baseUrl, fetch }: ResolvedRuntime,
): Promise<WaysIn | undefined> {
  try {
    const server = profile.asOperator ? await findLocalServer(profile.dataDir) : undefined
    if (server) return { ...(await askServer(profile, io, server)), isServer: true }
    return {
      ...(await askWays(openClient({ baseUrl, fetch: timely(fetch) }), profile)),
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
): Promise<WaysSaid> {
  const { fetch, close } = overNetwork(server, io, {})
  try {
    return await askWays(openClient({ baseUrl: server.url, fetch: timely(fetch) }), profile)
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
export async function askWays(client: Client, profile: Profile): Promise<WaysSaid> {
  const { method, path } = auth.config
  const answer = await client.raw({ method, path })
  if (answer.status >= 300) throw await refusal(answer, profile)
  const said = waysSaid(jsonOf(await answer.text()))
  if (said) return said
  throw noRuntime(profile, 'it does not say how people sign in')
}

async function refusal(answer: Incoming, profile: Profile): Promise<Error> {
  const error = await failure(answer)
  const isNoRuntime = answer.status === 404 || (answer.status >= 400 && error instanceof Unreachable)
  return isNoRuntime ? noRuntime(profile, `it answers ${answer.status} where one signs in`) : error
}

function waysSaid(answer: unknown): WaysSaid | undefined {
  const { modes, loginPath = null } = { ...(answer as Partial<WaysSaid> | undefined) }
  const { apiKey, oidc, device } = { ...modes }
  const isSound =
    typeof apiKey === 'boolean' &&
    typeof oidc === 'boolean' &&
    typeof device === 'boolean' &&
    (loginPath === null || typeof loginPath === 'string')
  return isSound ? { modes: { apiKey, oidc, device }, loginPath } : undefined
}

function noRuntime(profile: Profile, why: string): Unreachable {
  return new Unreachable(
    `${runtimeKey(profile)} does not look like a Workbase runtime: ${why}`,
    addressHint,
    { next: [`wb login URL${profileFlag(profile)}    by the address of the runtime itself`] },
  )
}
