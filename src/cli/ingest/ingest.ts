import { systemClock } from '../../base/clock.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { watchJob } from '../jobs/watch-job.ts'
import { formatCount } from '../terminal/output.ts'
import { type Progress, silentProgress } from '../terminal/progress.ts'
import { plainLine, truncate } from '../terminal/terminal-text.ts'
import { countDocuments } from './count-documents.ts'
import { ingestAll } from './ingest-all.ts'
import type { IngestTarget, UploadProgress } from './ingest-batch.ts'
import type { Source } from './ingest-item.ts'
import { type Intake, readSources, shareWalk, walkIntake } from './sources.ts'
import type { IngestSummary } from './summary.ts'
import { Tally } from './tally.ts'

const countWaitMaxMs = 150
/** Maximum width of a file name before a progress bar, so that the line fits in 80 columns. */
const nameWidthMax = 24

/** Result of an ingest, and the error that interrupted it. */
export interface IngestReport {
  readonly summary: IngestSummary
  readonly interruption: { readonly error: unknown } | undefined
}

/**
 * Ingests files into a knowledge base and shows progress. Does not throw: an error is returned together with
 * the summary of the work before it.
 */
export async function ingest(
  {
    client,
    signal,
    base,
    progress,
    jobs,
  }: Pick<IngestTarget, 'client' | 'signal'> & {
    base: KnowledgeBase
    progress: Progress
    /** Uses background jobs: `wait` waits until they end, `detach` does not. */
    jobs?: 'wait' | 'detach'
  },
  intake: Intake,
): Promise<IngestReport> {
  const tally = new Tally()
  const startedMs = systemClock.now()
  const size: { total?: number } = {}
  const uploads = new Map<Source, UploadProgress>()
  const show = () => {
    const { total } = size
    const [upload] = uploads.values()
    if (upload) return progress.step(uploadProgress(upload))
    if (total === undefined) progress.spin(`${base.name}  ${formatCount(tally.done)} documents`)
    else progress.step({ label: base.name, done: Math.min(tally.done, total), total, unit: 'docs' })
  }
  const onUpload = (upload: UploadProgress) => {
    if (upload.sentBytes < upload.totalBytes) uploads.set(upload.source, upload)
    else uploads.delete(upload.source)
    show()
  }
  show()
  const files = progress === silentProgress ? walkIntake(intake) : shareWalk(walkIntake(intake))
  if (progress !== silentProgress)
    await waitForCount(countDocuments(intake, files, signal), total => Object.assign(size, { total }))
  const work = async () => {
    const target: IngestTarget = {
      client,
      base,
      signal,
      usesJobs: jobs !== undefined,
      onUpload: progress === silentProgress ? undefined : onUpload,
    }
    await ingestAll(target, readSources(intake, files), tally, show)
    if (jobs === 'wait') await waitForJobs({ client, signal, progress }, base.name, tally)
  }
  const interruption = await work().then(
    () => undefined,
    (error: unknown) => ({ error: signal.aborted ? signal.reason : error }),
  )
  progress.end()
  const remaining = interruption && {
    count: size.total === undefined ? undefined : Math.max(0, size.total - tally.done),
  }
  return { summary: { base, tally, elapsedMs: systemClock.now() - startedMs, remaining }, interruption }
}

/** Describes the progress of an upload. */
function uploadProgress({ source, sentBytes, totalBytes }: UploadProgress): Parameters<Progress['step']>[0] {
  const label = truncate(plainLine(source.body.sourceFilename), nameWidthMax)
  return { label, done: sentBytes, total: totalBytes, unit: 'bytes' }
}

/** Waits for the queued jobs in the order in which they were sent, and counts their results. */
async function waitForJobs(
  { client, signal, progress }: Pick<IngestTarget, 'client' | 'signal'> & { progress: Progress },
  label: string,
  tally: Tally,
): Promise<void> {
  const total = tally.queued.length
  for (let done = 0; done < total; done++) {
    progress.step({ label, done, total, unit: 'docs' })
    tally.countEndedJob(await watchJob(client, tally.queued[0]!.job, signal, () => {}))
  }
}

/**
 * Waits for the count, for at most {@link countWaitMaxMs}, so that the progress bar usually appears at once. A
 * longer count continues in the background.
 */
async function waitForCount(
  count: Promise<number | undefined>,
  onCounted: (total: number | undefined) => void,
): Promise<void> {
  const counting = count.then(onCounted, () => undefined)
  await new Promise<void>(resolve => {
    const cancel = systemClock.after(countWaitMaxMs, resolve)
    void counting.then(() => {
      cancel()
      resolve()
    })
  })
}
