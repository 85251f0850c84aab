import type { Handlers } from '../access/caller.ts'
import type { workspaces } from '../contract/workspaces.ts'
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
