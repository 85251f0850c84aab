import { systemClock } from '../../base/clock.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { watchJob } from '../jobs/watch-job.ts'
import { formatCount } from '../terminal/output.ts'
import { type Progress, silentProgress } from '../terminal/progress.ts'
import { plainLine, truncate } from '../terminal/terminal-text.ts'
import type { CrawlContext, CrawlSelection } from '../web-sources/crawl.ts'
import { countDocuments } from './count-documents.ts'
import { ingestAll } from './ingest-all.ts'
import type { IngestTarget, UploadProgress } from './ingest-batch.ts'
import { type IngestSource, nameOf } from './ingest-item.ts'
import { ingestPages } from './ingest-pages.ts'
import { type IngestSelection, readSources, shareWalk, walkSelection } from './sources.ts'
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

/** Web pages to ingest after the files. */
export interface WebSelection {
  readonly pages: CrawlSelection
  readonly context: Omit<CrawlContext, 'storedVersion' | 'signal'>
}

/**
 * Ingests files into a knowledge base and shows progress. If an error interrupts the ingest, it is not thrown, but
 * returned with a summary of the work up to then.
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
    /** Ingests in background jobs if set: `wait` waits until the jobs have ended, `detach` does not. */
    jobs?: 'wait' | 'detach'
  },
  selection: IngestSelection,
  web?: WebSelection,
): Promise<IngestReport> {
  const tally = new Tally()
  const startedMs = systemClock.now()
  const documentCount: { total?: number } = {}
  const uploads = new Map<IngestSource, UploadProgress>()
  const showProgress = () => {
    const { total } = documentCount
    const [upload] = uploads.values()
    if (upload) return progress.step(uploadProgress(upload))
    if (total === undefined) progress.spin(`${base.name}  ${formatCount(tally.processedCount)} documents`)
    else progress.step({ label: base.name, done: Math.min(tally.processedCount, total), total, unit: 'docs' })
  }
  const onUpload = (upload: UploadProgress) => {
    if (upload.sentBytes < upload.totalBytes) uploads.set(upload.source, upload)
    else uploads.delete(upload.source)
    showProgress()
  }
  showProgress()
  const files = progress === silentProgress ? walkSelection(selection) : shareWalk(walkSelection(selection))
  if (progress !== silentProgress && !web)
    await waitForCount(countDocuments(selection, files, signal), total =>
      Object.assign(documentCount, { total }),
    )
  const work = async () => {
    const target: IngestTarget = {
      client,
      base,
      signal,
      usesJobs: jobs !== undefined,
      onUpload: progress === silentProgress ? undefined : onUpload,
    }
    await ingestAll(target, readSources(selection, files), tally, showProgress)
    if (web) await ingestPages(target, { ...web.context, signal }, web.pages, tally, showProgress)
    if (jobs === 'wait') await waitForJobs({ client, signal, progress }, base.name, tally)
  }
  const interruption = await work().then(
    () => undefined,
    (error: unknown) => ({ error: signal.aborted ? signal.reason : error }),
  )
  progress.end()
  const remaining = interruption && {
    count:
      documentCount.total === undefined ? undefined : Math.max(0, documentCount.total - tally.processedCount),
  }
  return { summary: { base, tally, elapsedMs: systemClock.now() - startedMs, remaining }, interruption }
}

/** Describes the progress of an upload. */
function uploadProgress({ source, sentBytes, totalBytes }: UploadProgress): Parameters<Progress['step']>[0] {
  const label = truncate(plainLine(nameOf(source)), nameWidthMax)
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
 * Waits for at most {@link countWaitMaxMs} until the documents are counted, so that the progress bar usually appears
 * immediately. A longer count continues in the background.
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
