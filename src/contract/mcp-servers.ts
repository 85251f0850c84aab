import { z } from 'zod'
import { member, needs } from './access.ts'
import type { ErrorCode } from './errors.ts'
import { boundedText, isoTimestamp, secretRef } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'
import { endpointUrl } from './services/fields.ts'

const fields = {
  label: boundedText(limits.mcpServerLabelChars),
  url: endpointUrl,
  credentialRef: secretRef.nullable(),
  authType: z.enum(['credential', 'oauth2']).meta({
    description:
      '`credential` sends the secret of `credentialRef`, if set, for all callers. With `oauth2`, each caller signs in to the server.',
  }),
  oauthClientId: boundedText(limits.oauthClientIdChars).nullable(),
  oauthClientSecretRef: secretRef.nullable(),
  oauthScopes: z
    .array(z.string())
    .refine(
      scopes =>
        scopes.length <= limits.oauthScopes &&
        scopes.every(
          scope => scope.length <= limits.oauthScopeChars && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope),
        ),
      `must have at most ${limits.oauthScopes} scopes, each of at most ${limits.oauthScopeChars} printable ASCII characters without spaces`,
    )
    .nullable(),
  enabled: z.boolean(),
  allowedTools: z
    .array(z.string())
    .refine(
      names => names.length <= limits.idsPerList && names.every(name => name.length <= limits.toolIdChars),
      `must have at most ${limits.idsPerList} names, each of at most ${limits.toolIdChars} characters`,
    )
    .nullable()
    .meta({ description: 'names of the tools that agents may use; null allows all tools of the server' }),
}

export const McpServer = z
  .object({
    workspaceId: z.uuid(),
    mcpServerId: z.uuid(),
    ...fields,
    createdAt: isoTimestamp,
    updatedAt: isoTimestamp,
  })
  .meta({ id: 'McpServer' })
export type McpServer = z.output<typeof McpServer>

const McpServerCreate = z.strictObject({
  ...fields,
  credentialRef: fields.credentialRef.default(null),
  authType: fields.authType.default('credential'),
  oauthClientId: fields.oauthClientId.default(null),
  oauthClientSecretRef: fields.oauthClientSecretRef.default(null),
  oauthScopes: fields.oauthScopes.default(null),
  enabled: fields.enabled.default(true),
  allowedTools: fields.allowedTools.default(null),
})
export type McpServerCreate = z.output<typeof McpServerCreate>

const McpServerPatch = z.strictObject(fields).partial()
export type McpServerPatch = z.output<typeof McpServerPatch>

/** Reasons why an MCP server cannot be used. */
const mcpFailureCodes = [
  'endpoint_refused',
  'credential_unavailable',
  'sign_in_required',
  'unauthorized',
  'unreachable',
  'timeout',
  'redirected',
  'http_error',
  'too_large',
  'protocol_error',
] as const
export type McpFailureCode = (typeof mcpFailureCodes)[number]

const McpTest = z.object({
  ok: z.boolean(),
  toolCount: z.int(),
  tools: z.array(z.string()).meta({
    description:
      'names of all tools of the server, sorted, including those that `allowedTools` does not contain',
  }),
  latencyMs: z.int(),
  error: z.object({ code: z.enum(mcpFailureCodes), message: z.string() }).nullable(),
})
export type McpTest = z.output<typeof McpTest>

const toolStates = ['accepted', 'changed', 'new', 'gone'] as const

const McpServerTool = z
  .object({
    name: z.string(),
    description: z.string(),
    inputSchema: z
      .record(z.string(), z.unknown())
      .meta({ description: 'JSON Schema of the arguments; empty if the state is `gone`' }),
    hash: z.string().meta({ description: 'hash of the name, the description and the schema' }),
    state: z.enum(toolStates).meta({
      description:
        'Only accepted tools are available to agents. A `changed` tool differs from the accepted version, a `new` tool was never accepted, and the server no longer offers a `gone` tool.',
    }),
    acceptedDescription: z.string().nullable(),
    allowed: z
      .boolean()
      .meta({ description: 'true if `allowedTools` of the server contains the tool or is null' }),
  })
  .meta({ id: 'McpServerTool' })
export type McpServerTool = z.output<typeof McpServerTool>

const McpServerTools = z.object({
  items: z.array(McpServerTool),
  error: z.object({ code: z.enum(mcpFailureCodes), message: z.string() }).nullable(),
})
export type McpServerTools = z.output<typeof McpServerTools>

const Review = z.strictObject({
  accept: z
    .array(
      z.strictObject({
        name: boundedText(limits.toolIdChars),
        hash: z.string().regex(/^sha256:[0-9a-f]{64}$/, 'must be the hash of a tool'),
      }),
    )
    .min(1)
    .max(limits.idsPerList),
})
export type Review = z.output<typeof Review>

const SignInStart = z.strictObject({
  redirectUri: boundedText(limits.endpointUrlChars).refine(URL.canParse, 'must be an absolute URL'),
})
export type SignInStart = z.output<typeof SignInStart>

const PendingSignIn = z.object({
  authorizationUrl: z.string(),
  state: z.string(),
  expiresAt: isoTimestamp,
})
export type PendingSignIn = z.output<typeof PendingSignIn>

const SignInFinish = z.strictObject({
  state: boundedText(limits.oauthStateChars),
  code: boundedText(limits.oauthCodeChars),
  iss: boundedText(limits.endpointUrlChars).optional(),
})
export type SignInFinish = z.output<typeof SignInFinish>

export const McpSignIn = z
  .object({
    signedIn: z.boolean(),
    scopes: z.array(z.string()).nullable(),
    expiresAt: isoTimestamp.nullable(),
    canRefresh: z.boolean(),
  })
  .meta({ id: 'McpSignIn' })
export type McpSignIn = z.output<typeof McpSignIn>

const json = { kind: 'json', mode: 'strict', limitBytes: limits.jsonBodyBytes } as const
const errors = ['workspace_not_found', 'mcp_server_not_found'] as const satisfies ErrorCode[]

export const mcpServers = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers',
    summary: 'List MCP servers',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(McpServer) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers',
    summary: 'Register an MCP server',
    access: needs('write:services'),
    body: { ...json, schema: McpServerCreate },
    replies: { 201: McpServer },
    errors: ['workspace_not_found'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId',
    summary: 'Show an MCP server',
    access: member('read:content'),
    replies: { 200: McpServer },
    errors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId',
    summary: 'Change an MCP server',
    access: needs('write:services'),
    body: { ...json, schema: McpServerPatch },
    replies: { 200: McpServer },
    errors: [...errors, 'conflict'],
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId',
    summary: 'Delete an MCP server',
    access: needs('write:services'),
    replies: { 204: null },
    errors,
  }),
  testConnection: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId/test-connection',
    summary: 'Connect to an MCP server and list its tools',
    description: 'Returns 200 even if the server cannot be reached. `error` then contains the reason.',
    access: member(null),
    replies: { 200: McpTest },
    errors,
  }),
  tools: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId/tools',
    summary: 'List the tools of an MCP server',
    description:
      'Tools that the server offers on the first connection are accepted automatically. New and changed tools must be reviewed. Returns 200 even if the server cannot be reached. `error` then contains the reason.',
    access: member(null),
    replies: { 200: McpServerTools },
    errors,
  }),
  review: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId/review',
    summary: 'Accept tools of an MCP server',
    access: needs('write:services'),
    body: { ...json, schema: Review },
    replies: { 200: McpServerTools },
    errors: [...errors, 'conflict'],
  }),
  showSignIn: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId/sign-in',
    summary: 'Show your sign-in to an MCP server',
    access: member(null),
    replies: { 200: McpSignIn },
    errors,
  }),
  beginSignIn: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId/sign-in',
    summary: 'Start your sign-in to an MCP server',
    access: member(null),
    body: { ...json, schema: SignInStart },
    replies: { 200: PendingSignIn },
    errors: [...errors, 'conflict', 'mcp_sign_in_failed'],
  }),
  finishSignIn: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId/sign-in/finish',
    summary: 'Finish your sign-in to an MCP server',
    access: member(null),
    body: { ...json, schema: SignInFinish },
    replies: { 200: McpSignIn },
    errors: [...errors, 'invalid_state', 'mcp_sign_in_failed'],
    audit: 'mcp.sign_in',
  }),
  endSignIn: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/mcp-servers/:mcpServerId/sign-in',
    summary: 'Sign out of an MCP server',
    access: member(null),
    replies: { 204: null },
    errors,
    audit: 'mcp.sign_out',
  }),
}
