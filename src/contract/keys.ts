import { z } from 'zod'
import { needs } from './access.ts'
import { boundedText, isoTimestamp, principalId, timestampInput } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'
import { roles, scopes, scopesOfRole, sortScopes } from './scopes.ts'

export const ApiKey = z
  .object({
    workspaceId: z.uuid(),
    keyId: z.uuid(),
    prefix: z.string().meta({ description: 'the public part of the token, 12 characters' }),
    label: z.string(),
    role: z.enum(roles).nullable().meta({ description: 'set when the scopes are exactly those of a role' }),
    scopes: z.array(z.enum(scopes)).min(1),
    principalId: z.string().nullable(),
    createdAt: isoTimestamp,
    lastUsedAt: isoTimestamp.nullable(),
    revokedAt: isoTimestamp.nullable(),
    expiresAt: isoTimestamp.nullable(),
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.output<typeof ApiKey>

const legacyScopes = ['read', 'write'] as const

/** Scopes come from `scopes` or `role`. Without both, a key can read and write. */
const ApiKeyCreate = z
  .object({
    label: boundedText(limits.keyLabelChars),
    role: z.enum(roles).optional(),
    scopes: z.array(z.enum(scopes)).min(1).optional(),
    expiresAt: timestampInput.nullable().optional(),
    principalId: principalId.nullable().optional(),
  })
  .superRefine(({ role, scopes: named }, context) => {
    if (role && named && sortScopes(named).join() !== scopesOfRole[role].join())
      context.addIssue({
        code: 'custom',
        path: ['scopes'],
        message: `are not those of the role ${role}; leave one of the two out`,
      })
  })
  .transform(({ role, scopes: named, ...rest }) => ({
    ...rest,
    scopes: sortScopes(named ?? (role ? scopesOfRole[role] : legacyScopes)),
  }))
export type ApiKeyCreate = z.output<typeof ApiKeyCreate>

const ApiKeyRotate = z.object({
  graceSeconds: z
    .int()
    .min(0)
    .max(limits.keyGraceSeconds)
    .default(limits.keyGraceSecondsDefault)
    .meta({ description: 'time during which the old token keeps working' }),
})
export type ApiKeyRotate = z.output<typeof ApiKeyRotate>

/** A key and its token, which is shown only once. */
const Minted = { plaintext: z.string(), key: ApiKey }

export const apiKeys = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/api-keys',
    summary: 'List API keys',
    access: needs('manage:keys'),
    query: pageQuery,
    replies: { 200: pageOfItems(ApiKey) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/api-keys',
    summary: 'Create an API key',
    access: needs('manage:keys'),
    body: { kind: 'json', schema: ApiKeyCreate, mode: 'lenient', limitBytes: limits.jsonBodyBytes },
    replies: { 201: z.object(Minted) },
    errors: ['workspace_not_found'],
    audit: 'api_key.create',
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/api-keys/:keyId',
    summary: 'Show an API key',
    access: needs('manage:keys'),
    replies: { 200: ApiKey },
    errors: ['workspace_not_found', 'api_key_not_found'],
  }),
  rotate: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/api-keys/:keyId/rotate',
    summary: 'Rotate an API key',
    access: needs('manage:keys'),
    body: { kind: 'json', schema: ApiKeyRotate, mode: 'lenient', limitBytes: limits.jsonBodyBytes },
    replies: { 201: z.object({ ...Minted, previous: ApiKey }) },
    errors: ['workspace_not_found', 'api_key_not_found'],
    audit: 'api_key.rotate',
  }),
  revoke: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/api-keys/:keyId',
    summary: 'Revoke an API key',
    access: needs('manage:keys'),
    replies: { 204: null },
    errors: ['workspace_not_found', 'api_key_not_found'],
    audit: 'api_key.revoke',
  }),
}
