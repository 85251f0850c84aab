import { type Client, everything } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type ApiKey, apiKeys } from '../../contract/keys.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { UsageError } from '../faults.ts'
import { isId } from '../id.ts'
import { isReplaced, keyState } from '../shown/key.ts'
import { ago, lasting } from '../terminal/moment.ts'
import { nearest } from '../terminal/nearest.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { Resolving } from './resolve.ts'

const candidatesShown = 8
const token = /^wb_live_([a-z0-9]{12})_/

/**
 * Finds a key by label, ID or prefix. Among keys of the same label, prefers active keys, and of those the
 * ones that were not replaced.
 *
 * @param spoken  command as it was typed, used to suggest a command for each match
 * @throws WbError api_key_not_found  when no key matches; suggests a similar label
 * @throws UsageError                 when several keys match, or the argument is a token
 */
export async function findKey(
  { client }: Pick<Resolving, 'client'>,
  { workspaceId, name }: Workspace,
  wanted: string,
  { spoken, nowMs }: { spoken: string; nowMs: number },
): Promise<ApiKey> {
  const prefix = token.exec(wanted)?.[1]
  if (prefix)
    throw new UsageError('a token is a secret, and no name', [
      `${spoken} ${prefix}    names the key of that token`,
    ])
  const params = { workspaceId }
  if (isId(wanted)) return client.call(apiKeys.show, { params: { ...params, keyId: wanted } })
  const all = await everything(client.items(apiKeys.list, { params }))
  const matches = all.filter(key => key.prefix === wanted || key.label === wanted)
  const working = matches.filter(key => keyState(key, nowMs) === 'active')
  const lasting = working.filter(key => !isReplaced(key, all))
  const [meant, ...others] = [lasting, working, matches].find(({ length }) => length > 0) ?? []
  if (!meant) throw notFound(wanted, name, all)
  if (others.length > 0) throw ambiguous(wanted, [meant, ...others], { spoken, nowMs })
  return meant
}

/**
 * Like {@link findKey}, but excludes revoked keys.
 *
 * @throws WbError api_key_not_found  when no key matches, or the key was revoked
 */
export async function findKeyInUse(...[resolving, workspace, wanted, at]: Parameters<typeof findKey>) {
  const key = await findKey(resolving, workspace, wanted, at)
  if (key.revokedAt === null) return key
  const when = ago(Date.parse(key.revokedAt), at.nowMs)
  const name = `${plainLine(key.label)} (${key.prefix})`
  throw new WbError(
    'api_key_not_found',
    `key ${name} was revoked ${when === 'now' ? 'just now' : when} already`,
    {
      next: ['wb keys list'],
    },
  )
}

/** Returns the active keys with a label. Another key of this label would make the label ambiguous. */
export async function namesakes(
  client: Client,
  { workspaceId, label, nowMs }: { workspaceId: string; label: string; nowMs: number },
): Promise<ApiKey[]> {
  const call = { params: { workspaceId } }
  const all = await everything(client.items(apiKeys.list, call))
  return all.filter(key => key.label === label && keyState(key, nowMs) === 'active' && !isReplaced(key, all))
}

function notFound(wanted: string, workspace: string, all: readonly ApiKey[]): WbError {
  const close = nearest(
    wanted,
    all.map(({ label }) => label),
  )
  return new WbError('api_key_not_found', `no key in workspace ${workspace} is named "${wanted}"`, {
    next: [...(close ? [`did you mean ${close}?`] : []), 'wb keys list'],
  })
}

function ambiguous(
  wanted: string,
  keys: readonly ApiKey[],
  { spoken, nowMs }: { spoken: string; nowMs: number },
): UsageError {
  const shown = keys
    .slice(0, candidatesShown)
    .map(
      key => `${spoken} ${key.prefix}    made ${ago(Date.parse(key.createdAt), nowMs)}${endOf(key, nowMs)}`,
    )
  return new UsageError(
    `${keys.length} keys are named "${plainLine(wanted)}"; name one by its prefix`,
    keys.length > candidatesShown ? [...shown, 'wb keys list'] : shown,
  )
}

function endOf(key: ApiKey, nowMs: number): string {
  const { revokedAt, expiresAt } = key
  if (revokedAt) return `, revoked ${ago(Date.parse(revokedAt), nowMs)}`
  if (keyState(key, nowMs) === 'expired') return `, ended ${ago(Date.parse(expiresAt!), nowMs)}`
  return expiresAt ? `, works ${lasting(expiresAt, nowMs)}` : ''
}
