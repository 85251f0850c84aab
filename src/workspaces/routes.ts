import type { Handlers } from '../access/caller.ts'
import type { Clock } from '../base/clock.ts'
import type { connect } from '../contract/connect.ts'
import type { mcpServers } from '../contract/mcp-servers.ts'
import type { llmModels } from '../contract/models.ts'
import type { playground } from '../contract/playground.ts'
import type { ChatProvider } from '../contract/providers.ts'
import type { secretReleases } from '../contract/releases.ts'
import type { workspaces } from '../contract/workspaces.ts'
import type { Models } from '../models/open.ts'
import type { McpServerRow } from '../storage/tables.ts'
import type { Connections } from './connections.ts'
import type { ContentStores } from './content-stores.ts'
import { executePlaygroundCommand } from './execute-playground-command.ts'
import { type McpServers, shownUrl } from './mcp-servers.ts'
import type { McpSignIns } from './mcp-sign-ins.ts'
import type { SecretReleases } from './secret-releases.ts'
import { testConnection } from './test-connection.ts'
import type { Workspaces } from './workspaces.ts'

export function workspaceHandlers(module: Workspaces, stores: ContentStores): Handlers<typeof workspaces> {
  return {
    list: async ({ query }, caller) => ({ status: 200, body: await module.list(query, caller.auth.subject) }),
    create: async ({ body }, caller) => ({ status: 201, body: await module.create(body, caller) }),
    show: async ({ params }) => ({ status: 200, body: await module.get(params.workspaceId) }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: await module.update(params.workspaceId, body, caller),
    }),
    delete: async ({ params }, caller) => {
      await module.delete(params.workspaceId, caller)
      return { status: 204, body: undefined }
    },
    testConnection: async ({ params }) => ({
      status: 200,
      body: await testConnection(stores, await module.get(params.workspaceId)),
    }),
  }
}

export function connectHandlers(connections: Connections): Handlers<typeof connect> {
  return {
    snippets: async ({ params, query }, { site }) => ({
      status: 200,
      body: await connections.snippets(params.workspaceId, query, site.origin),
      headers: { 'cache-control': 'private, max-age=60' },
    }),
    verify: async ({ params }, caller) => ({
      status: 200,
      body: await connections.verify(params.workspaceId, caller),
    }),
    traffic: async ({ params, query }, caller) => ({
      status: 200,
      body: await connections.traffic(params.workspaceId, query, caller),
      headers: { 'cache-control': 'no-store' },
    }),
  }
}

export function playgroundHandlers(
  module: Workspaces,
  deps: { stores: ContentStores; clock: Clock },
): Handlers<typeof playground> {
  return {
    execute: async ({ params, body }, caller) => ({
      status: 200,
      body: await executePlaygroundCommand(deps, await module.get(params.workspaceId), body, caller),
    }),
  }
}

export function releaseHandlers(releases: SecretReleases): Handlers<typeof secretReleases> {
  return {
    list: async ({ query }) => ({ status: 200, body: await releases.list(query) }),
    create: async ({ body }, caller) => ({ status: 201, body: await releases.release(body, caller) }),
    delete: async ({ params }, caller) => {
      await releases.revoke(params.releaseId, caller)
      return { status: 204, body: undefined }
    },
  }
}

export function mcpServerHandlers(servers: McpServers, signIns: McpSignIns): Handlers<typeof mcpServers> {
  const toResponse = (server: McpServerRow) => ({ ...server, url: shownUrl(server) })
  const detailsOf = ({ mcpServerId, label }: McpServerRow) => ({ mcpServerId, label })
  return {
    list: async ({ params, query }) => {
      const page = await servers.list(params.workspaceId, query)
      return { status: 200, body: { ...page, items: page.items.map(toResponse) } }
    },
    create: async ({ params, body }, caller) => ({
      status: 201,
      body: toResponse(await servers.create(params.workspaceId, body, caller)),
    }),
    show: async ({ params }) => ({
      status: 200,
      body: toResponse(await servers.get(params.workspaceId, params.mcpServerId)),
    }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: toResponse(await servers.update(params.workspaceId, params.mcpServerId, body, caller)),
    }),
    delete: async ({ params }, caller) => {
      await servers.delete(params.workspaceId, params.mcpServerId, caller)
      return { status: 204, body: undefined }
    },
    testConnection: async ({ params }, caller) => ({
      status: 200,
      body: await servers.test(params.workspaceId, params.mcpServerId, caller),
    }),
    tools: async ({ params }, caller) => ({
      status: 200,
      body: await servers.tools(params.workspaceId, params.mcpServerId, caller),
    }),
    review: async ({ params, body }, caller) => ({
      status: 200,
      body: await servers.review(params.workspaceId, params.mcpServerId, body, caller),
    }),
    showSignIn: async ({ params }, { auth }) => {
      const server = await servers.get(params.workspaceId, params.mcpServerId)
      return { status: 200, body: await signIns.show(server, auth) }
    },
    beginSignIn: async ({ params, body }, caller) => {
      const server = await servers.get(params.workspaceId, params.mcpServerId)
      return { status: 200, body: await signIns.begin(server, body, caller) }
    },
    finishSignIn: async ({ params, body }, caller) => {
      const server = await servers.get(params.workspaceId, params.mcpServerId)
      const signedIn = await signIns.finish(server, body, caller)
      return { status: 200, body: signedIn, audit: detailsOf(server) }
    },
    endSignIn: async ({ params }, { auth }) => {
      const server = await servers.get(params.workspaceId, params.mcpServerId)
      await signIns.end(server, auth)
      return { status: 204, body: undefined, audit: detailsOf(server) }
    },
  }
}

/** @param defaultProvider  provider to use if the query does not specify one */
export function llmModelHandlers(
  { catalog, checkUrl }: Pick<Models, 'catalog' | 'checkUrl'>,
  defaultProvider: ChatProvider,
): Handlers<typeof llmModels> {
  return {
    list: async ({ query: { provider = defaultProvider, baseUrl } }, { signal }) => {
      if (baseUrl !== undefined) checkUrl('baseUrl', baseUrl)
      return { status: 200, body: await catalog.list(provider, baseUrl, signal) }
    },
  }
}
