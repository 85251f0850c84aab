import { isLoopback } from '../../base/loopback.ts'
import { shellWord } from '../../base/shell-word.ts'
import { isRefusedConnection, Unreachable } from '../../client/unreachable.ts'
import {
  acceptsTokensOnly,
  type RuntimeAuthMethods,
  requiresNoCredential,
} from '../connection/auth-methods.ts'
import type { ResolvedRuntime } from '../connection/resolve-runtime.ts'
import type { Credential } from '../credentials/credential.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Profile } from '../settings/profile.ts'
import { localProfileCommand, readProfiles } from '../settings/profiles.ts'

/** A runtime that rejected a request as unauthenticated. */
export interface UnauthenticatedRuntime {
  readonly kind: ResolvedRuntime['kind']
  readonly baseUrl: string
  readonly authMethods: RuntimeAuthMethods | undefined
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
export function signInHints(
  profile: Profile,
  used: Credential | undefined,
  stranger: UnauthenticatedRuntime,
): string[] {
  const prefix = used?.from === 'WB_API_KEY' ? keyShape.exec(used.token)?.[1] : undefined
  const refused = used ? [describeRefusedCredential(used, prefix, stranger)] : []
  return [...refused, ...operatorHints(stranger.kind), ...authenticationHints(profile, prefix, stranger)]
}

function describeRefusedCredential(
  used: Credential,
  prefix: string | undefined,
  { kind, baseUrl, authMethods }: UnauthenticatedRuntime,
): string {
  if (used.kind === 'key' && acceptsTokensOnly(authMethods))
    return 'this runtime does not accept API keys (auth.mode oidc)'
  const runtime = kind === 'process' ? 'this runtime' : `the runtime at ${baseUrl}`
  const credential = prefix ? `the key ${prefix}` : used.kind === 'key' ? 'the key' : 'the token'
  const place = used.from === 'WB_API_KEY' ? 'in WB_API_KEY' : 'stored by wb login'
  return `${runtime} does not accept ${credential} ${place}`
}

/** Returns ways to authenticate. If typing a command solves the problem, the last line is that command. */
function authenticationHints(
  profile: Profile,
  prefix: string | undefined,
  stranger: UnauthenticatedRuntime,
): string[] {
  const { kind, baseUrl, authMethods, message } = stranger
  if (authMethods && requiresNoCredential(authMethods)) return []
  if (authMethods?.modes.device) return [signInAgainCommand(profile, stranger)]
  if (acceptsTokensOnly(authMethods))
    return [browserSignInHint(kind === 'process' ? undefined : baseUrl, authMethods.loginPath)]
  if (prefix && message.includes('expired'))
    return [`wb keys rotate ${prefix}    replaces it, if you may manage keys`]
  if (prefix && message.includes('revoked'))
    return [`wb keys create NAME    creates a key to replace ${prefix}, if you may manage keys`]
  if (kind === 'named')
    return [
      'wb keys create NAME    creates a key, if you may manage keys',
      'set WB_API_KEY=… to authenticate, or sign in:',
      signInAgainCommand(profile, stranger),
    ]
  return ['wb keys create NAME --role admin --as-operator    creates a key for WB_API_KEY']
}

/**
 * Returns the command to sign in again; in CI it reads a key, because no user can approve a sign-in.
 * `WB_API_KEY` is unset first, because it could take precedence over the new login.
 */
function signInAgainCommand(profile: Profile, { isCi }: UnauthenticatedRuntime): string {
  const first = profile.apiKey === undefined ? '' : 'unset WB_API_KEY; '
  return first + loginCommand(profile, isCi ? ' --with-token < KEY_FILE' : '')
}

/**
 * Returns how to sign in at a runtime that accepts only tokens of the identity provider.
 *
 * @param url        address of the runtime; undefined if a browser cannot reach it
 * @param loginPath  path of the browser sign-in
 */
export function browserSignInHint(url: string | undefined, loginPath: string | null | undefined): string {
  return url && loginPath && /^\/(?!\/)/.test(loginPath)
    ? `sign in at ${url}${loginPath}; WB_API_KEY takes an access token`
    : 'WB_API_KEY takes an access token of the identity provider'
}

/** Suggests `--as-operator`; empty for a runtime at a given address. */
export function operatorHints(kind: ResolvedRuntime['kind']): string[] {
  return kind === 'named' ? [] : ['add --as-operator to act as the owner of the data directory']
}

/**
 * Returns suggestions for a runtime that does not answer: how to continue without it, if a profile named it;
 * then the command that starts it on this machine, if the port is free, or else the one that finds the cause.
 */
export function unreachableHints(profile: Profile | undefined, error: Error): string[] {
  const withoutRuntime = profile?.urlFrom === 'profile' ? localHints(profile) : []
  const isRefused = !(error instanceof Unreachable) || isRefusedConnection(error)
  const start = profile?.url !== undefined && isRefused ? serveCommand(profile.url) : undefined
  const flag = profile?.urlFrom === '--url' ? ` --url ${shellWord(profile.url!)}` : ''
  return [...withoutRuntime, start ?? `wb doctor${flag}`]
}

/** Returns how to work without the runtime of a profile: for one command, and permanently. */
function localHints({ name, nameFrom, settingsDir }: Profile): string[] {
  if (nameFrom === '--profile')
    return [`use --local instead of --profile ${name} for this machine's data directory, without a server`]
  const once = "add --local to use this machine's data directory, without a server, for one command"
  if (nameFrom !== 'wb profiles use') return [once]
  return [once, `${localProfileCommand(readProfiles(settingsDir))}    switches back to this machine`]
}

/** Returns the command that starts a runtime at an address; undefined for an address of another machine. */
export function serveCommand(address: string): string | undefined {
  const { protocol, hostname, port } = new URL(address)
  if (!isLoopback(hostname)) return undefined
  return `wb serve --port ${port || (protocol === 'https:' ? 443 : 80)}`
}
