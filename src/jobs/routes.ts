import type { Handlers } from '../access/caller.ts'
import type { jobs } from '../contract/jobs.ts'
import type { Jobs } from './jobs.ts'

export function jobHandlers(jobsModule: Jobs): Handlers<typeof jobs> {
  return {
    list: async ({ params, query }, caller) => ({
      status: 200,
      body: await jobsModule.list(params.workspaceId, query, caller),
    }),
    show: async ({ params }, caller) => ({ status: 200, body: await jobsModule.get(params, caller) }),
    cancel: async ({ params }, caller) => ({ status: 200, body: await jobsModule.cancel(params, caller) }),
    events: async ({ params }, caller) => {
      const { follows } = caller
      if (follows) return { status: 200, events: await jobsModule.follow(params, follows.after, caller) }
      return { status: 200, body: await jobsModule.get(params, caller) }
    },
  }
}
