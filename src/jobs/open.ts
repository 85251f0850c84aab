import type { Handlers } from '../access/caller.ts'
import type { Config } from '../config/schema.ts'
import type { Job, jobs } from '../contract/jobs.ts'
import type { IngestLoad } from '../contract/runtime-routes.ts'
import type { Pager } from '../storage/cursor.ts'
import { JobEvents } from './job-events.ts'
import { JobWorker, type JobWorkerParts } from './job-worker.ts'
import { Jobs } from './jobs.ts'
import { JobRetention } from './retention.ts'
import { jobHandlers } from './routes.ts'

type OpenJobsParts = { readonly pager: Pager; readonly config: Config } & Pick<
  JobWorkerParts,
  'rows' | 'clock' | 'log' | 'audit' | 'host' | 'processMark' | 'perform'
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
  /** Starts to run jobs continuously, as in a server. */
  start(): void
  /** Checks for jobs to run. */
  wake(): void
  /** Returns the capacity, and the numbers of running and queued jobs. */
  load(): Promise<IngestLoad>
  /** Returns the number of unfinished jobs that no process is working on. */
  due(): Promise<number>
  /** Runs all jobs that are due, and waits for them. */
  settle(signal: AbortSignal, onProgress: (step: JobProgress) => void): Promise<void>
  close(): Promise<void>
}

/** Opens the jobs of a store. Jobs run only after a call of `start`, `wake` or `settle`. */
export function openJobs(parts: OpenJobsParts): JobsModule {
  const { runtime, controlPlane } = parts.config
  const jobEvents = new JobEvents()
  const worker = new JobWorker({
    ...parts,
    jobEvents,
    capacity: runtime.maxConcurrentIngestJobs,
    leaseMs: controlPlane.jobsResume.graceMs,
    checkIntervalMs: controlPlane.jobsResume.intervalMs,
  })
  const jobsModule = new Jobs({
    ...parts,
    jobEvents,
    onFollow: () => worker.wake(),
    onCancel: jobId => worker.cancelLocal(jobId),
  })
  const retention = new JobRetention({ ...parts, ...runtime.jobs })
  return {
    handlers: jobHandlers(jobsModule),
    start() {
      worker.start()
      retention.start()
    },
    wake: () => worker.wake(),
    load: () => worker.load(),
    due: () => worker.due(),
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
