import type { Me } from '../../contract/auth.ts'
import type { CredentialSelection } from '../credentials/credential.ts'
import type { StoredTokens } from '../credentials/token-store.ts'
import type { Fields } from '../fields/resources.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { callerName, permissionPhrases } from './identity.ts'
import { describeCredential, expirationField, expirationTime, keychainLocation } from './notes.ts'

/** The identity of the caller at a runtime, and the credential that proves it. */
export interface AuthStatus {
  readonly profile: Profile
  readonly selection: CredentialSelection
  /** Null for a caller without an identity. */
  readonly me: Me | null
  /** Description of the accessible workspaces. */
  readonly accessibleWorkspaces: string | undefined
  /** Tokens of the stored login. */
  readonly tokens: StoredTokens | undefined
}

/** Returns the status as JSON. */
export function authStatusJson({ profile, selection, me, tokens }: AuthStatus): object {
  const { used, others, reason } = selection
  return {
    profile: profile.name,
    runtime: runtimeKey(profile),
    runtimeFrom: profile.urlSource ?? 'data directory',
    credential: used
      ? { kind: used.kind, from: used.from, keychain: used.from === 'wb login' ? used.login.driver : null }
      : null,
    why: reason ?? null,
    others: others.map(({ kind, from }) => ({ kind, from })),
    expiresAt: expirationTime(me, tokens) ?? null,
    me,
  }
}

/** Returns the fields of the status to show. */
export function authStatusFields({
  profile,
  selection,
  me,
  accessibleWorkspaces,
  tokens,
}: AuthStatus): Fields {
  const { used, others, reason } = selection
  return {
    profile:
      profile.nameSource === 'wb profiles use'
        ? profile.name
        : `${profile.name} (from ${profile.nameSource})`,
    runtime: `${runtimeKey(profile)} (${profile.urlSource ? `from ${profile.urlSource === 'profile' ? 'the profile' : profile.urlSource}` : 'data directory'})`,
    credential: used ? `${describeCredential(used)}${reason ? `: ${reason}` : ''}` : (reason ?? 'none'),
    'not sent': others.map(describeCredential).join(', '),
    stored: used?.from === 'wb login' ? keychainLocation(used.login.driver, profile) : undefined,
    identity: me && callerName(me),
    may: me && `${permissionPhrases(me).join('; ')}, in ${accessibleWorkspaces}`,
    ends: expirationField(me, tokens),
  }
}
