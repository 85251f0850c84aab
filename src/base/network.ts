import { isIPv6 } from 'node:net'

/**
 * What counts as one client: an IPv4 address, or the /64 of an IPv6 address, all of which one household has.
 *
 * An IPv4 address in the form of an IPv6 one is itself; what is no address stands as it is.
 *
 * @returns for IPv6 the first four groups, such as `2001:db8:0:1`
 */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const groups = groupsOf(address)
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every(group => group === 0)
  if (isMapped) return groups.slice(6).flatMap(octetsOf).join('.')
  return groups
    .slice(0, 4)
    .map(group => group.toString(16))
    .join(':')
}

/** The eight groups of a valid IPv6 address. @see RFC 4291 2.2 */
function groupsOf(address: string): number[] {
  const plain = address.replace(/%.*/, '').replace(/[\d.]+\.\d+$/, hexOf)
  const [head, tail = []] = plain.split('::').map(part => part.split(':').filter(group => group !== ''))
  const left = Array<string>(8 - head!.length - tail.length).fill('0')
  return [...head!, ...left, ...tail].map(group => Number.parseInt(group, 16))
}

/** An IPv4 address as two groups. */
function hexOf(dotted: string): string {
  return Buffer.from(dotted.split('.').map(Number)).toString('hex').replace(/^.{4}/, '$&:')
}

function octetsOf(group: number): [number, number] {
  return [group >> 8, group & 0xff]
}
