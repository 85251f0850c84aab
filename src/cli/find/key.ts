import { type Client, everything } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type ApiKey, apiKeys } from '../../contract/keys.ts'
import { limits } from '../../contract/limits.ts'
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
 * A key by label, id or prefix. Of keys with one label, the one that works is meant, and not one that it replaced.
 *
 * @param spoken  the command as it is typed, to tell how each of several candidates is named
 * @throws WbError api_key_not_found  with what was probably meant
 * @throws UsageError                 several could be meant, or a token was typed
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
  const all = await everything(client.items(apiKeys.list, { params, query: { limit: limits.pageMax } }))
  const matches = all.filter(key => key.prefix === wanted || key.label === wanted)
  const working = matches.filter(key => keyState(key, nowMs) === 'active')
  const lasting = working.filter(key => !isReplaced(key, all))
  const [meant, ...others] = [lasting, working, matches].find(({ length }) => length > 0) ?? []
  if (!meant) throw notFound(wanted, name, all)
  if (others.length > 0) throw ambiguous(wanted, [meant, ...others], { spoken, nowMs })
  return meant
}

/**
 * The same for what is done to keys that were not revoked.
 *
 * @throws WbError api_key_not_found  there is none, or it was revoked
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

/** The keys that work under a label already: with one more, the label alone says none of them. */
export async function namesakes(
  client: Client,
  { workspaceId, label, nowMs }: { workspaceId: string; label: string; nowMs: number },
): Promise<ApiKey[]> {
  const call = { params: { workspaceId }, query: { limit: limits.pageMax } }
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
