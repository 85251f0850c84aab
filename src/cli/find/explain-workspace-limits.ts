import type { Client } from '../../client/client.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { auth } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/**
 * Explains that the caller can access only some workspaces, or none.
 *
 * @param names  names of the workspaces that the caller can access
 * @returns undefined if the caller is not restricted, or the runtime does not identify the caller
 */
export async function explainWorkspaceLimits(
  client: Client,
  names: readonly string[],
): Promise<string | undefined> {
  const me = await fetchCaller(client)
  if (!me?.workspaceScopes) return undefined
  const name = plainLine(me.label ?? me.id)
  if (names.length === 0 && me.type === 'oidc')
    return `you are signed in as ${name}, but you have no access to any workspace: the claim wb_workspace_scopes of your token is missing or empty`
  const caller = me.type === 'apiKey' ? `this key (${name})` : name
  if (names.length === 0) return `${caller} has access to no existing workspace`
  return `${caller} has access only to workspace ${names.map(plainLine).join(', ')}`
}

async function fetchCaller(client: Client) {
  try {
    return await client.call(auth.me, {})
  } catch (error) {
    if (error instanceof WbError || error instanceof Unreachable) return undefined
    throw error
  }
}
