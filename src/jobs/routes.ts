import type { Handlers } from '../access/caller.ts'
import type { jobs } from '../contract/jobs.ts'
import type { Jobs } from './jobs.ts'

export function jobHandlers(workspaceJobs: Jobs): Handlers<typeof jobs> {
  return {
    list: async ({ params, query }) => ({
      status: 200,
      body: await workspaceJobs.list(params.workspaceId, query),
    }),
    show: async ({ params }) => ({
      status: 200,
      body: await workspaceJobs.get(params.workspaceId, params.jobId),
    }),
    cancel: async ({ params }) => ({
      status: 200,
      body: await workspaceJobs.cancel(params.workspaceId, params.jobId),
    }),
    events: async ({ params }, { follows }) => {
      if (follows)
        return {
          status: 200,
          events: await workspaceJobs.follow(params.workspaceId, params.jobId, follows.after),
        }
      return { status: 200, body: await workspaceJobs.get(params.workspaceId, params.jobId) }
    },
  }
}
