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
    prefix: z.string().meta({ description: 'public part of the token: the 12 characters after `wb_live_`' }),
    label: z.string(),
    role: z
      .enum(roles)
      .nullable()
      .meta({ description: 'role whose scopes are exactly those of the key; null if there is no such role' }),
    scopes: z.array(z.enum(scopes)).min(1),
    principalId: z.string().nullable(),
    createdAt: isoTimestamp,
    lastUsedAt: isoTimestamp.nullable(),
    revokedAt: isoTimestamp.nullable(),
    expiresAt: isoTimestamp.nullable(),
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.output<typeof ApiKey>

const defaultKeyScopes = ['read', 'write'] as const

/** The key gets the scopes in `scopes`, or those of `role`. If both are absent, it gets `read` and `write`. */
const ApiKeyCreate = z
  .object({
    label: boundedText(limits.keyLabelChars),
    role: z.enum(roles).optional(),
    scopes: z.array(z.enum(scopes)).min(1).optional(),
    expiresAt: timestampInput.nullable().optional(),
    principalId: principalId.nullable().optional(),
  })
  .superRefine(({ role, scopes: sentScopes }, context) => {
    if (role && sentScopes && sortScopes(sentScopes).join() !== scopesOfRole[role].join())
      context.addIssue({
        code: 'custom',
        path: ['scopes'],
        message: `must be those of the role ${role}; send only one of role and scopes`,
      })
  })
  .transform(({ role, scopes: sentScopes, ...rest }) => ({
    ...rest,
    scopes: sortScopes(sentScopes ?? (role ? scopesOfRole[role] : defaultKeyScopes)),
  }))
export type ApiKeyCreate = z.output<typeof ApiKeyCreate>

const ApiKeyRotate = z.object({
  graceSeconds: z
    .int()
    .min(0)
    .max(limits.keyGraceSeconds)
    .default(limits.keyGraceSecondsDefault)
    .meta({ description: 'time in seconds during which the old token keeps working' }),
})
export type ApiKeyRotate = z.output<typeof ApiKeyRotate>

/** Fields of a response with a new key. Only this response contains the token. */
const KeyWithToken = { plaintext: z.string(), key: ApiKey }

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
    replies: { 201: z.object(KeyWithToken) },
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
    replies: { 201: z.object({ ...KeyWithToken, previous: ApiKey }) },
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
