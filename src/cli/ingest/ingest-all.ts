import { type ErrorCode, isErrorCode, WbError } from '../../contract/errors.ts'
import { operational } from '../../contract/operational.ts'
import { groupIntoBatches } from './batches.ts'
import {
  createBatchSender,
  createSingleSender,
  type IngestOutcome,
  type IngestTarget,
  ingestBatch,
  type SendBatch,
} from './ingest-batch.ts'
import type { IngestItem, Source } from './ingest-item.ts'
import type { Tally } from './tally.ts'

/** Number of concurrent batches, so that one is read and sent while the runtime processes the other. */
const batchesInFlight = 2
/** Number of concurrent requests with one text each. */
const singlesInFlight = 8
/** Maximum number of consecutive failures caused by the runtime. */
const consecutiveFailuresMax = 20

/**
 * Ingests all sources and counts the results in `tally`.
 *
 * @param onStep  called after each document and each problem
 * @throws WbError, Unreachable  when the runtime refuses everything or disconnects; the counts so far remain
 * valid
 */
export async function ingestAll(
  target: IngestTarget,
  found: AsyncIterable<IngestItem>,
  tally: Tally,
  onStep: () => void,
): Promise<void> {
  const stopping = new AbortController()
  const signal = AbortSignal.any([target.signal, stopping.signal])
  const { send, batchSizeMax, concurrency } = await chooseSender({ ...target, signal })
  const batches = groupIntoBatches(countProblems(found, tally, onStep))
  const failures = new FailureStreak()
  const work = async () => {
    for (let next = await batches.next(); !next.done; next = await batches.next()) {
      signal.throwIfAborted()
      for (const batch of splitBatch(next.value, batchSizeMax))
        for await (const [source, outcome] of ingestBatch({ ...target, signal }, send, batch)) {
          tally.count(source.path, outcome)
          onStep()
          failures.watch(outcome)
        }
    }
  }
  const stop = (error: unknown) => {
    stopping.abort(error)
    throw error
  }
  await waitForAll(Array.from({ length: concurrency }, () => work().catch(stop)))
}

/** Selects batches if the runtime supports them, else one request per text. */
async function chooseSender(
  target: IngestTarget,
): Promise<{ send: SendBatch; batchSizeMax: number; concurrency: number }> {
  const { client, signal, usesJobs } = target
  if (!usesJobs && (await client.call(operational.features, {}, { signal })).ingestBatch)
    return {
      send: createBatchSender(target),
      batchSizeMax: Number.POSITIVE_INFINITY,
      concurrency: batchesInFlight,
    }
  return { send: createSingleSender(target), batchSizeMax: 1, concurrency: singlesInFlight }
}

function* splitBatch<T>(all: T[], width: number): Generator<T[]> {
  if (all.length <= width) yield all
  else for (const one of all) yield [one]
}

/** Yields the sources, and counts skipped files and problems. */
async function* countProblems(
  found: AsyncIterable<IngestItem>,
  tally: Tally,
  onStep: () => void,
): AsyncGenerator<Source> {
  for await (const one of found) {
    if (one.kind === 'source') yield one.source
    else if (one.kind === 'skipped') tally.countSkipped(one)
    else {
      tally.countFailure(one.problem)
      onStep()
    }
  }
}

/** Stops the work after consecutive failures that no text causes. */
class FailureStreak {
  #count = 0

  watch(outcome: IngestOutcome): void {
    const isFault = outcome.result === 'failed' && (outcome.status >= 500 || outcome.status === 429)
    this.#count = isFault ? this.#count + 1 : 0
    if (!isFault || this.#count < consecutiveFailuresMax) return
    const code: ErrorCode = isErrorCode(outcome.code) ? outcome.code : 'internal_error'
    throw new WbError(
      code,
      `stopped after ${consecutiveFailuresMax} consecutive failures: ${outcome.message}`,
      {
        wireStatus: outcome.status,
      },
    )
  }
}

/** Waits for all promises, then throws the first rejection, if any. */
async function waitForAll(work: readonly Promise<void>[]): Promise<void> {
  const first: { error?: unknown } = {}
  await Promise.all(
    work.map(one =>
      one.catch((error: unknown) => {
        if (!('error' in first)) first.error = error
      }),
    ),
  )
  if ('error' in first) throw first.error
}
