import { createNetworkCheck, normalizeAddress, subscriberRange } from './addresses.ts'
import { isHostHeader } from './request-head.ts'

/** Proxies whose forwarding headers are trusted: none, every peer, or a list of addresses and CIDRs. */
export type TrustedProxies = boolean | readonly string[]

/** Parts of a request that proxies may set. Absent headers are null. */
export interface ForwardedRequest {
  /** IP address of the remote end of the connection. */
  readonly address: string
  readonly encrypted: boolean
  readonly host: string | null
  /** @param name  in lower case */
  header(name: string): string | null
}

/** Scheme and host that the client connected to. */
export interface ClientTarget {
  readonly encrypted: boolean
  readonly host: string | null
}

type TrustCheck = (address: string) => boolean

const trustNone: TrustCheck = () => false
const trustAll: TrustCheck = () => true

/**
 * Derives facts about a client from the forwarding headers of trusted proxies.
 *
 * A forwarding header has one entry per proxy, the nearest last. Entries to the left of the first untrusted
 * one may be forged by the client.
 *
 * @see docs/signing-in.md#behind-a-proxy
 */
export class ProxyResolver {
  readonly #trustsPeer: TrustCheck
  readonly #trustsHop: TrustCheck
  readonly #trustsAny: boolean

  constructor(trusted: TrustedProxies) {
    const listed = typeof trusted === 'boolean' ? trustNone : createNetworkCheck(trusted)
    this.#trustsPeer = trusted === true ? trustAll : listed
    this.#trustsHop = listed
    this.#trustsAny = trusted !== false
  }

  /**
   * Returns the address of the client, an IPv6 address as its /64: the right-most untrusted hop, or the
   * left-most if all are trusted. The search stops before an entry that is not an address. Empty for requests
   * of this process.
   */
  clientOf(request: ForwardedRequest): string {
    const peer = normalizeAddress(request.address) ?? request.address
    const client = this.#trustsAny && this.#trustsPeer(peer) ? this.#hopBefore(peer, request) : peer
    return subscriberRange(client)
  }

  /**
   * Returns the scheme and host that the client used: as reported by a trusted proxy, otherwise those of the
   * request.
   */
  reachedBy(request: ForwardedRequest): ClientTarget {
    const { encrypted, host, address } = request
    if (!this.#trustsAny || !this.#trustsPeer(normalizeAddress(address) ?? address))
      return { encrypted, host }
    const scheme = lastEntry(request.header('x-forwarded-proto')).toLowerCase()
    const name = lastEntry(request.header('x-forwarded-host'))
    return {
      encrypted: scheme === 'https' || (scheme !== 'http' && encrypted),
      host: isHostHeader(name) ? name : host,
    }
  }

  #hopBefore(peer: string, request: ForwardedRequest): string {
    const hops = request.header('x-forwarded-for')
    if (hops === null) return entryAddress(request.header('x-real-ip') ?? '') ?? peer
    let client = peer
    for (const entry of hops.split(',').reverse()) {
      const hop = entryAddress(entry)
      if (hop === undefined) return client
      client = hop
      if (!this.#trustsHop(hop)) return client
    }
    return client
  }
}

const forwardingHeaders = [
  'x-forwarded-for',
  'x-real-ip',
  'forwarded',
  'x-forwarded-host',
  'x-forwarded-proto',
  'via',
] as const

/** Returns true for a request with a header that proxies set. */
export function isForwarded(request: Pick<ForwardedRequest, 'header'>): boolean {
  return forwardingHeaders.some(name => request.header(name) !== null)
}

/** Returns the address of an entry, which may include a port. */
function entryAddress(entry: string): string | undefined {
  const text = entry.trim()
  const withPort = /^\[([^\]]+)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(text)
  return normalizeAddress(withPort?.[1] ?? withPort?.[2] ?? text)
}

function lastEntry(list: string | null): string {
  return list === null ? '' : list.slice(list.lastIndexOf(',') + 1).trim()
}
