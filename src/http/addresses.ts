import { BlockList, isIPv4, isIPv6 } from 'node:net'

/**
 * Returns an IP address in canonical form: without a zone, and an IPv4-mapped IPv6 address as IPv4.
 *
 * @returns undefined if the string is not an IP address
 * @see RFC 4291 section 2.5.5.2
 */
export function normalizeAddress(text: string): string | undefined {
  if (isIPv4(text)) return text
  if (!isIPv6(text)) return undefined
  const groups = groupsOf(text)
  const isMapped = groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff
  return isMapped ? dottedIpv4(groups[6]!, groups[7]!) : groups.map(hex).join(':')
}

/**
 * Returns the address range that is assumed to belong to one client: the IPv4 address itself, or the /64 network
 * of an IPv6 address.
 *
 * @param address  normalized by {@link normalizeAddress}
 */
export function clientRange(address: string): string {
  return address.includes(':') ? `${address.split(':').slice(0, 4).join(':')}::/64` : address
}

/**
 * Returns a function that checks whether an address is in a list of addresses and CIDR ranges. The function expects
 * addresses that {@link normalizeAddress} has normalized.
 */
export function createNetworkCheck(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const network of networks) {
    const [text = '', bits] = network.split('/')
    const address = normalizeAddress(text)
    if (address === undefined) continue
    const family = familyOf(address)
    const width = family === 'ipv4' ? 32 : 128
    // The prefix length of an IPv4-mapped network includes the 96 bits before the IPv4 address.
    const mappedBits = isIPv6(text) && family === 'ipv4' ? 96 : 0
    list.addSubnet(address, bits === undefined ? width : Math.max(0, Number(bits) - mappedBits), family)
  }
  return address => list.check(address, familyOf(address))
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4'
}

/** Returns the eight 16-bit groups of an IPv6 address. */
function groupsOf(text: string): number[] {
  const [address = ''] = text.split('%')
  const hexForm = address.replace(/\d+\.\d+\.\d+\.\d+$/, ending => {
    const [a = 0, b = 0, c = 0, d = 0] = ending.split('.').map(Number)
    return `${hex(a * 256 + b)}:${hex(c * 256 + d)}`
  })
  const [before = [], after] = hexForm.split('::').map(half => (half === '' ? [] : half.split(':')))
  const zeros = after ? Array<string>(8 - before.length - after.length).fill('0') : []
  return [...before, ...zeros, ...(after ?? [])].map(group => Number.parseInt(group, 16))
}

function dottedIpv4(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

function hex(group: number): string {
  return group.toString(16)
}
