import { inNetworks, plainAddress, subscriberOf } from './addresses.ts'
import { isHost } from './request-head.ts'

/** Whose forwarding headers are believed: nobody's, those of whoever connects, or those of addresses and CIDRs. */
export type TrustedProxies = boolean | readonly string[]

/** What a proxy may tell of a request. Absent headers are null. */
export interface Forwarded {
  /** IP address of the other end of the connection. */
  readonly address: string
  readonly encrypted: boolean
  readonly host: string | null
  /** @param name  in lower case */
  header(name: string): string | null
}

/** The scheme and host that a client spoke to. */
export interface Reached {
  readonly encrypted: boolean
  readonly host: string | null
}

type Trusts = (address: string) => boolean

const nobody: Trusts = () => false
const anybody: Trusts = () => true

/**
 * What is known of a client through the proxies before this runtime.
 *
 * A forwarding header is one entry per proxy, the nearest last; what stands left of the first entry that no trusted
 * proxy wrote is the client's own invention.
 *
 * @see docs/signing-in.md#behind-a-proxy
 */
export class Proxies {
  readonly #trustsPeer: Trusts
  readonly #trustsHop: Trusts
  readonly #trustsAny: boolean

  constructor(trusted: TrustedProxies) {
    const listed = typeof trusted === 'boolean' ? nobody : inNetworks(trusted)
    this.#trustsPeer = trusted === true ? anybody : listed
    this.#trustsHop = listed
    this.#trustsAny = trusted !== false
  }

  /**
   * The address of the client, an IPv6 one as its /64: the right-most hop that is not trusted, or where all are, the
   * left-most. An entry that is no address ends the walk before it. Empty for a request of this process.
   */
  clientOf(request: Forwarded): string {
    const peer = plainAddress(request.address) ?? request.address
    const client = this.#trustsAny && this.#trustsPeer(peer) ? this.#hopBefore(peer, request) : peer
    return subscriberOf(client)
  }

  /** Scheme and host as the client wrote them, where a trusted proxy tells; else those of the request. */
  reachedBy(request: Forwarded): Reached {
    const { encrypted, host, address } = request
    if (!this.#trustsAny || !this.#trustsPeer(plainAddress(address) ?? address)) return { encrypted, host }
    const scheme = lastOf(request.header('x-forwarded-proto')).toLowerCase()
    const name = lastOf(request.header('x-forwarded-host'))
    return {
      encrypted: scheme === 'https' || (scheme !== 'http' && encrypted),
      host: isHost(name) ? name : host,
    }
  }

  #hopBefore(peer: string, request: Forwarded): string {
    const hops = request.header('x-forwarded-for')
    if (hops === null) return addressOf(request.header('x-real-ip') ?? '') ?? peer
    let client = peer
    for (const entry of hops.split(',').reverse()) {
      const hop = addressOf(entry)
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

/** A request that says of itself that it passed a proxy. */
export function isForwarded(request: Pick<Forwarded, 'header'>): boolean {
  return forwardingHeaders.some(name => request.header(name) !== null)
}

/** The address of an entry, which may carry a port. */
function addressOf(entry: string): string | undefined {
  const text = entry.trim()
  const withPort = /^\[([^\]]+)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(text)
  return plainAddress(withPort?.[1] ?? withPort?.[2] ?? text)
}

function lastOf(list: string | null): string {
  return list === null ? '' : list.slice(list.lastIndexOf(',') + 1).trim()
}
