import { isLoopback } from '../../base/loopback.ts'
import { shellWord } from '../../base/shell-word.ts'
import { isFree, Unreachable } from '../../client/unreachable.ts'
import type { ResolvedRuntime } from '../connection/resolve-runtime.ts'
import { asksNobody, looksAtTokensOnly, type WaysIn } from '../connection/ways-in.ts'
import type { Candidate } from '../credentials/credential.ts'
import { loginLine } from '../settings/login-line.ts'
import type { Profile } from '../settings/profile.ts'
import { homeLine, readProfiles } from '../settings/profiles.ts'

/** A runtime that rejected a request as unauthenticated. */
export interface Stranger {
  readonly kind: ResolvedRuntime['kind']
  readonly baseUrl: string
  readonly ways: WaysIn | undefined
  /** True in CI, where no user can approve a sign-in. */
  readonly isCi: boolean
  /** The message of the refusal. */
  readonly message: string
}

const keyShape = /^wb_live_(?:([a-z0-9]{12})_)?/

/**
 * Returns suggestions after an unauthenticated request. They do not repeat the command line, which can
 * contain a credential; the prefix of a key is public.
 *
 * @see docs/security.md#rule-8
 */
export function signingIn(profile: Profile, used: Candidate | undefined, stranger: Stranger): string[] {
  const prefix = used?.from === 'WB_API_KEY' ? keyShape.exec(used.token)?.[1] : undefined
  const refused = used ? [refusedCredential(used, prefix, stranger)] : []
  return [...refused, ...asOwner(stranger.kind), ...cures(profile, prefix, stranger)]
}

function refusedCredential(
  used: Candidate,
  prefix: string | undefined,
  { kind, baseUrl, ways }: Stranger,
): string {
  if (used.kind === 'key' && looksAtTokensOnly(ways))
    return 'API keys are not looked at here (auth.mode oidc)'
  const runtime = kind === 'process' ? 'this runtime' : `the runtime at ${baseUrl}`
  const credential = prefix ? `the key ${prefix}` : used.kind === 'key' ? 'the key' : 'the token'
  const place = used.from === 'WB_API_KEY' ? 'in WB_API_KEY' : 'that wb login stored'
  return `${runtime} does not accept ${credential} ${place}`
}

/** Returns ways to authenticate. If typing a command solves the problem, the last line is that command. */
function cures(profile: Profile, prefix: string | undefined, stranger: Stranger): string[] {
  const { kind, baseUrl, ways, message } = stranger
  if (ways && asksNobody(ways)) return []
  if (ways?.modes.device) return [signInAgain(profile, stranger)]
  if (looksAtTokensOnly(ways)) return [signInLine(kind === 'process' ? undefined : baseUrl, ways.loginPath)]
  if (prefix && message.includes('expired'))
    return [`wb keys rotate ${prefix}    makes its successor, by who manages keys`]
  if (prefix && message.includes('revoked'))
    return [`wb keys create NAME    makes another than ${prefix}, by who manages keys`]
  if (kind === 'named')
    return [
      'wb keys create NAME    makes a key, for who may',
      'WB_API_KEY=… in the environment says who you are, and so does',
      signInAgain(profile, stranger),
    ]
  return ['wb keys create NAME --role admin --as-operator    makes a key, for WB_API_KEY']
}

/**
 * Returns the command to sign in again; in CI it reads a key, because no user can approve a sign-in.
 * `WB_API_KEY` is unset first, because it could take precedence over the new login.
 */
function signInAgain(profile: Profile, { isCi }: Stranger): string {
  const first = profile.apiKey === undefined ? '' : 'unset WB_API_KEY; '
  return first + loginLine(profile, isCi ? ' --with-token < KEY_FILE' : '')
}

/**
 * Returns how to sign in at a runtime that accepts only tokens of the identity provider.
 *
 * @param url        address of the runtime; undefined if a browser cannot reach it
 * @param loginPath  path of the browser sign-in
 */
export function signInLine(url: string | undefined, loginPath: string | null | undefined): string {
  return url && loginPath && /^\/(?!\/)/.test(loginPath)
    ? `sign in at ${url}${loginPath}; WB_API_KEY takes an access token`
    : 'WB_API_KEY takes an access token of the identity provider'
}

/** Suggests `--as-operator`; empty for a runtime at a given address. */
export function asOwner(kind: ResolvedRuntime['kind']): string[] {
  return kind === 'named' ? [] : ['add --as-operator to act as the owner of the data directory']
}

/**
 * Returns suggestions for a runtime that does not answer: how to continue without it, if a profile named it;
 * then the command that starts it on this machine, if the port is free, or else the one that finds the cause.
 */
export function unreached(profile: Profile | undefined, error: Error): string[] {
  const goOn = profile?.urlFrom === 'profile' ? localSuggestions(profile) : []
  const isRefused = !(error instanceof Unreachable) || isFree(error)
  const start = profile?.url !== undefined && isRefused ? serveLine(profile.url) : undefined
  const flag = profile?.urlFrom === '--url' ? ` --url ${shellWord(profile.url!)}` : ''
  return [...goOn, start ?? `wb doctor${flag}`]
}

/** Returns how to work without the runtime of a profile: for one command, and permanently. */
function localSuggestions({ name, nameFrom, settingsDir }: Profile): string[] {
  if (nameFrom === '--profile')
    return [`use --local instead of --profile ${name} for this machine's data directory, without a server`]
  const once = "add --local to use this machine's data directory, without a server, for one command"
  if (nameFrom !== 'wb profiles use') return [once]
  return [once, `${homeLine(readProfiles(settingsDir))}    switches back to this machine`]
}

/** Returns the command that starts a runtime at an address; undefined for an address of another machine. */
export function serveLine(address: string): string | undefined {
  const { protocol, hostname, port } = new URL(address)
  if (!isLoopback(hostname)) return undefined
  return `wb serve --port ${port || (protocol === 'https:' ? 443 : 80)}`
}
