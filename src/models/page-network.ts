import { isIP } from 'node:net'
import { rangeOf } from './address-range.ts'
import { type Destination, destinationOf, normalizeHost } from './endpoint-guard.ts'
import { type OutboundNetwork, openOutboundNetwork, type ResolveHost, systemResolve } from './outbound.ts'

/** Thrown for a page at an address that the command line must not read. The hint names what the user can do. */
export class PageAddressRefused extends Error {
  override readonly name = 'PageAddressRefused'

  constructor(
    { host }: Destination,
    readonly range: 'private' | 'forbidden',
  ) {
    super(
      range === 'private'
        ? `${host} has a private address; to read pages of your own network, add --allow-private`
        : `${host} has a link-local address, or that of a cloud's metadata service, which is never read`,
    )
  }
}

/** Connections of the command line to web servers. */
export interface PageNetwork extends Pick<OutboundNetwork, 'send' | 'close'> {
  /**
   * Returns the addresses of the host of a URL.
   *
   * @throws PageAddressRefused
   */
  resolve(url: URL): Promise<readonly string[]>
}

/**
 * Opens connections for pages that the user names and for pages that they link to. Refuses link-local addresses and
 * metadata services, and private addresses by default. Every address is checked when a connection is opened.
 *
 * @see docs/decisions/0062-web-sources.md
 */
export function openPageNetwork({
  allowsPrivate,
  resolve = systemResolve,
}: {
  allowsPrivate: boolean
  resolve?: ResolveHost
}): PageNetwork {
  const check = (destination: Destination, addresses: readonly string[]) => {
    for (const address of addresses) {
      const range = rangeOf(address)
      if (range === 'forbidden' || (range === 'private' && !allowsPrivate))
        throw new PageAddressRefused(destination, range)
    }
  }
  const network = openOutboundNetwork({ guard: { check, resolutionFailure: (_, cause) => cause }, resolve })
  return {
    send: network.send,
    close: network.close,
    async resolve(url) {
      const host = normalizeHost(url.hostname)
      const addresses = isIP(host) ? [host] : await resolve(host)
      check(destinationOf(url), addresses)
      return addresses
    },
  }
}
