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
import { conversationName } from '../find/conversation.ts'
import { type Named, type Resolving, resolveKnowledgeBase, resolveWorkspace } from '../find/resolve.ts'
import { jobPlaces } from '../jobs/job-places.ts'
import { ServiceCalls } from '../services/calls.ts'
import { type ServiceType, serviceTypes } from '../services/kinds.ts'
import { documentName } from '../shown/resources.ts'

/** Resources of one kind, to choose from. */
export interface Choices {
  /** Singular noun for the kind. */
  readonly one: string
  /** Lists all of them. `id` is a value that commands accept as a reference. */
  among(resolving: Resolving, flags: NarrowingFlags): AsyncIterable<Named>
}

/** Flags that limit which resources are listed. */
export interface NarrowingFlags {
  readonly kb?: string
  readonly type?: string
}

export const aWorkspace: Choices = {
  one: 'workspace',
  async *among({ client }) {
    for await (const { workspaceId: id, name } of client.items(workspaces.list, {})) yield { id, name }
  },
}

export const aKnowledgeBase: Choices = {
  one: 'knowledge base',
  async *among(resolving) {
    const request = await ofWorkspace(resolving)
    for await (const { knowledgeBaseId: id, name } of resolving.client.items(kb.list, request))
      yield { id, name }
  },
}

export const aDocument: Choices = {
  one: 'document',
  async *among(resolving, flags) {
    const request = await ofBase(resolving, flags)
    for await (const row of resolving.client.items(documents.list, request))
      yield { id: row.documentId, name: documentName(row) }
  },
}

export const aFilter: Choices = {
  one: 'saved filter',
  async *among(resolving, flags) {
    const request = await ofBase(resolving, flags)
    for await (const { knowledgeFilterId: id, name } of resolving.client.items(filters.list, request))
      yield { id, name }
  },
}

export const aService: Choices = {
  one: 'service',
  async *among(resolving, { type }) {
    const { workspaceId } = await resolveWorkspace(resolving)
    const types = type === undefined ? serviceTypes : [type as ServiceType]
    for await (const { id, record } of new ServiceCalls(resolving.client, workspaceId).listAll(types))
      yield { id, name: record.name }
  },
}

export const anAgent: Choices = {
  one: 'agent',
  async *among(resolving) {
    const request = await ofWorkspace(resolving)
    for await (const { agentId: id, name } of resolving.client.items(agents.list, request)) yield { id, name }
  },
}

export const aConversation: Choices = {
  one: 'conversation',
  async *among(resolving) {
    const request = await ofWorkspace(resolving)
    for await (const row of resolving.client.items(conversations.listAll, request))
      yield { id: row.conversationId, name: conversationName(row) }
  },
}

export const anMcpServer: Choices = {
  one: 'MCP server',
  async *among(resolving) {
    const request = await ofWorkspace(resolving)
    for await (const { mcpServerId: id, label: name } of resolving.client.items(mcpServers.list, request))
      yield { id, name }
  },
}

/** Unfinished jobs on the first page of the list, which holds the newest ones. */
export const anUnfinishedJob: Choices = {
  one: 'job',
  async *among(resolving) {
    const { client } = resolving
    const { items } = await client.call(jobs.list, await ofWorkspace(resolving))
    const open = items.filter(({ status }) => status === 'pending' || status === 'running')
    const places = await jobPlaces(client, open)
    for (const job of open) {
      const { document, base } = places.of(job)
      const about = document ? `${document}${base ? ` in ${base}` : ''}` : job.jobId
      yield { id: job.jobId, name: `${about}, ${job.status}` }
    }
  },
}

export const aKey: Choices = { one: 'key', among: resolving => keys(resolving, () => true) }

export const aKeyInUse: Choices = {
  one: 'key',
  among: resolving => keys(resolving, ({ revokedAt }) => revokedAt === null),
}

async function* keys(resolving: Resolving, keeps: (key: { revokedAt: string | null }) => boolean) {
  const request = await ofWorkspace(resolving)
  for await (const key of resolving.client.items(apiKeys.list, request))
    if (keeps(key)) yield { id: key.prefix, name: key.label }
}

export const aPrincipal: Choices = {
  one: 'principal',
  async *among(resolving) {
    const request = await ofWorkspace(resolving)
    for await (const { principalId: id, label } of resolving.client.items(principals.list, request))
      yield { id, name: label ?? id }
  },
}

export const aSecretRelease: Choices = {
  one: 'secret release',
  async *among({ client }) {
    for await (const { releaseId: id, ref, host } of client.items(secretReleases.list, {}))
      yield { id, name: `${ref} for ${host}` }
  },
}

async function ofWorkspace(resolving: Resolving) {
  const { workspaceId } = await resolveWorkspace(resolving)
  return { params: { workspaceId } }
}

async function ofBase(resolving: Resolving, { kb: named }: NarrowingFlags) {
  const { workspaceId, knowledgeBaseId } = await resolveKnowledgeBase(resolving, named)
  return { params: { workspaceId, knowledgeBaseId } }
}
