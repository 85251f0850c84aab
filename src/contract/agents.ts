import { z } from 'zod'
import { anyCaller, member, needs } from './access.ts'
import type { ErrorCode } from './errors.ts'
import { boundedText, isoTimestamp, optionalTextUpTo } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'
import { optionalSampling, sampling } from './sampling.ts'

export const toolPermissions = ['allow', 'ask', 'deny'] as const
export type ToolPermission = (typeof toolPermissions)[number]

/**
 * Permission for calls of a tool. `afterReading` applies once the turn contains text from documents or tool
 * results.
 */
const ToolRule = z.strictObject({
  permission: z.enum(toolPermissions),
  afterReading: z.enum(toolPermissions).optional().meta({
    description:
      'permission after the turn has read documents or tool results. It must be at least as strict as `permission`. By default, `allow` becomes `ask`.',
  }),
})

/** Rules by tool ID, or by a prefix followed by `*`. The longest match applies. */
export const ToolRules = z.record(z.string().min(1).max(limits.toolIdChars), ToolRule)
export type ToolRules = z.output<typeof ToolRules>

export const Agent = z
  .object({
    workspaceId: z.uuid(),
    agentId: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    systemPrompt: z.string().nullable(),
    userPrompt: z.string().nullable(),
    llmServiceId: z.uuid().nullable().meta({
      description: 'LLM service that writes the answers; null uses the chat provider of the runtime',
    }),
    knowledgeBaseIds: z.array(z.uuid()),
    toolIds: z.array(z.string()).meta({
      description: 'tools that the agent may use; if empty, it may use all built-in tools and no others',
    }),
    rerankEnabled: z.boolean(),
    rerankingServiceId: z.uuid().nullable(),
    rerankMaxResults: z.int().nullable(),
    toolRules: ToolRules.optional().meta({
      description:
        'permissions of tools; a key is a tool ID, or a prefix followed by `*`; by default, all tools of the agent run without approval',
    }),
    ...optionalSampling,
    createdAt: isoTimestamp,
    updatedAt: isoTimestamp,
  })
  .meta({ id: 'Agent' })
export type Agent = z.output<typeof Agent>

/** Sorted IDs without duplicates. */
export const sortedKnowledgeBaseIds = z.array(z.uuid()).max(limits.idsPerList).transform(sortedSet)
const toolIds = z.array(boundedText(limits.toolIdChars)).max(limits.idsPerList).transform(sortedSet)

function sortedSet(entries: string[]): string[] {
  return [...new Set(entries)].sort()
}

const changeable = {
  name: boundedText(limits.agentNameChars),
  description: optionalTextUpTo(limits.agentDescriptionChars),
  systemPrompt: optionalTextUpTo(limits.agentPromptChars),
  userPrompt: optionalTextUpTo(limits.agentPromptChars),
  llmServiceId: z.uuid().nullable(),
  knowledgeBaseIds: sortedKnowledgeBaseIds,
  toolIds,
  rerankEnabled: z.boolean(),
  rerankingServiceId: z.uuid().nullable(),
  rerankMaxResults: z.int().positive().nullable(),
  ...sampling,
  toolRules: ToolRules.refine(
    rules => Object.keys(rules).length <= limits.idsPerList,
    `must have at most ${limits.idsPerList} rules`,
  ).refine(
    rules =>
      Object.values(rules).every(
        ({ permission, afterReading = 'deny' }) =>
          toolPermissions.indexOf(afterReading) >= toolPermissions.indexOf(permission),
      ),
    'afterReading must be at least as strict as permission',
  ),
}

const AgentCreate = z.object({
  agentId: z.uuid().optional(),
  name: changeable.name,
  description: changeable.description.default(null),
  systemPrompt: changeable.systemPrompt.default(null),
  userPrompt: changeable.userPrompt.default(null),
  llmServiceId: changeable.llmServiceId.default(null),
  knowledgeBaseIds: sortedKnowledgeBaseIds.default([]),
  toolIds: toolIds.default([]),
  rerankEnabled: changeable.rerankEnabled.default(false),
  rerankingServiceId: changeable.rerankingServiceId.default(null),
  rerankMaxResults: changeable.rerankMaxResults.default(null),
  toolRules: changeable.toolRules.optional(),
  ...optionalSampling,
})
export type AgentCreate = z.output<typeof AgentCreate>

const AgentPatch = z.strictObject(changeable).partial()
export type AgentPatch = z.output<typeof AgentPatch>

export const AgentTemplate = z
  .object({
    templateId: z.string(),
    name: z.string(),
    description: z.string(),
    persona: z.string(),
    systemPrompt: z.string(),
    defaultOnNewWorkspace: z.boolean(),
  })
  .meta({ id: 'AgentTemplate' })
export type AgentTemplate = z.output<typeof AgentTemplate>

export const AvailableTool = z
  .object({
    id: z.string(),
    description: z.string(),
    source: z.enum(['builtin', 'native', 'astra', 'mcp']),
    inputSchema: z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema of the arguments' }),
    serverId: z.uuid().optional().meta({ description: 'MCP server that offers the tool' }),
    serverLabel: z.string().optional(),
  })
  .meta({ id: 'AvailableTool' })
export type AvailableTool = z.output<typeof AvailableTool>

const json = { kind: 'json', limitBytes: limits.jsonBodyBytes } as const
const serviceErrors = ['llm_service_not_found', 'reranking_service_not_found'] as const satisfies ErrorCode[]

export const agentTemplates = {
  list: route({
    method: 'GET',
    path: '/api/v1/agent-templates',
    summary: 'List agent templates',
    access: anyCaller,
    replies: { 200: z.object({ items: z.array(AgentTemplate) }) },
    errors: [],
  }),
  listIn: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agent-templates',
    summary: 'List agent templates for a workspace',
    access: member(null),
    replies: { 200: z.object({ items: z.array(AgentTemplate) }) },
    errors: ['workspace_not_found'],
  }),
}

export const agents = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agents',
    summary: 'List agents',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(Agent) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/agents',
    summary: 'Create an agent',
    access: needs('write:agents'),
    body: { ...json, mode: 'lenient', schema: AgentCreate },
    replies: { 201: Agent },
    errors: ['workspace_not_found', ...serviceErrors, 'agent_tool_unresolved', 'conflict'],
    audit: 'agent.create',
  }),
  createFromTemplate: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/agents/from-template',
    summary: 'Create an agent from a template',
    access: needs('write:agents'),
    body: { ...json, mode: 'strict', schema: z.strictObject({ templateId: z.string().min(1) }) },
    replies: { 201: Agent },
    errors: ['workspace_not_found', 'agent_template_not_found', 'llm_service_not_found'],
    audit: 'agent.create',
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId',
    summary: 'Show an agent',
    access: member('read:content'),
    replies: { 200: Agent },
    errors: ['workspace_not_found', 'agent_not_found'],
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId',
    summary: 'Change an agent',
    access: needs('write:agents'),
    body: { ...json, mode: 'strict', schema: AgentPatch },
    replies: { 200: Agent },
    errors: ['workspace_not_found', 'agent_not_found', ...serviceErrors, 'agent_tool_unresolved'],
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId',
    summary: 'Delete an agent and its conversations',
    access: needs('write:agents'),
    replies: { 204: null },
    errors: ['workspace_not_found', 'agent_not_found', 'conflict'],
    audit: 'agent.delete',
  }),
  tools: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/available-tools',
    summary: 'List tools for agents',
    access: member(null),
    replies: { 200: z.object({ items: z.array(AvailableTool) }) },
    errors: ['workspace_not_found'],
  }),
}
