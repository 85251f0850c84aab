import { timestamp } from '../base/clock.ts'
import type { ErrorCode } from '../contract/errors.ts'
import { type CompletedExchange, type KeyType, Metrics } from './metrics.ts'
import { RecentErrors } from './recent-errors.ts'
import { type OperationParts, operationHandlers } from './routes.ts'

/** A completed exchange with its request ID. */
interface LoggedExchange extends CompletedExchange {
  readonly requestId: string
}

/** State of an ingest job in progress. */
interface IngestClaim {
  readonly isLost: boolean
  readonly signal: AbortSignal
}

/** Creates the metrics and recent errors of this process, with the handlers of their routes. */
export function openOperation(parts: OperationParts) {
  const metrics = new Metrics(parts.build)
  const errors = new RecentErrors()
  return {
    metrics,
    handlers: operationHandlers(parts, { metrics, errors }),
    /** Observer of all exchanges. */
    observer: {
      onResponse: (exchange: LoggedExchange) => metrics.countExchange(exchange),
      onFailure({ requestId, status, method, route }: LoggedExchange, code: ErrorCode, credential: string) {
        if (code === 'rate_limited') metrics.countRateLimited(keyTypeOf(credential))
        errors.add({ ts: timestamp(parts.clock), code, status, method, routePattern: route, requestId })
      },
    },
    /**
     * Wraps ingest work to count its outcome. A failure is not counted if another process continues the job.
     */
    withIngestCount:
      <C extends IngestClaim>(perform: (claim: C) => Promise<void>) =>
      async (claim: C): Promise<void> => {
        try {
          await perform(claim)
          metrics.countIngest('ok')
        } catch (error) {
          if (!claim.isLost && !claim.signal.aborted) metrics.countIngest('failed')
          throw error
        }
      },
  }
}

function keyTypeOf(credential: string): KeyType {
  return credential === 'bearer' || credential === 'session' ? credential : 'ip'
}
