import type { Handlers } from '../access/caller.ts'
import type { jobs } from '../contract/jobs.ts'
import type { Jobs } from './jobs.ts'

export function jobHandlers(room: Jobs): Handlers<typeof jobs> {
  return {
    list: async ({ params, query }) => ({ status: 200, body: await room.list(params.workspaceId, query) }),
    show: async ({ params }) => ({ status: 200, body: await room.get(params.workspaceId, params.jobId) }),
    cancel: async ({ params }) => ({
      status: 200,
      body: await room.cancel(params.workspaceId, params.jobId),
    }),
    events: async ({ params }, { follows }) => {
      if (follows)
        return { status: 200, events: await room.follow(params.workspaceId, params.jobId, follows.after) }
      return { status: 200, body: await room.get(params.workspaceId, params.jobId) }
    },
  }
}
