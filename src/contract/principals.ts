import { z } from 'zod'
import { needs } from './access.ts'
import { isoTimestamp, principalId } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'
import { roles } from './scopes.ts'

export const Principal = z
  .object({
    workspaceId: z.uuid(),
    principalId: z.string(),
    label: z.string().nullable(),
    attributes: z.record(z.string(), z.string()),
    role: z.enum(roles),
    createdAt: isoTimestamp,
    updatedAt: isoTimestamp,
  })
  .meta({ id: 'Principal' })
export type Principal = z.output<typeof Principal>

const changeable = {
  label: z.string().max(limits.principalLabelChars).nullable(),
  attributes: z
    .record(z.string().max(limits.principalAttributeChars), z.string().max(limits.principalAttributeChars))
    .refine(
      map => Object.keys(map).length <= limits.principalAttributes,
      `must have at most ${limits.principalAttributes} entries`,
    )
    .meta({
      description: 'attributes that policies read as `$principal.NAME`; an update replaces all of them',
    }),
  role: z.enum(roles).meta({
    description:
      'if the configuration maps roles, this role replaces the role from the access token in this workspace',
  }),
}

const PrincipalCreate = z.strictObject({
  principalId,
  label: changeable.label.default(null),
  attributes: changeable.attributes.default({}),
  role: changeable.role.default('viewer'),
})
export type PrincipalCreate = z.output<typeof PrincipalCreate>

const PrincipalPatch = z.strictObject(changeable).partial()
export type PrincipalPatch = z.output<typeof PrincipalPatch>

const json = { kind: 'json', mode: 'strict', limitBytes: limits.jsonBodyBytes } as const
const notFoundErrors = ['workspace_not_found', 'principal_not_found'] as const

export const principals = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/principals',
    summary: 'List principals',
    access: needs('manage:access'),
    query: pageQuery,
    replies: { 200: pageOfItems(Principal) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/principals',
    summary: 'Create a principal',
    description:
      'Adds a user or program to a workspace. You cannot assign a role with more rights than you have.',
    access: needs('manage:access'),
    body: { ...json, schema: PrincipalCreate },
    replies: { 201: Principal },
    errors: ['workspace_not_found', 'conflict'],
    audit: 'principal.create',
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/principals/:principalId',
    summary: 'Show a principal',
    access: needs('manage:access'),
    replies: { 200: Principal },
    errors: notFoundErrors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/principals/:principalId',
    summary: 'Change a principal',
    description:
      'Changes only the fields that you send. You cannot assign a role with more rights than you have.',
    access: needs('manage:access'),
    body: { ...json, schema: PrincipalPatch },
    replies: { 200: Principal },
    errors: [...notFoundErrors, 'conflict'],
    audit: 'principal.update',
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/principals/:principalId',
    summary: 'Delete a principal',
    description:
      'Deletes a principal. If the configuration maps roles, the role in the access token of the principal applies again, and this role can be higher. In this case, only callers with the scope `manage` can delete a principal, unless its role is `admin`.',
    access: needs('manage:access'),
    replies: { 204: null },
    errors: [...notFoundErrors, 'conflict'],
    audit: 'principal.delete',
  }),
}
