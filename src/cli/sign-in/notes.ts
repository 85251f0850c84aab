import type { Me } from '../../contract/auth.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import type { ResolvedRuntime } from '../connection/resolve-runtime.ts'
import type { Session } from '../connection/session.ts'
import type { Credential } from '../credentials/credential.ts'
import { credentialsFolder } from '../credentials/keychains.ts'
import type { StoredTokens } from '../credentials/token-store.ts'
import type { Io } from '../io.ts'
import { profileFlag } from '../settings/login-command.ts'
import { type Profile, readProfile, runtimeKey } from '../settings/profile.ts'
import { formatDue } from '../terminal/duration.ts'
import type { Field } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { callerName, describeWorkspaces, permissionPhrases } from './identity.ts'
import type { SignedIn } from './sign-in.ts'

/** Returns lines for a completed sign-in: identity, permissions, expiration, and a command to try. */
export async function signedInNotes(
  session: Session,
  { me, tokens, driver }: SignedIn & { driver: KeychainDriver },
  nowMs: number,
): Promise<string[]> {
  const { profile } = session
  const accessibleWorkspaces = await describeWorkspaces(session.clientWithToken(tokens.token), me)
  return [
    `  ✓ signed in to ${runtimeKey(profile)} as ${callerName(me)}`,
    `    may     ${permissionPhrases(me).join('; ')}, in ${accessibleWorkspaces}`,
    ...expirationLine(expirationField(me, tokens), nowMs),
    `    stored  ${keychainLocation(driver, profile)}${profile.name === 'default' ? '' : `, as profile ${profile.name}`}`,
    `  wb kb search "…"${profileFlag(profile)}`,
  ]
}

/** Returns lines for a runtime that requires no sign-in. */
export function noSignInNotes(profile: Profile, kind: ResolvedRuntime['kind']): string[] {
  if (kind === 'process')
    return [
      '  there is no runtime to sign in to',
      '  wb login https://…    signs in to a remote runtime',
      '  wb serve              starts one on this machine',
      '  wb quickstart         works without a server',
    ]
  return [`  ${runtimeKey(profile)} does not require a sign-in`, '  wb kb list']
}

/** Returns a warning if an environment variable would make the next command use another runtime. */
export function otherRuntimeNote({ name, url }: Profile, io: Io): string | undefined {
  const next = readProfile({ profile: name }, io)
  if (url === undefined || next.url === url) return undefined
  return `  ! ${next.urlSource ?? 'WB_DATA_DIR'} in the environment selects another runtime`
}

function expirationLine(end: Field, nowMs: number): string[] {
  if (end === undefined || end === null) return []
  const text = typeof end === 'object' && 'due' in end ? formatDue(Date.parse(end.due ?? ''), nowMs) : end
  return [`    ends    ${text}`]
}

/** Returns the field for the expiration of an identity: a time, or a description; undefined if it is unknown. */
export function expirationField(me: ExpirationFields | null, tokens: StoredTokens | undefined): Field {
  if (tokens?.refreshToken !== undefined) return 'when you sign out, or the identity provider ends it'
  const due = expirationTime(me, tokens)
  return due === null ? 'when it is revoked' : due && { due }
}

type ExpirationFields = Pick<Me, 'expiresAt' | 'keyExpiresAt'>

/** Returns the expiration in ISO 8601; null for a key that does not expire, undefined if unknown. */
export function expirationTime(
  me: ExpirationFields | null,
  tokens: StoredTokens | undefined,
): string | null | undefined {
  if (me?.keyExpiresAt !== undefined) return me.keyExpiresAt
  const ms = tokens?.expiresAt ?? (me?.expiresAt != null ? me.expiresAt * 1_000 : undefined)
  return ms === undefined ? undefined : new Date(ms).toISOString()
}

/** Describes a credential without its secret. */
export function describeCredential(candidate: Credential): string {
  const noun = candidate.kind === 'key' ? 'an API key' : 'an access token'
  return candidate.from === 'WB_API_KEY'
    ? `${noun} in WB_API_KEY`
    : `${noun} stored by wb login for ${plainLine(candidate.login.who)}`
}

/** Describes where a keychain stores logins. */
export function keychainLocation(driver: KeychainDriver, profile: Pick<Profile, 'settingsDir'>): string {
  return driver === 'file'
    ? `in ${credentialsFolder(profile)}, which only you can read`
    : `in the keychain of this system (${driver})`
}
