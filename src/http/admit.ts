import { WbError } from '../contract/errors.ts'
import { tooLarge } from './body.ts'
import type { Exchange, Shared } from './exchange.ts'
import { isForwarded } from './proxies.ts'
import type { Ration } from './rate-limit.ts'

/** Says that the process lives, draining or not. */
const livenessPath = '/healthz'

/**
 * What is decided before anybody asks who the caller is.
 *
 * @throws draining, rate_limited, forbidden_origin, payload_too_large, or the refusal of the path
 */
export function admit(
  shared: Shared,
  current: Exchange,
  ration: Ration | undefined,
  bodyLimitBytes: number,
): void {
  const { incoming } = current
  if (shared.isDraining() && incoming.path !== livenessPath)
    throw new WbError('draining', 'the runtime is shutting down', { headers: { connection: 'close' } })
  if (incoming.isFromOutside) {
    if (ration) takeToken(shared, current, ration)
    const refused = shared.originRule(incoming)
    if (refused) throw refused
  }
  const refused = shared.refusalOf?.(incoming.path)
  if (refused) throw refused
  if (Number(incoming.header('content-length')) > bodyLimitBytes) throw tooLarge(bodyLimitBytes)
}

/** @throws rate_limited */
function takeToken(shared: Shared, current: Exchange, ration: Ration): void {
  if (!shared.rateLimit) return
  const { incoming, headers } = current
  const client = clientOf(shared, current)
  shared.rateLimit.take({ ration, client, isForwarded: isForwarded(incoming) }, headers)
}

export function clientOf(shared: Shared, current: Exchange): string {
  current.client ??= shared.clientOf(current.incoming)
  return current.client
}
