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
  /** Message of the error response. */
  readonly message: string
}

const keyPattern = /^wb_live_(?:([a-z0-9]{12})_)?/

/**
 * Returns suggestions for an unauthenticated request. They do not repeat the command line, which can contain a
 * credential. They can contain the prefix of a key, which is not secret.
 *
 * @see docs/security.md#rule-8
 */
export function signInHints(
  profile: Profile,
  credential: Credential | undefined,
  runtime: UnauthenticatedRuntime,
): string[] {
  const prefix = credential?.from === 'WB_API_KEY' ? keyPattern.exec(credential.token)?.[1] : undefined
  const rejection = credential ? [describeRejectedCredential(credential, prefix, runtime)] : []
  return [...rejection, ...operatorHints(runtime.kind), ...authenticationHints(profile, prefix, runtime)]
}

function describeRejectedCredential(
  credential: Credential,
  prefix: string | undefined,
  { kind, baseUrl, authMethods }: UnauthenticatedRuntime,
): string {
  if (credential.kind === 'key' && acceptsTokensOnly(authMethods))
    return 'this runtime does not accept API keys (auth.mode oidc)'
  const runtimeName = kind === 'process' ? 'this runtime' : `the runtime at ${baseUrl}`
  const credentialName = prefix ? `the key ${prefix}` : credential.kind === 'key' ? 'the key' : 'the token'
  const location = credential.from === 'WB_API_KEY' ? 'in WB_API_KEY' : 'stored by wb login'
  return `${runtimeName} does not accept ${credentialName} ${location}`
}

/** Returns ways to authenticate. If a command solves the problem, the last line is this command. */
function authenticationHints(
  profile: Profile,
  prefix: string | undefined,
  runtime: UnauthenticatedRuntime,
): string[] {
  const { kind, baseUrl, authMethods, message } = runtime
  if (authMethods && requiresNoCredential(authMethods)) return []
  if (authMethods?.modes.device) return [signInAgainCommand(profile, runtime)]
  if (acceptsTokensOnly(authMethods))
    return [browserSignInHint(kind === 'process' ? undefined : baseUrl, authMethods.loginPath)]
  if (prefix && message.includes('expired'))
    return [`wb keys rotate ${prefix}    replaces it, if you may manage keys`]
  if (prefix && message.includes('revoked'))
    return [`wb keys create NAME    creates a key to replace ${prefix}, if you may manage keys`]
  if (kind === 'url')
    return [
      'wb keys create NAME    creates a key, if you may manage keys',
      'set WB_API_KEY=… to authenticate, or sign in:',
      signInAgainCommand(profile, runtime),
    ]
  return ['wb keys create NAME --role admin --as-operator    creates a key for WB_API_KEY']
}

/**
 * Returns the command to sign in again. In CI, the command reads a key, because no user can approve a sign-in. If
 * `WB_API_KEY` is set, the command unsets it first, because it could take precedence over the new login.
 */
function signInAgainCommand(profile: Profile, { isCi }: UnauthenticatedRuntime): string {
  const unsetCommand = profile.apiKey === undefined ? '' : 'unset WB_API_KEY; '
  return unsetCommand + loginCommand(profile, isCi ? ' --with-token < KEY_FILE' : '')
}

/**
 * Returns a suggestion to sign in to a runtime that accepts only access tokens of the identity provider.
 *
 * @param url        address of the runtime; undefined if a browser cannot reach it
 * @param loginPath  path of the browser sign-in
 */
export function browserSignInHint(url: string | undefined, loginPath: string | null | undefined): string {
  return url && loginPath && /^\/(?!\/)/.test(loginPath)
    ? `sign in at ${url}${loginPath}, or set WB_API_KEY to an access token`
    : 'set WB_API_KEY to an access token of the identity provider'
}

/** Suggests `--as-operator`, except for a runtime that was selected by its address. */
export function operatorHints(kind: ResolvedRuntime['kind']): string[] {
  return kind === 'url' ? [] : ['add --as-operator to act as the owner of the data directory']
}

/**
 * Returns suggestions for a runtime that does not respond. If its address comes from a profile, the first lines
 * explain how to work without that runtime. The last line is a command: `wb serve` if the address is a free port of this
 * machine, otherwise `wb doctor`.
 */
export function unreachableHints(profile: Profile | undefined, error: Error): string[] {
  const withoutRuntime = profile?.urlSource === 'profile' ? localHints(profile) : []
  const isPortFree = !(error instanceof Unreachable) || isRefusedConnection(error)
  const start = profile?.url !== undefined && isPortFree ? serveCommand(profile.url) : undefined
  const flag = profile?.urlSource === '--url' ? ` --url ${shellWord(profile.url!)}` : ''
  return [...withoutRuntime, start ?? `wb doctor${flag}`]
}

/** Returns suggestions to work without the runtime of a profile, for one command or permanently. */
function localHints({ name, nameSource, settingsDir }: Profile): string[] {
  if (nameSource === '--profile')
    return [`use --local instead of --profile ${name} to use the data directory of this machine`]
  const forOneCommand = 'add --local to use the data directory of this machine for one command'
  if (nameSource !== 'wb profiles use') return [forOneCommand]
  return [forOneCommand, `${localProfileCommand(readProfiles(settingsDir))}    switches back to this machine`]
}

/** Returns the command that starts a runtime at an address; undefined if the address is on another machine. */
export function serveCommand(address: string): string | undefined {
  const { protocol, hostname, port } = new URL(address)
  if (!isLoopback(hostname)) return undefined
  return `wb serve --port ${port || (protocol === 'https:' ? 443 : 80)}`
}
