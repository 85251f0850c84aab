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

/** Maximum number of workspaces to list by name. More are only counted. */
const listedNamesMax = 5
const countMax = 1_000

/** Identity of the caller at a runtime. */
export type CallerIdentity =
  | { readonly kind: 'known'; readonly me: Me }
  /** The runtime requires no credential. */
  | { readonly kind: 'anybody' }
  /** The runtime does not accept the credential, or the credential cannot be sent. */
  | { readonly kind: 'stranger'; readonly refusal: WbError; readonly ways: RuntimeAuthMethods | undefined }

/** An anonymous caller, with the fields of {@link Me}. Null scopes mean every scope. */
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
    return { kind: 'known', me: await fetchIdentity(session.client, signal) }
  } catch (refusal) {
    if (!(refusal instanceof WbError) || refusal.code !== 'unauthorized') throw refusal
    const ways = await session.authMethods()
    if (ways && requiresNoCredential(ways) && !session.credential.used) return { kind: 'anybody' }
    return { kind: 'stranger', refusal, ways }
  }
}

/** @throws Unreachable  what answers does not say who one is in a way that could be shown */
export async function fetchIdentity(client: Client, signal?: AbortSignal): Promise<Me> {
  const me = await client.call(auth.me, {}, { signal })
  const isText = (value: unknown) => typeof value === 'string' && value.length <= nameCharsMax
  const areTexts = (value: unknown) => value === null || (Array.isArray(value) && value.every(isText))
  const isSound =
    isText(me.id) &&
    (me.label === null || isText(me.label)) &&
    (me.role === null || isText(me.role)) &&
    areTexts(me.scopes) &&
    areTexts(me.workspaceScopes) &&
    isUnixTime(me.expiresAt) &&
    isExpiration(me.keyExpiresAt)
  if (!isSound) throw unexpectedResponse('the runtime returned an invalid identity')
  return me
}

/** Maximum length of a name. */
const nameCharsMax = 1_000

function isUnixTime(seconds: unknown): boolean {
  return seconds === null || (Number.isSafeInteger(seconds) && Math.abs(seconds as number) < 1e11)
}

function isExpiration(moment: unknown): boolean {
  return moment == null || (typeof moment === 'string' && isUnixTime(Math.trunc(Date.parse(moment) / 1_000)))
}

/** Returns the label or ID of a caller. */
export function callerName({ label, id }: Pick<Me, 'label' | 'id'>): string {
  return plainLine(label ?? id)
}

/** Returns the role or scopes of a caller. */
export function permissionSummary({ role, scopes }: Pick<Me, 'role' | 'scopes'>): string {
  return role ?? (scopes ? scopes.join(', ') : 'all permissions')
}

/** Returns phrases for the permissions of a caller, worded to follow "may". */
export function permissionPhrases({ scopes, role }: Pick<Me, 'scopes' | 'role'>): readonly string[] {
  const held = scopes ?? (role && scopesOfRole[role])
  return held ? describeScopes(held).may : ['do everything']
}

/** Describes the workspaces that a caller has access to. */
export async function describeWorkspaces(
  client: Client,
  { workspaceScopes }: Pick<Me, 'workspaceScopes'>,
): Promise<string> {
  if (workspaceScopes === null) return 'every workspace'
  const names: string[] = []
  let more = 0
  for await (const { name } of client.items(workspaces.list, {}))
    if (names.length < listedNamesMax) names.push(plainLine(name))
    else if (++more >= countMax) break
  if (names.length === 0) return 'no existing workspace'
  return `workspace ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
