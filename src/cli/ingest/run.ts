import { type ErrorCode, isErrorCode, WbError } from '../../contract/errors.ts'
import { operational } from '../../contract/operational.ts'
import { batched } from './batches.ts'
import type { IngestItem, Source } from './found.ts'
import { batchSend, deliver, type Outcome, type Send, singleSend, type Target } from './send.ts'
import type { Tally } from './tally.ts'

/** Number of concurrent batches, so that one is read and sent while the runtime processes the other. */
const batchesInFlight = 2
/** Number of concurrent requests with one text each. */
const singlesInFlight = 8
/** Maximum number of consecutive failures caused by the runtime. */
const faultsInARowMax = 20

/**
 * Ingests all sources and counts the results in `tally`.
 *
 * @param onStep  called after each document and each problem
 * @throws WbError, Unreachable  when the runtime refuses everything or disconnects; the counts so far remain
 * valid
 */
export async function ingestAll(
  target: Target,
  found: AsyncIterable<IngestItem>,
  tally: Tally,
  onStep: () => void,
): Promise<void> {
  const stopping = new AbortController()
  const signal = AbortSignal.any([target.signal, stopping.signal])
  const { send, width, ways } = await chooseSender({ ...target, signal })
  const groups = batched(countProblems(found, tally, onStep))
  const faults = new Faults()
  const work = async () => {
    for (let next = await groups.next(); !next.done; next = await groups.next()) {
      signal.throwIfAborted()
      for (const batch of cut(next.value, width))
        for await (const [source, outcome] of deliver({ ...target, signal }, send, batch)) {
          tally.take(source.path, outcome)
          onStep()
          faults.watch(outcome)
        }
    }
  }
  const stop = (error: unknown) => {
    stopping.abort(error)
    throw error
  }
  await allOrFirst(Array.from({ length: ways }, () => work().catch(stop)))
}

/** Selects batches if the runtime supports them, else one request per text. */
async function chooseSender(target: Target): Promise<{ send: Send; width: number; ways: number }> {
  const { client, signal, byJobs } = target
  if (!byJobs && (await client.call(operational.features, {}, { signal })).ingestBatch)
    return { send: batchSend(target), width: Number.POSITIVE_INFINITY, ways: batchesInFlight }
  return { send: singleSend(target), width: 1, ways: singlesInFlight }
}

function* cut<T>(all: T[], width: number): Generator<T[]> {
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
    else if (one.kind === 'skipped') tally.skip(one)
    else {
      tally.fail(one.problem)
      onStep()
    }
  }
}

/** Stops the work after consecutive failures that no text causes. */
class Faults {
  #inARow = 0

  watch(outcome: Outcome): void {
    const isFault = outcome.result === 'failed' && (outcome.status >= 500 || outcome.status === 429)
    this.#inARow = isFault ? this.#inARow + 1 : 0
    if (!isFault || this.#inARow < faultsInARowMax) return
    const code: ErrorCode = isErrorCode(outcome.code) ? outcome.code : 'internal_error'
    throw new WbError(code, `stopped after ${faultsInARowMax} consecutive failures: ${outcome.message}`, {
      wireStatus: outcome.status,
    })
  }
}

/** Waits for all promises, then throws the first rejection, if any. */
async function allOrFirst(work: readonly Promise<void>[]): Promise<void> {
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
