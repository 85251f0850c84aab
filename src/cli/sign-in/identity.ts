import type { Client } from '../../client/client.ts'
import { unexpectedResponse } from '../../client/unreachable.ts'
import { auth, type Me } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { scopesOfRole } from '../../contract/scopes.ts'
import { workspaces } from '../../contract/workspaces.ts'
import type { Session } from '../connection/session.ts'
import { asksNobody, type WaysIn } from '../connection/ways-in.ts'
import { keyWords } from '../keys/words.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Workspaces that are named in a line; of more the rest is counted. */
const namedMax = 5
const countedMax = 1_000

/** Who is calling, as far as a runtime knows. */
export type Caller =
  | { readonly kind: 'known'; readonly me: Me }
  /** It asks nobody who they are. */
  | { readonly kind: 'anybody' }
  /** It does not know who is calling, or what is sent to it cannot be sent any more. */
  | { readonly kind: 'stranger'; readonly refusal: WbError; readonly ways: WaysIn | undefined }

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

/** Who one is to the runtime. @throws KeychainUnavailable */
export async function callerOf(session: Session, signal?: AbortSignal): Promise<Caller> {
  try {
    return { kind: 'known', me: await askMe(session.client, signal) }
  } catch (refusal) {
    if (!(refusal instanceof WbError) || refusal.code !== 'unauthorized') throw refusal
    const ways = await session.ways()
    if (ways && asksNobody(ways) && !session.credential.used) return { kind: 'anybody' }
    return { kind: 'stranger', refusal, ways }
  }
}

/** @throws Unreachable  what answers does not say who one is in a way that could be shown */
export async function askMe(client: Client, signal?: AbortSignal): Promise<Me> {
  const me = await client.call(auth.me, {}, { signal })
  const isText = (value: unknown) => typeof value === 'string' && value.length <= nameCharsMax
  const areTexts = (value: unknown) => value === null || (Array.isArray(value) && value.every(isText))
  const isSound =
    isText(me.id) &&
    (me.label === null || isText(me.label)) &&
    (me.role === null || isText(me.role)) &&
    areTexts(me.scopes) &&
    areTexts(me.workspaceScopes) &&
    isMoment(me.expiresAt) &&
    isEnd(me.keyExpiresAt)
  if (!isSound) throw unexpectedResponse('the runtime does not say who you are')
  return me
}

/** Of a name that is kept. */
const nameCharsMax = 1_000

function isMoment(seconds: unknown): boolean {
  return seconds === null || (Number.isSafeInteger(seconds) && Math.abs(seconds as number) < 1e11)
}

function isEnd(moment: unknown): boolean {
  return moment == null || (typeof moment === 'string' && isMoment(Math.trunc(Date.parse(moment) / 1_000)))
}

/** What a person calls a caller. */
export function nameOf({ label, id }: Pick<Me, 'label' | 'id'>): string {
  return plainLine(label ?? id)
}

/** What a caller may do, in as few words as there are. */
export function standingOf({ role, scopes }: Pick<Me, 'role' | 'scopes'>): string {
  return role ?? (scopes ? scopes.join(', ') : 'every right')
}

/** What a caller may do, in words that go on from "may"; none for one whom nothing holds back. */
export function mayOf({ scopes, role }: Pick<Me, 'scopes' | 'role'>): readonly string[] {
  const held = scopes ?? (role && scopesOfRole[role])
  return held ? keyWords(held).may : ['do everything']
}

/** Where a caller may do it, in words. */
export async function reachOf(
  client: Client,
  { workspaceScopes }: Pick<Me, 'workspaceScopes'>,
): Promise<string> {
  if (workspaceScopes === null) return 'every workspace'
  const names: string[] = []
  let more = 0
  for await (const { name } of client.items(workspaces.list, {}))
    if (names.length < namedMax) names.push(plainLine(name))
    else if (++more >= countedMax) break
  if (names.length === 0) return 'no workspace that is there'
  return `workspace ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
