import * as Flags from '@oclif/core/flags'
import { type Client, everything } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type Principal, principals } from '../../contract/principals.ts'
import { roles } from '../../contract/scopes.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { keyValues } from '../command/flags.ts'
import { type Kind, pick, type Resolving } from '../find/resolve.ts'
import type { Fields } from '../shown/resources.ts'

const kind: Kind = {
  one: 'principal',
  code: 'principal_not_found',
  list: 'wb access principals list',
  create: ['wb access principals create alice'],
}

/** What can be said of a principal. */
export const principalFlags = {
  label: Flags.string({ summary: 'what a person calls it; empty for nothing' }),
  role: Flags.option({
    options: roles,
    summary: 'role in this workspace, instead of the one of its token',
  })(),
  attribute: Flags.string({
    multiple: true,
    summary: 'what policies call $principal.NAME; all of them, may be given again',
    helpValue: 'NAME=VALUE',
  }),
}

/** The body that the flags make. */
export function principalBody(flags: { label?: string; role?: Principal['role']; attribute?: string[] }) {
  return {
    label: flags.label === '' ? null : flags.label,
    role: flags.role,
    attributes: flags.attribute && keyValues(flags.attribute, '--attribute'),
  }
}

/**
 * A principal by id or label.
 *
 * @throws WbError     principal_not_found, with what was probably meant
 * @throws UsageError  several are labelled so
 */
export async function findPrincipal(
  { client, choose }: Resolving,
  { workspaceId, name }: Workspace,
  wanted: string,
): Promise<Principal> {
  const all = await everything(client.items(principals.list, { params: { workspaceId } }))
  const exact = all.find(({ principalId }) => principalId === wanted)
  if (exact) return exact
  const named = all.flatMap(row => [
    { row, id: row.principalId, name: row.principalId },
    ...(row.label ? [{ row, id: row.principalId, name: row.label }] : []),
  ])
  return pick(named, wanted, { ...kind, one: `principal in workspace ${name}` }, choose)
}

/** The fields of a principal that a person reads. */
export function principalFields(principal: Principal): Fields {
  return {
    id: principal.principalId,
    label: principal.label,
    role: principal.role,
    attributes: attributesOf(principal),
    created: { time: principal.createdAt },
    updated: { time: principal.updatedAt },
  }
}

export function attributesOf({ attributes }: Principal): string {
  return Object.entries(attributes)
    .map(pair => pair.join('='))
    .join(', ')
}

/** Whether a workspace knows a principal. */
export async function isKnown(client: Client, workspaceId: string, principalId: string): Promise<boolean> {
  try {
    await client.call(principals.show, { params: { workspaceId, principalId } })
    return true
  } catch (error) {
    if (error instanceof WbError && error.code === 'principal_not_found') return false
    throw error
  }
}
