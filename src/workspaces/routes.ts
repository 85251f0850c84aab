import type { Handlers } from '../access/caller.ts'
import type { PageQuery } from '../contract/page.ts'
import type {
  ChunkingCreate,
  ChunkingService,
  chunkingServices,
  EmbeddingCreate,
  EmbeddingService,
  embeddingServices,
} from '../contract/services.ts'
import type { workspaces } from '../contract/workspaces.ts'
import type { Services, Stamps } from './services.ts'
import type { Workspaces } from './workspaces.ts'

export function workspaceHandlers(room: Workspaces): Handlers<typeof workspaces> {
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
  }
}

type Place<Name extends string = never> = Record<'workspaceId' | Name, string>

/** The five operations on services of one kind; `idOf` reads the id out of the path. */
function serviceHandlers<Row extends Stamps, Create, Params extends Place>(
  room: Services<Row, Create>,
  idOf: (params: Params) => string,
) {
  return {
    list: async ({ params, query }: { params: Place; query: PageQuery }) => ({
      status: 200 as const,
      body: await room.list(params.workspaceId, query),
    }),
    create: async ({ params, body }: { params: Place; body: Create }) => ({
      status: 201 as const,
      body: await room.create(params.workspaceId, body),
    }),
    show: async ({ params }: { params: Params }) => ({
      status: 200 as const,
      body: await room.get(params.workspaceId, idOf(params)),
    }),
    update: async ({ params, body }: { params: Params; body: Partial<Row> }) => ({
      status: 200 as const,
      body: await room.update(params.workspaceId, idOf(params), body),
    }),
    delete: async ({ params }: { params: Params }) => {
      await room.delete(params.workspaceId, idOf(params))
      return { status: 204 as const, body: undefined }
    },
  }
}

export function chunkingHandlers(
  room: Services<ChunkingService, ChunkingCreate>,
): Handlers<typeof chunkingServices> {
  return serviceHandlers(room, (params: Place<'chunkingServiceId'>) => params.chunkingServiceId)
}

export function embeddingHandlers(
  room: Services<EmbeddingService, EmbeddingCreate>,
): Handlers<typeof embeddingServices> {
  return serviceHandlers(room, (params: Place<'embeddingServiceId'>) => params.embeddingServiceId)
}
