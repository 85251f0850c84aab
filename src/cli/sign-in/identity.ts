import type { Client } from '../../client/client.ts'
import { unexpectedResponse } from '../../client/unreachable.ts'
import { auth, type Me } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { scopesOfRole } from '../../contract/scopes.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { type RuntimeAuthMethods, requiresNoCredential } from '../connection/auth-methods.ts'
import type { Session } from '../connection/session.ts'
import { describeScopes } from '../keys/describe-scopes.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Maximum number of workspaces to list by name. Other workspaces are only counted. */
const listedNamesMax = 5
/** Maximum number of other workspaces to count. */
const countMax = 1_000

/** Identity of the caller at a runtime. */
export type CallerIdentity =
  | { readonly kind: 'identified'; readonly me: Me }
  /** No credential is sent, and the runtime requires none. */
  | { readonly kind: 'anonymous' }
  /** The runtime requires a credential, but the caller sent none, or the runtime did not accept it. */
  | {
      readonly kind: 'rejected'
      readonly error: WbError
      readonly authMethods: RuntimeAuthMethods | undefined
    }

/** An anonymous caller, with the fields of {@link Me}. `scopes: null` means every scope. */
export const anonymous = {
  id: null,
  label: null,
  type: 'anonymous',
  workspaceScopes: null,
  role: null,
  scopes: null,
  expiresAt: null,
  canRefresh: false,
} as const satisfies Record<Exclude<keyof Me, 'keyExpiresAt'>, unknown>

/** Identifies the caller at the runtime. @throws KeychainUnavailable */
export async function identifyCaller(session: Session, signal?: AbortSignal): Promise<CallerIdentity> {
  try {
    return { kind: 'identified', me: await fetchIdentity(session.client, signal) }
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'unauthorized') throw error
    const authMethods = await session.authMethods()
    if (authMethods && requiresNoCredential(authMethods) && !session.credential.used)
      return { kind: 'anonymous' }
    return { kind: 'rejected', error, authMethods }
  }
}

/** Returns the identity of the caller. @throws Unreachable  the response is not a valid identity */
export async function fetchIdentity(client: Client, signal?: AbortSignal): Promise<Me> {
  const me = await client.call(auth.me, {}, { signal })
  const isString = (value: unknown) => typeof value === 'string' && value.length <= nameCharsMax
  const isStringListOrNull = (value: unknown) =>
    value === null || (Array.isArray(value) && value.every(isString))
  const isValid =
    isString(me.id) &&
    (me.label === null || isString(me.label)) &&
    (me.role === null || isString(me.role)) &&
    isStringListOrNull(me.scopes) &&
    isStringListOrNull(me.workspaceScopes) &&
    isUnixTime(me.expiresAt) &&
    isExpiration(me.keyExpiresAt)
  if (!isValid) throw unexpectedResponse('the runtime returned an invalid identity')
  return me
}

/** Maximum length of a name. */
const nameCharsMax = 1_000

/** Returns true for a time in seconds since 1970 that a date can represent, or null. */
function isUnixTime(seconds: unknown): boolean {
  return seconds === null || (Number.isSafeInteger(seconds) && Math.abs(seconds as number) < 1e11)
}

/** Returns true for a time in ISO 8601, null or undefined. */
function isExpiration(time: unknown): boolean {
  return time == null || (typeof time === 'string' && isUnixTime(Math.trunc(Date.parse(time) / 1_000)))
}

/** Returns the label or ID of a caller. */
export function callerName({ label, id }: Pick<Me, 'label' | 'id'>): string {
  return plainLine(label ?? id)
}

/** Returns the role or scopes of a caller. */
export function permissionSummary({ role, scopes }: Pick<Me, 'role' | 'scopes'>): string {
  return role ?? (scopes ? scopes.join(', ') : 'all permissions')
}

/** Describes the permissions of a caller in phrases that can follow "may". */
export function permissionPhrases({ scopes, role }: Pick<Me, 'scopes' | 'role'>): readonly string[] {
  const granted = scopes ?? (role && scopesOfRole[role])
  return granted ? describeScopes(granted).may : ['do everything']
}

/** Describes the workspaces that a caller has access to. */
export async function describeWorkspaces(
  client: Client,
  { workspaceScopes }: Pick<Me, 'workspaceScopes'>,
): Promise<string> {
  if (workspaceScopes === null) return 'every workspace'
  const names: string[] = []
  let unlistedCount = 0
  for await (const { name } of client.items(workspaces.list, {}))
    if (names.length < listedNamesMax) names.push(plainLine(name))
    else if (++unlistedCount >= countMax) break
  if (names.length === 0) return 'no existing workspace'
  return `workspace ${names.join(', ')}${unlistedCount > 0 ? ` and ${unlistedCount} more` : ''}`
}
