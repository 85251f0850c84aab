import ipaddr from 'ipaddr.js'

/**
 * Range of an address. `public` is reachable on the internet. `private` is this machine, its network, or
 * unassigned. `forbidden` gives out the credentials of a machine to anything that connects from inside it,
 * such as a metadata service.
 */
export type AddressRange = 'public' | 'private' | 'forbidden'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Position of an IPv4 address that is embedded in an IPv6 address. */
interface EmbeddedAddress {
  /** Indexes of the bytes of the IPv4 address. */
  readonly places: readonly number[]
  /** True if every bit is inverted. */
  readonly isInverted?: true
}

/** A network and its range. For an address in several networks, the strictest range applies. */
export interface KnownNetwork {
  readonly network: string
  /** `carried` means the range of the embedded IPv4 address. */
  readonly range: AddressRange | 'carried'
  readonly carries: readonly EmbeddedAddress[]
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
 * Ranges of IPv6 networks. Addresses outside all of them are private: unique local, site-local, multicast,
 * discard-only and unassigned ones.
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

const lastFour: EmbeddedAddress = { places: [12, 13, 14, 15] }

const carriers: readonly KnownNetwork[] = [
  { network: '::ffff:0:0/96', range: 'carried', carries: [lastFour] }, // IPv4-mapped, RFC 4291
  { network: '64:ff9b::/96', range: 'carried', carries: [lastFour] }, // NAT64, RFC 6052
  { network: '2002::/16', range: 'carried', carries: [{ places: [2, 3, 4, 5] }] }, // 6to4, RFC 3056
  { network: '::/96', range: 'private', carries: [lastFour] }, // IPv4-compatible, RFC 4291
  { network: '::ffff:0:0:0/96', range: 'private', carries: [lastFour] }, // IPv4-translated, RFC 2765
  // Local-use NAT64, whose prefix can have any of these lengths, RFC 8215.
  { network: '64:ff9b:1::/48', range: 'private', carries: [48, 56, 64, 96].map(embeddedAfter) },
  // Teredo: the server as it is, the client with every bit flipped, RFC 4380 section 4.
  {
    network: '2001::/32',
    range: 'private',
    carries: [{ places: [4, 5, 6, 7] }, { ...lastFour, isInverted: true }],
  },
]

/**
 * Returns the position of an IPv4 address after a prefix of this length. Byte 8 is always skipped.
 *
 * @see RFC 6052 section 2.2
 */
function embeddedAfter(prefixBits: number): EmbeddedAddress {
  const bytes = [4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15]
  return { places: bytes.filter(byte => byte >= prefixBits / 8).slice(0, 4) }
}

/** All networks with a range. */
export const knownNetworks: readonly KnownNetwork[] = [
  ...Object.entries({ ...networksV4, ...networksV6 }).map(([network, range]) => ({
    network,
    range,
    carries: [],
  })),
  ...carriers,
]

/** Returns a function that classifies addresses by the given networks, like {@link rangeOf}. */
export function createRangeFinder(networks: readonly KnownNetwork[]): (address: string) => AddressRange {
  const parsed = networks.map(known => ({ ...known, cidr: ipaddr.parseCIDR(known.network) }))

  function find(address: Address): AddressRange {
    const holding = parsed.filter(({ cidr }) => isInNetwork(address, cidr))
    const bytes = address.toByteArray()
    const inner = [...holding.flatMap(({ carries }) => carries), ...isatap(bytes)].map(carried =>
      find(new ipaddr.IPv4(octetsOf(bytes, carried))),
    )
    const ranges = holding.map(({ range }) => range)
    if ([...ranges, ...inner].includes('forbidden')) return 'forbidden'
    if (ranges.includes('carried')) return inner[0]!
    if ([...ranges, ...inner].includes('private')) return 'private'
    return ranges.includes('public') ? 'public' : 'private'
  }

  return address => {
    const bare = address.replace(/%.*$/, '')
    if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return find(ipaddr.IPv4.parse(bare))
    return ipaddr.IPv6.isValid(bare) ? find(parseV6(bare)) : 'forbidden'
  }
}

/**
 * Classifies an address, including any IPv4 addresses that are embedded in it.
 *
 * @param address  IPv4 or IPv6, with or without a zone; any other text is `forbidden`
 */
export const rangeOf = createRangeFinder(knownNetworks)

/** Parses an IPv6 address. Works around the library, which reads `::1.2.3.4` as `::ffff:1.2.3.4`. */
function parseV6(address: string): ipaddr.IPv6 {
  const isCompatible = /^::\d+\.[\d.]+$/.test(address)
  if (!isCompatible) return ipaddr.IPv6.parse(address)
  return new ipaddr.IPv6([...Array<number>(12).fill(0), ...ipaddr.IPv4.parse(address.slice(2)).octets])
}

function octetsOf(bytes: readonly number[], { places, isInverted }: EmbeddedAddress): number[] {
  return places.map(place => (isInverted ? bytes[place]! ^ 0xff : bytes[place]!))
}

/**
 * Returns the position of an IPv4 address in the interface identifier. Any network can have such identifiers.
 *
 * @see RFC 5214 section 6.1
 */
function isatap(bytes: readonly number[]): EmbeddedAddress[] {
  const [first = -1, ...rest] = bytes.slice(8, 12)
  const isMarked = (first & 0xfd) === 0 && rest.join() === [0, 0x5e, 0xfe].join()
  return isMarked ? [lastFour] : []
}

/** Parses an address. An IPv4-mapped IPv6 address becomes IPv4, so that it can be compared with networks. */
export function parseAddress(address: string): Address {
  return ipaddr.process(address.replace(/%.*$/, ''))
}

/** Returns true if an address is in a network. Networks of the other address family never match. */
export function isInNetwork(address: Address, [start, bits]: [Address, number]): boolean {
  return address.kind() === start.kind() && address.match(start, bits)
}

/** Parses a network in CIDR notation, or a single address as a network of one address. */
export function parseNetwork(text: string): [Address, number] {
  if (text.includes('/')) {
    const [start, bits] = ipaddr.parseCIDR(text)
    const isMapped = start instanceof ipaddr.IPv6 && start.isIPv4MappedAddress() && bits >= 96
    return isMapped ? [start.toIPv4Address(), bits - 96] : [start, bits]
  }
  const address = parseAddress(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
