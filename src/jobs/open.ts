import type { Handlers } from '../access/caller.ts'
import type { Config } from '../config/schema.ts'
import type { Job, jobs } from '../contract/jobs.ts'
import type { IngestLoad } from '../contract/runtime-routes.ts'
import type { Pager } from '../storage/cursor.ts'
import { JobEvents } from './job-events.ts'
import { JobWorker, type JobWorkerDependencies } from './job-worker.ts'
import { Jobs } from './jobs.ts'
import { JobRetention } from './retention.ts'
import { jobHandlers } from './routes.ts'

type JobsModuleDependencies = { readonly pager: Pager; readonly config: Config } & Pick<
  JobWorkerDependencies,
  'rows' | 'clock' | 'log' | 'audit' | 'host' | 'processNonce' | 'perform'
>

/** Progress of a job that a caller waits for. */
interface JobProgress {
  readonly label: string
  readonly done: number
  readonly total: number
}

/** The jobs of a store, and the worker that runs them in this process. */
export interface JobsModule {
  readonly handlers: Handlers<typeof jobs>
  /** Starts running jobs continuously, as a server does. */
  start(): void
  /** Checks for jobs to run. */
  wake(): void
  /** Returns the capacity, and the numbers of running and queued jobs. */
  load(): Promise<IngestLoad>
  /** Returns the number of unfinished jobs that no process is working on. */
  countDue(): Promise<number>
  /** Runs all jobs that are due, and waits for them. */
  settle(signal: AbortSignal, onProgress: (step: JobProgress) => void): Promise<void>
  close(): Promise<void>
}

/** Opens the jobs of a store. Jobs run only after a call to `start`, `wake` or `settle`. */
export function openJobs(deps: JobsModuleDependencies): JobsModule {
  const { runtime, controlPlane } = deps.config
  const jobEvents = new JobEvents()
  const worker = new JobWorker({
    ...deps,
    jobEvents,
    capacity: runtime.maxConcurrentIngestJobs,
    leaseMs: controlPlane.jobsResume.graceMs,
    checkIntervalMs: controlPlane.jobsResume.intervalMs,
  })
  const workspaceJobs = new Jobs({
    ...deps,
    jobEvents,
    onFollow: () => worker.wake(),
    onCancel: jobId => worker.cancelLocal(jobId),
  })
  const retention = new JobRetention({ ...deps, ...runtime.jobs })
  return {
    handlers: jobHandlers(workspaceJobs),
    start() {
      worker.start()
      retention.start()
    },
    wake: () => worker.wake(),
    load: () => worker.load(),
    countDue: () => worker.countDue(),
    settle: (signal, onProgress) => worker.settle(signal, job => onProgress(jobProgress(job))),
    async close() {
      await worker.close()
      await retention.close()
    },
  }
}

function jobProgress({ jobId, processed, total }: Job): JobProgress {
  return { label: `job ${jobId}`, done: processed, total: total ?? 0 }
}
