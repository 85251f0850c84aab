import { nearestMatch } from '../../base/nearest-match.ts'
import { type Client, collect } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type ApiKey, apiKeys } from '../../contract/keys.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { UsageError } from '../errors.ts'
import { isReplaced, keyState } from '../fields/key.ts'
import { isId } from '../id.ts'
import { formatAgo, formatLifetime } from '../terminal/duration.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { ResolveContext } from './resolve.ts'

const candidatesShownMax = 8
const tokenPattern = /^wb_live_([a-z0-9]{12})_/

/**
 * Finds a key by label, ID or prefix. If several keys have the label, active keys take precedence, and among these,
 * keys that were not replaced.
 *
 * @param commandName  command without arguments, to suggest a command for each match
 * @throws WbError api_key_not_found  no key matches; suggests a similar label
 * @throws UsageError                 several keys match, or the argument is a token
 */
export async function findKey(
  { client }: Pick<ResolveContext, 'client'>,
  { workspaceId, name }: Workspace,
  nameOrId: string,
  { commandName, nowMs }: { commandName: string; nowMs: number },
): Promise<ApiKey> {
  const prefix = tokenPattern.exec(nameOrId)?.[1]
  if (prefix)
    throw new UsageError('a key cannot be selected by its token', [
      `${commandName} ${prefix}    selects the key with that token`,
    ])
  const params = { workspaceId }
  if (isId(nameOrId)) return client.call(apiKeys.show, { params: { ...params, keyId: nameOrId } })
  const all = await collect(client.items(apiKeys.list, { params }))
  const matches = all.filter(key => key.prefix === nameOrId || key.label === nameOrId)
  const active = matches.filter(key => keyState(key, nowMs) === 'active')
  const notReplaced = active.filter(key => !isReplaced(key, all))
  const [match, ...others] = [notReplaced, active, matches].find(({ length }) => length > 0) ?? []
  if (!match) throw notFoundError(nameOrId, name, all)
  if (others.length > 0) throw ambiguousNameError(nameOrId, [match, ...others], { commandName, nowMs })
  return match
}

/**
 * Like {@link findKey}, but throws if the key was revoked.
 *
 * @throws WbError api_key_not_found  no key matches, or the key was revoked
 */
export async function findUnrevokedKey(
  ...[context, workspace, nameOrId, options]: Parameters<typeof findKey>
) {
  const key = await findKey(context, workspace, nameOrId, options)
  if (key.revokedAt === null) return key
  const when = formatAgo(Date.parse(key.revokedAt), options.nowMs)
  const name = `${plainLine(key.label)} (${key.prefix})`
  throw new WbError(
    'api_key_not_found',
    `key ${name} was already revoked ${when === 'now' ? 'just now' : when}`,
    {
      next: ['wb keys list'],
    },
  )
}

/** Returns the active keys with a label. If there are any, the label of a new key should be different. */
export async function findKeysWithLabel(
  client: Client,
  { workspaceId, label, nowMs }: { workspaceId: string; label: string; nowMs: number },
): Promise<ApiKey[]> {
  const request = { params: { workspaceId } }
  const all = await collect(client.items(apiKeys.list, request))
  return all.filter(key => key.label === label && keyState(key, nowMs) === 'active' && !isReplaced(key, all))
}

function notFoundError(nameOrId: string, workspace: string, all: readonly ApiKey[]): WbError {
  const nearest = nearestMatch(
    nameOrId,
    all.map(({ label }) => label),
  )
  return new WbError('api_key_not_found', `no key in workspace ${workspace} is named "${nameOrId}"`, {
    next: [...(nearest ? [`did you mean ${nearest}?`] : []), 'wb keys list'],
  })
}

function ambiguousNameError(
  nameOrId: string,
  keys: readonly ApiKey[],
  { commandName, nowMs }: { commandName: string; nowMs: number },
): UsageError {
  const suggestions = keys
    .slice(0, candidatesShownMax)
    .map(
      key =>
        `${commandName} ${key.prefix}    created ${formatAgo(Date.parse(key.createdAt), nowMs)}${describeEnd(key, nowMs)}`,
    )
  return new UsageError(
    `${keys.length} keys are named "${plainLine(nameOrId)}"; use a prefix`,
    keys.length > candidatesShownMax ? [...suggestions, 'wb keys list'] : suggestions,
  )
}

function describeEnd(key: ApiKey, nowMs: number): string {
  const { revokedAt, expiresAt } = key
  if (revokedAt) return `, revoked ${formatAgo(Date.parse(revokedAt), nowMs)}`
  if (keyState(key, nowMs) === 'expired') return `, expired ${formatAgo(Date.parse(expiresAt!), nowMs)}`
  return expiresAt ? `, works ${formatLifetime(expiresAt, nowMs)}` : ''
}
