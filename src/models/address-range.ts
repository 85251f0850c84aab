import ipaddr from 'ipaddr.js'

/**
 * Range of an address. `public` addresses are on the internet. `private` addresses are on this machine, on its network,
 * or unassigned. `forbidden` addresses can belong to services that return this machine's credentials to any program
 * on it, such as the metadata services of cloud providers.
 */
export type AddressRange = 'public' | 'private' | 'forbidden'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Position of an IPv4 address that is embedded in an IPv6 address. */
interface EmbeddedAddress {
  /** Indexes of its four bytes in the IPv6 address. */
  readonly byteIndexes: readonly number[]
  /** True if every bit is inverted. */
  readonly isInverted?: true
}

/** A network and its range. For an address in several networks, the strictest range applies. */
export interface KnownNetwork {
  readonly network: string
  /** `embedded` means the range of the embedded IPv4 address. */
  readonly range: AddressRange | 'embedded'
  readonly embeddedAddresses: readonly EmbeddedAddress[]
}

/** Ranges of IPv4 networks. @see https://www.iana.org/assignments/iana-ipv4-special-registry */
const networksV4: Readonly<Record<string, AddressRange>> = {
  '0.0.0.0/0': 'public',
  '0.0.0.0/8': 'private', // this network, RFC 791
  '10.0.0.0/8': 'private', // RFC 1918
  '100.64.0.0/10': 'private', // carrier-grade NAT, RFC 6598
  '127.0.0.0/8': 'private', // loopback, RFC 1122
  '169.254.0.0/16': 'forbidden', // link-local, RFC 3927; metadata services of most clouds
  '172.16.0.0/12': 'private', // RFC 1918
  '192.0.0.0/24': 'private', // protocol assignments, RFC 6890
  '192.0.2.0/24': 'private', // documentation, RFC 5737
  '192.31.196.0/24': 'private', // AS112, RFC 7535
  '192.52.193.0/24': 'private', // AMT, RFC 7450
  '192.88.99.0/24': 'private', // 6to4 relays, RFC 7526
  '192.168.0.0/16': 'private', // RFC 1918
  '192.175.48.0/24': 'private', // AS112, RFC 7534
  '198.18.0.0/15': 'private', // benchmarking, RFC 2544
  '198.51.100.0/24': 'private', // documentation, RFC 5737
  '203.0.113.0/24': 'private', // documentation, RFC 5737
  '224.0.0.0/4': 'private', // multicast, RFC 1112
  '240.0.0.0/4': 'private', // reserved, and broadcast, RFC 1112 and 919
  '100.100.100.200/32': 'forbidden', // metadata, Alibaba Cloud
  '168.63.129.16/32': 'forbidden', // metadata, Azure
  '192.0.0.192/32': 'forbidden', // metadata, Oracle Cloud Classic
}

/**
 * Ranges of IPv6 networks. Addresses outside these networks are private: unique local, site-local, multicast,
 * discard-only and unassigned addresses.
 *
 * @see https://www.iana.org/assignments/iana-ipv6-special-registry
 */
const networksV6: Readonly<Record<string, AddressRange>> = {
  '2000::/3': 'public', // global unicast, RFC 4291
  '2001::/23': 'private', // protocol assignments: benchmarking, ORCHID, AMT and more, RFC 2928
  '2001:db8::/32': 'private', // documentation, RFC 3849
  '2620:4f:8000::/48': 'private', // AS112, RFC 7534
  '3fff::/20': 'private', // documentation, RFC 9637
  'fe80::/10': 'forbidden', // link-local, RFC 4291
  'fd00:42::42/128': 'forbidden', // metadata, Scaleway
  'fd00:c1::a9fe:a9fe/128': 'forbidden', // metadata, Oracle Cloud
  'fd00:ec2::254/128': 'forbidden', // metadata, Amazon
  'fd20:ce::254/128': 'forbidden', // metadata, Google Cloud
}

const lastFourBytes: EmbeddedAddress = { byteIndexes: [12, 13, 14, 15] }

const networksWithEmbedded: readonly KnownNetwork[] = [
  { network: '::ffff:0:0/96', range: 'embedded', embeddedAddresses: [lastFourBytes] }, // IPv4-mapped, RFC 4291
  { network: '64:ff9b::/96', range: 'embedded', embeddedAddresses: [lastFourBytes] }, // NAT64, RFC 6052
  { network: '2002::/16', range: 'embedded', embeddedAddresses: [{ byteIndexes: [2, 3, 4, 5] }] }, // 6to4, RFC 3056
  { network: '::/96', range: 'private', embeddedAddresses: [lastFourBytes] }, // IPv4-compatible, RFC 4291
  { network: '::ffff:0:0:0/96', range: 'private', embeddedAddresses: [lastFourBytes] }, // IPv4-translated, RFC 2765
  // Local-use NAT64, RFC 8215. The prefix can have any of the lengths in the list.
  {
    network: '64:ff9b:1::/48',
    range: 'private',
    embeddedAddresses: [48, 56, 64, 96].map(embeddedAfterPrefix),
  },
  // Teredo, RFC 4380 section 4. Contains a server's address, and a client's address with every bit inverted.
  {
    network: '2001::/32',
    range: 'private',
    embeddedAddresses: [{ byteIndexes: [4, 5, 6, 7] }, { ...lastFourBytes, isInverted: true }],
  },
]

/**
 * Returns the position of an IPv4 address that follows a prefix of the given length. Byte 8 is not part of the address.
 *
 * @see RFC 6052 section 2.2
 */
function embeddedAfterPrefix(prefixBits: number): EmbeddedAddress {
  const bytes = [4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15]
  return { byteIndexes: bytes.filter(byte => byte >= prefixBits / 8).slice(0, 4) }
}

/** All networks whose range is known. */
export const knownNetworks: readonly KnownNetwork[] = [
  ...Object.entries({ ...networksV4, ...networksV6 }).map(([network, range]) => ({
    network,
    range,
    embeddedAddresses: [],
  })),
  ...networksWithEmbedded,
]

/** Returns a function like {@link rangeOf} that uses the given networks. */
export function createRangeFinder(networks: readonly KnownNetwork[]): (address: string) => AddressRange {
  const parsed = networks.map(entry => ({ ...entry, cidr: ipaddr.parseCIDR(entry.network) }))

  function find(address: Address): AddressRange {
    const matching = parsed.filter(({ cidr }) => isInNetwork(address, cidr))
    const bytes = address.toByteArray()
    const embeddedRanges = [
      ...matching.flatMap(({ embeddedAddresses }) => embeddedAddresses),
      ...isatapAddress(bytes),
    ].map(embedded => find(new ipaddr.IPv4(octetsOf(bytes, embedded))))
    const ranges = matching.map(({ range }) => range)
    if ([...ranges, ...embeddedRanges].includes('forbidden')) return 'forbidden'
    if (ranges.includes('embedded')) return embeddedRanges[0]!
    if ([...ranges, ...embeddedRanges].includes('private')) return 'private'
    return ranges.includes('public') ? 'public' : 'private'
  }

  return address => {
    const addressWithoutZone = address.replace(/%.*$/, '')
    if (ipaddr.IPv4.isValidFourPartDecimal(addressWithoutZone))
      return find(ipaddr.IPv4.parse(addressWithoutZone))
    return ipaddr.IPv6.isValid(addressWithoutZone) ? find(parseV6(addressWithoutZone)) : 'forbidden'
  }
}

/**
 * Classifies an address, including any IPv4 addresses that are embedded in it.
 *
 * @param address  IPv4 or IPv6, with or without a zone; any other string is `forbidden`
 */
export const rangeOf = createRangeFinder(knownNetworks)

/** Parses an IPv6 address. Parses `::1.2.3.4` itself, because the library reads it as `::ffff:1.2.3.4`. */
function parseV6(address: string): ipaddr.IPv6 {
  const isCompatible = /^::\d+\.[\d.]+$/.test(address)
  if (!isCompatible) return ipaddr.IPv6.parse(address)
  return new ipaddr.IPv6([...Array<number>(12).fill(0), ...ipaddr.IPv4.parse(address.slice(2)).octets])
}

function octetsOf(bytes: readonly number[], { byteIndexes, isInverted }: EmbeddedAddress): number[] {
  return byteIndexes.map(index => (isInverted ? bytes[index]! ^ 0xff : bytes[index]!))
}

/**
 * Returns the position of the IPv4 address in an ISATAP interface identifier. Addresses in any network can have such an
 * identifier. Returns an empty array for other addresses.
 *
 * @see RFC 5214 section 6.1
 */
function isatapAddress(bytes: readonly number[]): EmbeddedAddress[] {
  const [first = -1, ...rest] = bytes.slice(8, 12)
  const isIsatap = (first & 0xfd) === 0 && rest.join() === [0, 0x5e, 0xfe].join()
  return isIsatap ? [lastFourBytes] : []
}

/** Parses an address. Converts an IPv4-mapped IPv6 address to IPv4, so that it can be compared with networks. */
export function parseAddress(address: string): Address {
  return ipaddr.process(address.replace(/%.*$/, ''))
}

/** Returns true if an address is in a network. Networks of the other address family never match. */
export function isInNetwork(address: Address, [start, bits]: [Address, number]): boolean {
  return address.kind() === start.kind() && address.match(start, bits)
}

/** Parses a network in CIDR notation. A string without a slash is a network with one address. */
export function parseNetwork(text: string): [Address, number] {
  if (text.includes('/')) {
    const [start, bits] = ipaddr.parseCIDR(text)
    const isMapped = start instanceof ipaddr.IPv6 && start.isIPv4MappedAddress() && bits >= 96
    return isMapped ? [start.toIPv4Address(), bits - 96] : [start, bits]
  }
  const address = parseAddress(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
