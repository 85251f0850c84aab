import ipaddr from 'ipaddr.js'

/**
 * How far inside an address lies: `public` belongs to the internet, `private` to this machine, its network or nobody,
 * `forbidden` to what hands credentials of a machine to whoever asks from inside it.
 */
export type AddressRange = 'public' | 'private' | 'forbidden'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Addresses of metadata services beyond the link-local ones, which are all forbidden. */
const metadataAddresses: ReadonlySet<string> = new Set([
  '100.100.100.200', // Alibaba Cloud
  '168.63.129.16', // Azure, the host of a machine
  '192.0.0.192', // Oracle Cloud, classic
  'fd00:42::42', // Scaleway
  'fd00:c1::a9fe:a9fe', // Oracle Cloud
  'fd00:ec2::254', // Amazon
  'fd20:ce::254', // Google Cloud
])

/** What carries an IPv4 address inside leads there, wherever else it is said to lead. */
const transparent: ReadonlySet<string> = new Set(['ipv4Mapped', 'rfc6052', '6to4'])
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
/** Its translators may write the address at one of several places. @see RFC 8215 */
const localTranslation = ipaddr.IPv6.parseCIDR('64:ff9b:1::/48')

/**
 * Where an address lies, with what it carries inside: mapped and translated forms are read as well.
 *
 * @param address  IPv4 or IPv6, with or without a zone; what is neither is `forbidden`
 * @see https://www.iana.org/assignments/iana-ipv6-special-registry
 */
export function rangeOf(address: string): AddressRange {
  const bare = address.replace(/%.*$/, '')
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return rangeOfV4(ipaddr.IPv4.parse(bare))
  if (ipaddr.IPv6.isValid(bare)) return rangeOfV6(ipaddr.IPv6.parse(bare))
  return 'forbidden'
}

function rangeOfV4(address: ipaddr.IPv4): AddressRange {
  const range = address.range()
  if (range === 'linkLocal' || metadataAddresses.has(address.toString())) return 'forbidden'
  return range === 'unicast' ? 'public' : 'private'
}

function rangeOfV6(address: ipaddr.IPv6): AddressRange {
  const range = address.range()
  const inner = carried(address).map(rangeOfV4)
  const isMetadata = metadataAddresses.has(address.toRFC5952String())
  if (range === 'linkLocal' || isMetadata || inner.includes('forbidden')) return 'forbidden'
  if (transparent.has(range) && !address.match(localTranslation)) return inner[0]!
  return range === 'unicast' && address.match(globalUnicast) && !inner.includes('private')
    ? 'public'
    : 'private'
}

/** The IPv4 addresses that an IPv6 address may stand for. */
function carried(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const { parts } = address
  const at = (first: number) => v4(parts[first]!, parts[first + 1]!)
  const range = address.range() as string
  if (address.match(localTranslation)) return translated(address)
  if (range === '6to4') return [at(1)]
  // The server as it is, the client with each bit turned over. @see RFC 4380 section 4
  if (range === 'teredo') return [at(2), v4(parts[6]! ^ 0xffff, parts[7]! ^ 0xffff)]
  const isEmbedded = ['ipv4Mapped', 'rfc6145', 'rfc6052'].includes(range)
  const isCompatible = parts.slice(0, 6).every(part => part === 0) && range === 'unicast'
  // @see RFC 5214 section 6.1
  const isIsatap = (parts[4]! & 0xfdff) === 0 && parts[5] === 0x5efe
  return isEmbedded || isCompatible || isIsatap ? [at(6)] : []
}

/** The three places where a prefix of 48, 64 or 96 bits puts an address. @see RFC 6052 section 2.2 */
function translated(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const bytes = address.toByteArray()
  return [
    [6, 7, 9, 10],
    [9, 10, 11, 12],
    [12, 13, 14, 15],
  ].map(places => new ipaddr.IPv4(places.map(place => bytes[place]!)))
}

function v4(high: number, low: number): ipaddr.IPv4 {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff])
}

/** An address as it is compared with a network: an IPv4 address in its own form. */
export function plainAddress(address: string): Address {
  return ipaddr.process(address.replace(/%.*$/, ''))
}

/** Whether an address lies in a network; `bits` of another family never do. */
export function isWithin(address: Address, [start, bits]: [Address, number]): boolean {
  return address.kind() === start.kind() && address.match(start, bits)
}

/** A network, or one address as a network of its own. */
export function networkOf(text: string): [Address, number] {
  if (text.includes('/')) {
    const [start, bits] = ipaddr.parseCIDR(text)
    const isMapped = start instanceof ipaddr.IPv6 && start.isIPv4MappedAddress() && bits >= 96
    return isMapped ? [start.toIPv4Address(), bits - 96] : [start, bits]
  }
  const address = plainAddress(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
