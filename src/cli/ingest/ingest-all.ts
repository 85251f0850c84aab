import { type ErrorCode, isErrorCode, WbError } from '../../contract/errors.ts'
import { runtimeRoutes } from '../../contract/runtime-routes.ts'
import { groupIntoBatches } from './batches.ts'
import { createChangeCheck } from './change-check.ts'
import {
  createBatchSender,
  createSingleSender,
  type IngestOutcome,
  type IngestTarget,
  ingestBatch,
  type SendBatch,
} from './ingest-batch.ts'
import type { IngestItem, IngestSource } from './ingest-item.ts'
import type { Tally } from './tally.ts'

/** Number of concurrent batches. While the runtime processes a batch, the command reads and sends the next one. */
const batchesInFlight = 2
/** Number of concurrent requests with one text each. */
const singlesInFlight = 8
/** Maximum number of consecutive failures caused by the runtime. */
const consecutiveFailuresMax = 20

/**
 * Ingests all sources and counts the results in `tally`.
 *
 * @param onStep  called after each document and each problem
 * @throws WbError, Unreachable  the connection is lost, or too many consecutive requests fail; `tally` then contains the
 *   results up to the error
 */
export async function ingestAll(
  target: IngestTarget,
  items: AsyncIterable<IngestItem>,
  tally: Tally,
  onStep: () => void,
): Promise<void> {
  const stopController = new AbortController()
  const signal = AbortSignal.any([target.signal, stopController.signal])
  const { send, batchSizeMax, concurrency } = await chooseSender({ ...target, signal })
  const check = createChangeCheck({ ...target, signal })
  const batches = groupIntoBatches(countProblems(items, tally, onStep))
  const failures = new FailureStreak()
  const sendBatches = async () => {
    for (let next = await batches.next(); !next.done; next = await batches.next()) {
      signal.throwIfAborted()
      for (const batch of splitBatch(next.value, batchSizeMax))
        for await (const [source, outcome] of ingestBatch({ ...target, signal }, send, batch, check)) {
          tally.count(source.path, outcome)
          onStep()
          failures.record(outcome)
        }
    }
  }
  const stop = (error: unknown) => stopController.abort(error)
  await Promise.all(Array.from({ length: concurrency }, () => sendBatches().catch(stop)))
  stopController.signal.throwIfAborted()
}

/** Selects batches if the runtime supports them and no jobs are requested, otherwise one request per text. */
async function chooseSender(
  target: IngestTarget,
): Promise<{ send: SendBatch; batchSizeMax: number; concurrency: number }> {
  const { client, signal, usesJobs } = target
  if (!usesJobs && (await client.call(runtimeRoutes.features, {}, { signal })).ingestBatch)
    return {
      send: createBatchSender(target),
      batchSizeMax: Number.POSITIVE_INFINITY,
      concurrency: batchesInFlight,
    }
  return { send: createSingleSender(target), batchSizeMax: 1, concurrency: singlesInFlight }
}

/** Yields a batch as a whole if it is within the limit, otherwise one batch for each item. */
function* splitBatch<T>(batch: T[], sizeMax: number): Generator<T[]> {
  if (batch.length <= sizeMax) yield batch
  else for (const item of batch) yield [item]
}

/** Yields the sources, and counts skipped files and problems. */
async function* countProblems(
  items: AsyncIterable<IngestItem>,
  tally: Tally,
  onStep: () => void,
): AsyncGenerator<IngestSource> {
  for await (const item of items) {
    if (item.kind === 'source') yield item.source
    else if (item.kind === 'skipped') tally.countSkipped(item)
    else {
      tally.countFailure(item.problem)
      onStep()
    }
  }
}

/** Counts consecutive failures for which the runtime is the cause, not a text. Stops the ingest at the limit. */
class FailureStreak {
  #count = 0

  record(outcome: IngestOutcome): void {
    const isRuntimeFailure = outcome.result === 'failed' && (outcome.status >= 500 || outcome.status === 429)
    this.#count = isRuntimeFailure ? this.#count + 1 : 0
    if (!isRuntimeFailure || this.#count < consecutiveFailuresMax) return
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
