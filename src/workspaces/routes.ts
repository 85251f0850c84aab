import type { Handlers } from '../access/caller.ts'
import type { Clock } from '../base/clock.ts'
import type { connect } from '../contract/connect.ts'
import type { playground } from '../contract/playground.ts'
import type { workspaces } from '../contract/workspaces.ts'
import type { Connections } from './connect.ts'
import { testConnection } from './connection.ts'
import type { ContentStores } from './kinds.ts'
import { execute } from './playground.ts'
import type { Workspaces } from './workspaces.ts'

export function workspaceHandlers(room: Workspaces, stores: ContentStores): Handlers<typeof workspaces> {
  return {
    list: async ({ query }, caller) => ({ status: 200, body: await room.list(query, caller.auth.subject) }),
    create: async ({ body }, caller) => ({ status: 201, body: await room.create(body, caller) }),
    show: async ({ params }) => ({ status: 200, body: await room.get(params.workspaceId) }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: await room.update(params.workspaceId, body, caller),
    }),
    delete: async ({ params }, caller) => {
      await room.delete(params.workspaceId, caller)
      return { status: 204, body: undefined }
    },
    testConnection: async ({ params }) => ({
      status: 200,
      body: await testConnection(stores, await room.get(params.workspaceId)),
    }),
  }
}

export function connectHandlers(room: Connections): Handlers<typeof connect> {
  return {
    snippets: async ({ params, query }, { site }) => ({
      status: 200,
      body: await room.snippets(params.workspaceId, query, site.origin),
      headers: { 'cache-control': 'private, max-age=60' },
    }),
    verify: async ({ params }) => ({ status: 200, body: await room.verify(params.workspaceId) }),
    traffic: async ({ params, query }) => ({
      status: 200,
      body: await room.traffic(params.workspaceId, query),
      headers: { 'cache-control': 'no-store' },
    }),
  }
}

export function playgroundHandlers(
  room: Workspaces,
  parts: { stores: ContentStores; clock: Clock },
): Handlers<typeof playground> {
  return {
    execute: async ({ params, body }, caller) => ({
      status: 200,
      body: await execute(parts, await room.get(params.workspaceId), body, caller),
    }),
  }
}
