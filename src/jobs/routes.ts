import type { Handlers } from '../access/caller.ts'
import type { jobs } from '../contract/jobs.ts'
import type { Jobs } from './jobs.ts'

export function jobHandlers(workspaceJobs: Jobs): Handlers<typeof jobs> {
  return {
    list: async ({ params, query }, caller) => ({
      status: 200,
      body: await workspaceJobs.list(params.workspaceId, query, caller),
    }),
    show: async ({ params }, caller) => ({ status: 200, body: await workspaceJobs.get(params, caller) }),
    cancel: async ({ params }, caller) => ({ status: 200, body: await workspaceJobs.cancel(params, caller) }),
    events: async ({ params }, caller) => {
      const { follows } = caller
      if (follows) return { status: 200, events: await workspaceJobs.follow(params, follows.after, caller) }
      return { status: 200, body: await workspaceJobs.get(params, caller) }
    },
  }
}
