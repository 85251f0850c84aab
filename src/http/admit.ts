import { WbError } from '../contract/errors.ts'
import { tooLarge } from './body.ts'
import type { Exchange, Shared } from './exchange.ts'
import { isForwarded } from './proxies.ts'
import type { RateLimitClass } from './rate-limit.ts'

/** Liveness check, which is also answered while the runtime drains. */
const livenessPath = '/healthz'

/**
 * Runs the checks that do not need the caller's identity.
 *
 * @throws draining           when the runtime is shutting down
 * @throws rate_limited       when the client has no token left
 * @throws forbidden_origin   when the `Host` or `Origin` header is not allowed
 * @throws payload_too_large  when the declared length is above the limit
 * @throws WbError            when `refusalOf` refuses the path
 */
export function admit(
  shared: Shared,
  current: Exchange,
  rateLimitClass: RateLimitClass | undefined,
  bodyLimitBytes: number,
): void {
  const { incoming } = current
  if (shared.isDraining() && incoming.path !== livenessPath)
    throw new WbError('draining', 'the runtime is shutting down', { headers: { connection: 'close' } })
  if (incoming.isFromOutside) {
    if (rateLimitClass) takeToken(shared, current, rateLimitClass)
    const refused = shared.originRule(incoming)
    if (refused) throw refused
  }
  const refused = shared.refusalOf?.(incoming.path)
  if (refused) throw refused
  if (Number(incoming.header('content-length')) > bodyLimitBytes) throw tooLarge(bodyLimitBytes)
}

/** @throws rate_limited  when the client has no token left */
function takeToken(shared: Shared, current: Exchange, rateLimitClass: RateLimitClass): void {
  if (!shared.rateLimit) return
  const { incoming, headers } = current
  const client = clientOf(shared, current)
  shared.rateLimit.take({ rateLimitClass, client, isForwarded: isForwarded(incoming) }, headers)
}

export function clientOf(shared: Shared, current: Exchange): string {
  current.client ??= shared.clientOf(current.incoming)
  return current.client
}
