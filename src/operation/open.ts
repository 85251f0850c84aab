import { timestamp } from '../base/clock.ts'
import type { ErrorCode } from '../contract/errors.ts'
import { type CompletedExchange, type KeyType, Metrics } from './metrics.ts'
import { RecentErrors } from './recent-errors.ts'
import { type OperationDependencies, operationHandlers } from './routes.ts'

/** A completed exchange with its request ID. */
interface LoggedExchange extends CompletedExchange {
  readonly requestId: string
}

/** State of a running ingest job. */
interface IngestClaim {
  readonly isLost: boolean
  readonly signal: AbortSignal
}

/** Creates the metrics and recent errors of this process, with the handlers of their routes. */
export function openOperation(deps: OperationDependencies) {
  const metrics = new Metrics(deps.build, deps.countLostDecisions)
  const errors = new RecentErrors()
  return {
    metrics,
    handlers: operationHandlers(deps, { metrics, errors }),
    /** Receives every completed exchange. */
    observer: {
      onResponse: (exchange: LoggedExchange) => metrics.countExchange(exchange),
      onFailure({ requestId, status, method, route }: LoggedExchange, code: ErrorCode, credential: string) {
        if (code === 'rate_limited') metrics.countRateLimited(keyTypeOf(credential))
        errors.add({ ts: timestamp(deps.clock), code, status, method, routePattern: route, requestId })
      },
    },
    /**
     * Wraps the function that runs ingest jobs, to count outcomes. A failure is not counted if another process
     * continues the job.
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
