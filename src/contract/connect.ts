import { z } from 'zod'
import { member } from './access.ts'
import { isoTimestamp } from './fields.ts'
import { limits } from './limits.ts'
import { limitParameter } from './page.ts'
import { route } from './route.ts'

const Snippet = z
  .object({
    id: z.enum(['langgraph', 'crewai', 'google-adk', 'microsoft-agent-framework', 'watsonx', 'mcp-raw']),
    displayName: z.string(),
    tagline: z.string(),
    language: z.enum(['python', 'typescript', 'bash', 'text']),
    transport: z.enum(['mcp', 'rest', 'manual']),
    install: z.string().nullable(),
    code: z.string(),
    requiresMcp: z.boolean(),
    docsUrl: z.string(),
    notes: z.string().nullable(),
  })
  .meta({ id: 'Snippet' })
export type Snippet = z.output<typeof Snippet>

const SnippetQuery = z.object({
  knowledgeBaseId: z
    .uuid()
    .optional()
    .meta({ description: 'knowledge base that the code searches; by default, all of them' }),
  apiKeyEnvVar: z
    .string()
    .regex(/^[A-Z_][A-Z0-9_]*$/, 'must contain only A-Z, 0-9 and _, and must not start with a digit')
    .default('WB_API_KEY')
    .meta({ description: 'environment variable from which the code reads the API key' }),
})
export type SnippetQuery = z.output<typeof SnippetQuery>

const Snippets = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid().nullable(),
    publicBaseUrl: z.string(),
    mcpUrl: z.string(),
    restBaseUrl: z.string(),
    mcpEnabled: z.boolean(),
    apiKeyEnvVar: z.string(),
    targets: z.array(Snippet),
  })
  .meta({ id: 'ConnectSnippets' })
export type Snippets = z.output<typeof Snippets>

const Verification = z
  .object({
    ok: z.boolean(),
    mcpEnabled: z.boolean(),
    toolCount: z.int(),
    tools: z.array(z.string()),
    latencyMs: z.int(),
    error: z.object({ code: z.literal('verify_failed'), message: z.string() }).nullable(),
  })
  .meta({ id: 'ConnectVerification' })
export type Verification = z.output<typeof Verification>

/** A tool call of an MCP client. */
export const TrafficEntry = z
  .object({
    at: isoTimestamp,
    toolName: z.string(),
    outcome: z.enum(['success', 'failure', 'denied']),
    subjectType: z.enum(['apiKey', 'oidc', 'bootstrap', 'anonymous', 'system']),
    subjectLabel: z.string().nullable(),
    reason: z.string().nullable().meta({
      description:
        'error code of a failed call, or why the call was denied or aborted; null for a successful call',
    }),
  })
  .meta({ id: 'Entry' })
export type TrafficEntry = z.output<typeof TrafficEntry>

const Traffic = z
  .object({
    workspaceId: z.uuid(),
    mcpEnabled: z.boolean(),
    entries: z.array(TrafficEntry),
    summary: z.object({ total: z.int(), successes: z.int(), failures: z.int() }),
  })
  .meta({ id: 'ConnectTraffic' })

export const connect = {
  snippets: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/connect/snippets',
    summary: 'Show code that connects other programs to a workspace',
    access: member(null),
    query: SnippetQuery,
    replies: { 200: Snippets },
    errors: ['workspace_not_found'],
  }),
  verify: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/connect/verify',
    summary: 'Test the MCP server of a workspace',
    access: member(null),
    replies: { 200: Verification },
    errors: ['workspace_not_found'],
  }),
  traffic: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/connect/traffic',
    summary: 'List recent tool calls of MCP clients',
    access: member(null),
    query: z.object({ limit: limitParameter(limits.trafficMax, limits.trafficDefault) }),
    replies: { 200: Traffic },
    errors: ['workspace_not_found'],
  }),
}
