import { WbError } from '../contract/errors.ts'
import type { AppContext, Exchange } from './exchange.ts'
import { isForwarded } from './proxy-resolver.ts'
import type { RateLimitClass } from './rate-limit.ts'
import { bodyTooLarge } from './request-bytes.ts'

/** Path of the liveness check, which keeps responding while the runtime shuts down. */
const livenessPath = '/healthz'

/**
 * Runs the checks that do not need the caller's identity.
 *
 * @throws draining           when the runtime is shutting down
 * @throws rate_limited       when the client has used up its rate limit
 * @throws forbidden_origin   when the `Host` or `Origin` header is not allowed
 * @throws payload_too_large  when the declared length is above the limit
 * @throws WbError            the error of `errorForPath`, if it returns one for the path
 */
export function admitRequest(
  context: AppContext,
  exchange: Exchange,
  rateLimitClass: RateLimitClass | undefined,
  bodyLimitBytes: number,
): void {
  const { incoming } = exchange
  if (context.isDraining() && incoming.path !== livenessPath)
    throw new WbError('draining', 'the runtime is shutting down', { headers: { connection: 'close' } })
  if (incoming.isFromOutside) {
    if (rateLimitClass) takeToken(context, exchange, rateLimitClass)
    const originError = context.originRule(incoming)
    if (originError) throw originError
  }
  const pathError = context.errorForPath?.(incoming.path)
  if (pathError) throw pathError
  if (Number(incoming.header('content-length')) > bodyLimitBytes) throw bodyTooLarge(bodyLimitBytes)
}

/** @throws rate_limited  when the client has used up its rate limit */
function takeToken(context: AppContext, exchange: Exchange, rateLimitClass: RateLimitClass): void {
  if (!context.rateLimit) return
  const { incoming, headers } = exchange
  const client = clientAddress(context, exchange)
  context.rateLimit.take({ rateLimitClass, client, isForwarded: isForwarded(incoming) }, headers)
}

/** Returns the address of the client that sent the request. */
export function clientAddress(context: AppContext, exchange: Exchange): string {
  exchange.client ??= context.clientAddress(exchange.incoming)
  return exchange.client
}
