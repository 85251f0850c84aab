import { clientRange, createNetworkCheck, normalizeAddress } from './addresses.ts'
import { isHostHeader } from './request-head.ts'

/** Proxies whose forwarding headers are trusted: none, all, or a list of addresses and CIDR ranges. */
export type TrustedProxies = boolean | readonly string[]

/** Parts of a request from which the client behind a proxy is derived. Absent headers are null. */
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
 * Finds the address of a client, and the scheme and host that it used, in the forwarding headers of trusted
 * proxies.
 *
 * Each proxy appends one entry to a forwarding header, so the nearest proxy is last. The client can forge all
 * entries before the last entry that is not a trusted proxy.
 *
 * @see docs/signing-in.md#behind-a-proxy
 */
export class ProxyResolver {
  readonly #trustsPeer: TrustCheck
  readonly #trustsHop: TrustCheck
  /** True if the headers of at least one proxy are trusted. */
  readonly trustsAny: boolean

  constructor(trusted: TrustedProxies) {
    const isListed = typeof trusted === 'boolean' ? trustNone : createNetworkCheck(trusted)
    this.#trustsPeer = trusted === true ? trustAll : isListed
    this.#trustsHop = isListed
    this.trustsAny = typeof trusted === 'boolean' ? trusted : trusted.length > 0
  }

  /**
   * Returns the address of the client, or its /64 network for IPv6; empty for requests from this process.
   *
   * The client is the last entry of the forwarding header that is not a trusted proxy, or the first entry if all are
   * trusted. The search, from last to first, stops at an entry that is not an IP address.
   */
  clientAddress(request: ForwardedRequest): string {
    const peer = normalizeAddress(request.address) ?? request.address
    const client = this.trustsAny && this.#trustsPeer(peer) ? this.#hopBefore(peer, request) : peer
    return clientRange(client)
  }

  /**
   * Returns the scheme and host that the client used, as reported by a trusted proxy. Without one, returns those of
   * the request.
   */
  targetOf(request: ForwardedRequest): ClientTarget {
    const { encrypted, host, address } = request
    if (!this.trustsAny || !this.#trustsPeer(normalizeAddress(address) ?? address)) return { encrypted, host }
    const scheme = lastEntry(request.header('x-forwarded-proto')).toLowerCase()
    const name = lastEntry(request.header('x-forwarded-host'))
    return {
      encrypted: scheme === 'https' || (scheme !== 'http' && encrypted),
      host: isHostHeader(name) ? name : host,
    }
  }

  #hopBefore(peer: string, request: ForwardedRequest): string {
    const forwardedFor = request.header('x-forwarded-for')
    if (forwardedFor === null) return entryAddress(request.header('x-real-ip') ?? '') ?? peer
    let client = peer
    for (const entry of forwardedFor.split(',').reverse()) {
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

/** Returns true if a request has a forwarding header, such as `X-Forwarded-For`. A direct client can send one, too. */
export function isForwarded(request: Pick<ForwardedRequest, 'header'>): boolean {
  return forwardingHeaders.some(name => request.header(name) !== null)
}

/** Returns the IP address in a header entry, which can have a port. Returns undefined for other entries. */
function entryAddress(entry: string): string | undefined {
  const text = entry.trim()
  const withPort = /^\[([^\]]+)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(text)
  return normalizeAddress(withPort?.[1] ?? withPort?.[2] ?? text)
}

function lastEntry(list: string | null): string {
  return list === null ? '' : list.slice(list.lastIndexOf(',') + 1).trim()
}
