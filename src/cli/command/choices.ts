import { agents } from '../../contract/agents.ts'
import { conversations } from '../../contract/conversations.ts'
import { documents } from '../../contract/documents.ts'
import { filters } from '../../contract/filters.ts'
import { jobs } from '../../contract/jobs.ts'
import { apiKeys } from '../../contract/keys.ts'
import { kb } from '../../contract/knowledge.ts'
import { mcpServers } from '../../contract/mcp-servers.ts'
import { principals } from '../../contract/principals.ts'
import { secretReleases } from '../../contract/releases.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { documentName } from '../fields/resources.ts'
import { conversationName } from '../find/conversation.ts'
import { lookUpJobNames } from '../find/job-names.ts'
import {
  type NamedResource,
  type ResolveContext,
  resolveKnowledgeBase,
  resolveWorkspace,
} from '../find/resolve.ts'
import { ServiceCalls } from '../services/service-calls.ts'
import { type ServiceType, serviceTypes } from '../services/service-types.ts'

/** Resources of one kind that the user can choose from. */
export interface Choices {
  /** Singular noun for the kind. */
  readonly noun: string
  /** Lists the resources. Commands accept each `id` as a reference. */
  list(context: ResolveContext, flags: NarrowingFlags): AsyncIterable<NamedResource>
}

/** Flags that limit which resources are listed. */
export interface NarrowingFlags {
  readonly kb?: string
  readonly type?: string
}

export const workspaceChoices: Choices = {
  noun: 'workspace',
  async *list({ client }) {
    for await (const { workspaceId: id, name } of client.items(workspaces.list, {})) yield { id, name }
  },
}

export const knowledgeBaseChoices: Choices = {
  noun: 'knowledge base',
  async *list(context) {
    const request = await workspaceRequest(context)
    for await (const { knowledgeBaseId: id, name } of context.client.items(kb.list, request))
      yield { id, name }
  },
}

export const documentChoices: Choices = {
  noun: 'document',
  async *list(context, flags) {
    const request = await knowledgeBaseRequest(context, flags)
    for await (const row of context.client.items(documents.list, request))
      yield { id: row.documentId, name: documentName(row) }
  },
}

export const filterChoices: Choices = {
  noun: 'saved filter',
  async *list(context, flags) {
    const request = await knowledgeBaseRequest(context, flags)
    for await (const { knowledgeFilterId: id, name } of context.client.items(filters.list, request))
      yield { id, name }
  },
}

export const serviceChoices: Choices = {
  noun: 'service',
  async *list(context, { type }) {
    const { workspaceId } = await resolveWorkspace(context)
    const types = type === undefined ? serviceTypes : [type as ServiceType]
    for await (const { id, record } of new ServiceCalls(context.client, workspaceId).listAll(types))
      yield { id, name: record.name }
  },
}

export const agentChoices: Choices = {
  noun: 'agent',
  async *list(context) {
    const request = await workspaceRequest(context)
    for await (const { agentId: id, name } of context.client.items(agents.list, request)) yield { id, name }
  },
}

export const conversationChoices: Choices = {
  noun: 'conversation',
  async *list(context) {
    const request = await workspaceRequest(context)
    for await (const row of context.client.items(conversations.listAll, request))
      yield { id: row.conversationId, name: conversationName(row) }
  },
}

export const mcpServerChoices: Choices = {
  noun: 'MCP server',
  async *list(context) {
    const request = await workspaceRequest(context)
    for await (const { mcpServerId: id, label: name } of context.client.items(mcpServers.list, request))
      yield { id, name }
  },
}

/** Unfinished jobs on the first page of the list, which contains the newest jobs. */
export const unfinishedJobChoices: Choices = {
  noun: 'job',
  async *list(context) {
    const { client } = context
    const { items } = await client.call(jobs.list, await workspaceRequest(context))
    const unfinished = items.filter(({ status }) => status === 'pending' || status === 'running')
    const names = await lookUpJobNames(client, unfinished)
    for (const job of unfinished) {
      const { document, base } = names.get(job)
      const label = document ? `${document}${base ? ` in ${base}` : ''}` : job.jobId
      yield { id: job.jobId, name: `${label}, ${job.status}` }
    }
  },
}

export const keyChoices: Choices = { noun: 'key', list: context => listKeys(context, () => true) }

export const unrevokedKeyChoices: Choices = {
  noun: 'key',
  list: context => listKeys(context, ({ revokedAt }) => revokedAt === null),
}

async function* listKeys(context: ResolveContext, isWanted: (key: { revokedAt: string | null }) => boolean) {
  const request = await workspaceRequest(context)
  for await (const key of context.client.items(apiKeys.list, request))
    if (isWanted(key)) yield { id: key.prefix, name: key.label }
}

export const principalChoices: Choices = {
  noun: 'principal',
  async *list(context) {
    const request = await workspaceRequest(context)
    for await (const { principalId: id, label } of context.client.items(principals.list, request))
      yield { id, name: label ?? id }
  },
}

export const secretReleaseChoices: Choices = {
  noun: 'secret release',
  async *list({ client }) {
    for await (const { releaseId: id, ref, host } of client.items(secretReleases.list, {}))
      yield { id, name: `${ref} for ${host}` }
  },
}

async function workspaceRequest(context: ResolveContext) {
  const { workspaceId } = await resolveWorkspace(context)
  return { params: { workspaceId } }
}

async function knowledgeBaseRequest(context: ResolveContext, { kb: nameOrId }: NarrowingFlags) {
  const { workspaceId, knowledgeBaseId } = await resolveKnowledgeBase(context, nameOrId)
  return { params: { workspaceId, knowledgeBaseId } }
}
