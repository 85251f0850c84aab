import type { Handlers } from '../access/caller.ts'
import type { Config } from '../config/schema.ts'
import type { Job, jobs } from '../contract/jobs.ts'
import type { IngestLoad } from '../contract/operational.ts'
import type { Pager } from '../storage/cursor.ts'
import { Jobs } from './jobs.ts'
import { JobNews } from './news.ts'
import { JobRetention } from './retention.ts'
import { jobHandlers } from './routes.ts'
import { Worker, type WorkerParts } from './worker.ts'

type Parts = { readonly pager: Pager; readonly config: Config } & Pick<
  WorkerParts,
  'rows' | 'clock' | 'log' | 'audit' | 'host' | 'mark' | 'perform'
>

/** A step of a job that somebody waits for. */
interface Step {
  readonly label: string
  readonly done: number
  readonly total: number
}

/** The jobs of a store, and the worker of this process. */
export interface JobsRoom {
  readonly handlers: Handlers<typeof jobs>
  /** Work from now on, as a server does. */
  start(): void
  /** There may be something to do. */
  wake(): void
  /** What is worked on, at most and now, and how many wait. */
  load(): Promise<IngestLoad>
  /** How many jobs somebody could take up. */
  due(): Promise<number>
  /** Do what is due, and wait for it. */
  settle(signal: AbortSignal, onProgress: (step: Step) => void): Promise<void>
  close(): Promise<void>
}

/** Nothing is worked on before `start`, `wake` or `settle`. */
export function openJobs(parts: Parts): JobsRoom {
  const { runtime, controlPlane } = parts.config
  const news = new JobNews()
  const worker = new Worker({
    ...parts,
    news,
    capacity: runtime.maxConcurrentIngestJobs,
    leaseMs: controlPlane.jobsResume.graceMs,
    everyMs: controlPlane.jobsResume.intervalMs,
  })
  const room = new Jobs({
    ...parts,
    news,
    watched: () => worker.wake(),
    cancelled: jobId => worker.drop(jobId),
  })
  const retention = new JobRetention({ ...parts, ...runtime.jobs })
  return {
    handlers: jobHandlers(room),
    start() {
      worker.start()
      retention.start()
    },
    wake: () => worker.wake(),
    load: () => worker.load(),
    due: () => worker.due(),
    settle: (signal, onProgress) => worker.settle(signal, job => onProgress(stepOf(job))),
    async close() {
      await worker.close()
      await retention.close()
    },
  }
}

function stepOf({ jobId, processed, total }: Job): Step {
  return { label: `job ${jobId}`, done: processed, total: total ?? 0 }
}
