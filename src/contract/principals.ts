import { z } from 'zod'
import { needs } from './access.ts'
import { principalId, timestamp } from './fields.ts'
import { limits } from './limits.ts'
import { page, pageQuery } from './page.ts'
import { route } from './route.ts'
import { roles } from './scopes.ts'

export const Principal = z
  .object({
    workspaceId: z.uuid(),
    principalId: z.string(),
    label: z.string().nullable(),
    attributes: z.record(z.string(), z.string()),
    role: z.enum(roles),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Principal' })
export type Principal = z.output<typeof Principal>

const changeable = {
  label: z.string().max(limits.principalLabelChars).nullable(),
  attributes: z
    .record(z.string().max(limits.principalAttributeChars), z.string().max(limits.principalAttributeChars))
    .refine(
      map => Object.keys(map).length <= limits.principalAttributes,
      `must be ${limits.principalAttributes} entries at most`,
    )
    .meta({ description: 'attributes that policies read as `$principal.NAME`; replaced as a whole' }),
  role: z.enum(roles).meta({
    description: 'replaces the role of the token in this workspace, if the configuration maps roles',
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
const found = ['workspace_not_found', 'principal_not_found'] as const

export const principals = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/principals',
    summary: 'List principals',
    access: needs('manage:access'),
    query: pageQuery,
    replies: { 200: page(Principal) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/principals',
    summary: 'Create a principal',
    description:
      'Adds a user or program to a workspace. Its role cannot give more rights than the caller has.',
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
    errors: found,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/principals/:principalId',
    summary: 'Change a principal',
    description:
      'Changes the fields that the body names. A new role cannot give more rights than the caller has.',
    access: needs('manage:access'),
    body: { ...json, schema: PrincipalPatch },
    replies: { 200: Principal },
    errors: [...found, 'conflict'],
    audit: 'principal.update',
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/principals/:principalId',
    summary: 'Delete a principal',
    description:
      'Deletes a principal. If roles are mapped, the role in its token applies again, so only a caller who can grant any role can delete a principal that is not an admin.',
    access: needs('manage:access'),
    replies: { 204: null },
    errors: [...found, 'conflict'],
    audit: 'principal.delete',
  }),
}
