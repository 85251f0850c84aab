import type { Handlers } from '../access/caller.ts'
import type {
  ChunkingService,
  chunkingServices,
  EmbeddingService,
  embeddingServices,
} from '../contract/services.ts'
import type { workspaces } from '../contract/workspaces.ts'
import type { Services } from './services.ts'
import type { Workspaces } from './workspaces.ts'

export function workspaceHandlers(room: Workspaces): Handlers<typeof workspaces> {
  return {
    list: async ({ query }, caller) => ({ status: 200, body: await room.list(query, caller.auth.subject) }),
    create: async ({ body }) => ({ status: 201, body: await room.create(body) }),
    show: async ({ params }) => ({ status: 200, body: await room.get(params.workspaceId) }),
    update: async ({ params, body }) => ({ status: 200, body: await room.update(params.workspaceId, body) }),
    delete: async ({ params }) => {
      await room.delete(params.workspaceId)
      return { status: 204, body: undefined }
    },
  }
}

export function chunkingHandlers(room: Services<ChunkingService>): Handlers<typeof chunkingServices> {
  return {
    list: async ({ params, query }) => ({ status: 200, body: await room.list(params.workspaceId, query) }),
    create: async ({ params, body }) => ({ status: 201, body: await room.create(params.workspaceId, body) }),
    show: async ({ params }) => ({
      status: 200,
      body: await room.get(params.workspaceId, params.chunkingServiceId),
    }),
    update: async ({ params, body }) => ({
      status: 200,
      body: await room.update(params.workspaceId, params.chunkingServiceId, body),
    }),
    delete: async ({ params }) => {
      await room.delete(params.workspaceId, params.chunkingServiceId)
      return { status: 204, body: undefined }
    },
  }
}

export function embeddingHandlers(room: Services<EmbeddingService>): Handlers<typeof embeddingServices> {
  return {
    list: async ({ params, query }) => ({ status: 200, body: await room.list(params.workspaceId, query) }),
    create: async ({ params, body }) => ({ status: 201, body: await room.create(params.workspaceId, body) }),
    show: async ({ params }) => ({
      status: 200,
      body: await room.get(params.workspaceId, params.embeddingServiceId),
    }),
    update: async ({ params, body }) => ({
      status: 200,
      body: await room.update(params.workspaceId, params.embeddingServiceId, body),
    }),
    delete: async ({ params }) => {
      await room.delete(params.workspaceId, params.embeddingServiceId)
      return { status: 204, body: undefined }
    },
  }
}
