import type { Client } from '../../client/client.ts'
import { auth, type Me } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { scopesOfRole } from '../../contract/scopes.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { keyWords } from '../key-words.ts'
import type { Session } from '../session.ts'
import { plainLine } from '../terminal-text.ts'

/** Workspaces that are named in a line; of more the rest is counted. */
const namedMax = 5
const countedMax = 1_000

/**
 * Who one is to the runtime.
 *
 * @returns null where it asks nobody
 * @throws WbError unauthorized  it does not know who is calling
 */
export async function whoIsCalling(session: Session): Promise<Me | null> {
  try {
    return await session.client.call(auth.me, {})
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'unauthorized' || session.credential.used) throw error
    const ways = await session.ways()
    if (!ways || ways.modes.apiKey || ways.modes.oidc) throw error
    return null
  }
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
  for await (const { name } of client.items(workspaces.list, { query: { limit: limits.pageMax } }))
    if (names.length < namedMax) names.push(plainLine(name))
    else if (++more >= countedMax) break
  if (names.length === 0) return 'no workspace that is there'
  return `workspace ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
