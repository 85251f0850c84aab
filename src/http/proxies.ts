import { inNetworks, plainAddress, subscriberOf } from './addresses.ts'
import { isHost } from './request-head.ts'

/** Proxies whose forwarding headers are trusted: none, every peer, or a list of addresses and CIDRs. */
export type TrustedProxies = boolean | readonly string[]

/** Parts of a request that proxies may set. Absent headers are null. */
export interface Forwarded {
  /** IP address of the remote end of the connection. */
  readonly address: string
  readonly encrypted: boolean
  readonly host: string | null
  /** @param name  in lower case */
  header(name: string): string | null
}

/** Scheme and host that the client connected to. */
export interface Reached {
  readonly encrypted: boolean
  readonly host: string | null
}

type Trusts = (address: string) => boolean

const nobody: Trusts = () => false
const anybody: Trusts = () => true

/**
 * Derives facts about a client from the forwarding headers of trusted proxies.
 *
 * A forwarding header has one entry per proxy, the nearest last. Entries to the left of the first untrusted
 * one may be forged by the client.
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
   * Returns the address of the client, an IPv6 address as its /64: the right-most untrusted hop, or the
   * left-most if all are trusted. The search stops before an entry that is not an address. Empty for requests
   * of this process.
   */
  clientOf(request: Forwarded): string {
    const peer = plainAddress(request.address) ?? request.address
    const client = this.#trustsAny && this.#trustsPeer(peer) ? this.#hopBefore(peer, request) : peer
    return subscriberOf(client)
  }

  /**
   * Returns the scheme and host that the client used: as reported by a trusted proxy, otherwise those of the
   * request.
   */
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

/** Returns true for a request with a header that proxies set. */
export function isForwarded(request: Pick<Forwarded, 'header'>): boolean {
  return forwardingHeaders.some(name => request.header(name) !== null)
}

/** Returns the address of an entry, which may include a port. */
function addressOf(entry: string): string | undefined {
  const text = entry.trim()
  const withPort = /^\[([^\]]+)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(text)
  return plainAddress(withPort?.[1] ?? withPort?.[2] ?? text)
}

function lastOf(list: string | null): string {
  return list === null ? '' : list.slice(list.lastIndexOf(',') + 1).trim()
}
