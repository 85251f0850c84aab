import { isIP } from 'node:net'
import { isLoopback } from '../base/loopback.ts'
import { rangeOf } from './address-range.ts'
import { normalizeHost } from './endpoint-guard.ts'

/** Returns true if the name or IP address of a host belongs to this machine or its network. Does not resolve names. */
export function isLocalEndpoint({ hostname }: Pick<URL, 'hostname'>): boolean {
  const host = normalizeHost(hostname)
  if (isIP(host)) return rangeOf(host) === 'private'
  return isLoopback(host) || !host.includes('.') || /\.(?:local|lan|internal|home\.arpa)$/.test(host)
}
