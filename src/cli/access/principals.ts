import * as Flags from '@oclif/core/flags'
import { type Client, collect } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type Principal, principals } from '../../contract/principals.ts'
import { roles } from '../../contract/scopes.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { parseKeyValues } from '../command/flags.ts'
import type { Fields } from '../fields/resources.ts'
import { pickResource, type ResolveContext, type ResourceKind } from '../find/resolve.ts'

const principalKind: ResourceKind = {
  noun: 'principal',
  notFoundCode: 'principal_not_found',
  listCommand: 'wb access principals list',
  createCommands: ['wb access principals create alice'],
}

/** Flags that set the fields of a principal. */
export const principalFlags = {
  label: Flags.string({ summary: 'display name' }),
  role: Flags.option({
    options: roles,
    summary: 'role in this workspace; if roles are mapped, overrides the role in the access token',
  })(),
  attribute: Flags.string({
    multiple: true,
    summary: 'attribute for policies ($principal.NAME); can be repeated',
    helpValue: 'NAME=VALUE',
  }),
}

/** Converts the flags to a request body. */
export function principalBody(flags: { label?: string; role?: Principal['role']; attribute?: string[] }) {
  return {
    label: flags.label === '' ? null : flags.label,
    role: flags.role,
    attributes: flags.attribute && parseKeyValues(flags.attribute, '--attribute'),
  }
}

/**
 * Finds a principal by ID or label.
 *
 * @throws WbError principal_not_found  no principal matches; suggests a similar name
 * @throws UsageError                   several principals have this label
 */
export async function findPrincipal(
  { client, promptForChoice }: ResolveContext,
  { workspaceId, name }: Workspace,
  labelOrId: string,
): Promise<Principal> {
  const all = await collect(client.items(principals.list, { params: { workspaceId } }))
  const matchById = all.find(({ principalId }) => principalId === labelOrId)
  if (matchById) return matchById
  const candidates = all.flatMap(row => [
    { row, id: row.principalId, name: row.principalId },
    ...(row.label ? [{ row, id: row.principalId, name: row.label }] : []),
  ])
  return pickResource(
    candidates,
    labelOrId,
    { ...principalKind, noun: `principal in workspace ${name}` },
    promptForChoice,
  )
}

/** Returns the fields of a principal to show. */
export function principalFields(principal: Principal): Fields {
  return {
    id: principal.principalId,
    label: principal.label,
    role: principal.role,
    attributes: formatAttributes(principal),
    created: { time: principal.createdAt },
    updated: { time: principal.updatedAt },
  }
}

export function formatAttributes({ attributes }: Principal): string {
  return Object.entries(attributes)
    .map(pair => pair.join('='))
    .join(', ')
}

/** Returns true if the workspace has a principal with this ID. */
export async function principalExists(
  client: Client,
  workspaceId: string,
  principalId: string,
): Promise<boolean> {
  try {
    await client.call(principals.show, { params: { workspaceId, principalId } })
    return true
  } catch (error) {
    if (error instanceof WbError && error.code === 'principal_not_found') return false
    throw error
  }
}
