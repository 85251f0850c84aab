import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import {
  type AddressRange,
  createRangeFinder,
  knownNetworks,
  rangeOf,
} from '../../src/models/address-range.ts'

/**
 * Example addresses of each network, including the first and last ones and neighbors, written independently of the
 * table.
 */
const examples: Readonly<Record<string, Readonly<Record<string, AddressRange>>>> = {
  '0.0.0.0/0': { '1.0.0.0': 'public', '8.8.8.8': 'public', '223.255.255.255': 'public' },
  '0.0.0.0/8': { '0.0.0.0': 'private', '0.255.255.255': 'private', '1.0.0.0': 'public' },
  '10.0.0.0/8': {
    ...{
      '9.255.255.255': 'public',
      '10.0.0.0': 'private',
      '10.255.255.255': 'private',
      '11.0.0.0': 'public',
    },
  },
  '100.64.0.0/10': {
    ...{ '100.63.255.255': 'public', '100.64.0.0': 'private', '100.127.255.255': 'private' },
    '100.128.0.0': 'public',
  },
  '127.0.0.0/8': {
    ...{ '126.255.255.255': 'public', '127.0.0.0': 'private', '127.255.255.255': 'private' },
    '128.0.0.0': 'public',
  },
  '169.254.0.0/16': {
    ...{ '169.253.255.255': 'public', '169.254.0.0': 'forbidden', '169.254.255.255': 'forbidden' },
    ...{ '169.254.169.254': 'forbidden', '169.255.0.0': 'public' },
  },
  '172.16.0.0/12': {
    ...{ '172.15.255.255': 'public', '172.16.0.0': 'private', '172.31.255.255': 'private' },
    '172.32.0.0': 'public',
  },
  '192.0.0.0/24': {
    ...{
      '191.255.255.255': 'public',
      '192.0.0.0': 'private',
      '192.0.0.255': 'private',
      '192.0.1.0': 'public',
    },
  },
  '192.0.2.0/24': {
    ...{ '192.0.1.255': 'public', '192.0.2.0': 'private', '192.0.2.255': 'private', '192.0.3.0': 'public' },
  },
  '192.31.196.0/24': {
    ...{ '192.31.195.255': 'public', '192.31.196.0': 'private', '192.31.196.255': 'private' },
    '192.31.197.0': 'public',
  },
  '192.52.193.0/24': {
    ...{ '192.52.192.255': 'public', '192.52.193.0': 'private', '192.52.193.255': 'private' },
    '192.52.194.0': 'public',
  },
  '192.88.99.0/24': {
    ...{ '192.88.98.255': 'public', '192.88.99.0': 'private', '192.88.99.255': 'private' },
    '192.88.100.0': 'public',
  },
  '192.168.0.0/16': {
    ...{ '192.167.255.255': 'public', '192.168.0.0': 'private', '192.168.255.255': 'private' },
    '192.169.0.0': 'public',
  },
  '192.175.48.0/24': {
    ...{ '192.175.47.255': 'public', '192.175.48.0': 'private', '192.175.48.255': 'private' },
    '192.175.49.0': 'public',
  },
  '198.18.0.0/15': {
    ...{ '198.17.255.255': 'public', '198.18.0.0': 'private', '198.19.255.255': 'private' },
    '198.20.0.0': 'public',
  },
  '198.51.100.0/24': {
    ...{ '198.51.99.255': 'public', '198.51.100.0': 'private', '198.51.100.255': 'private' },
    '198.51.101.0': 'public',
  },
  '203.0.113.0/24': {
    ...{ '203.0.112.255': 'public', '203.0.113.0': 'private', '203.0.113.255': 'private' },
    '203.0.114.0': 'public',
  },
  '224.0.0.0/4': { '223.255.255.255': 'public', '224.0.0.0': 'private', '239.255.255.255': 'private' },
  '240.0.0.0/4': { '240.0.0.0': 'private', '255.255.255.254': 'private', '255.255.255.255': 'private' },
  '100.100.100.200/32': {
    ...{ '100.100.100.199': 'private', '100.100.100.200': 'forbidden', '100.100.100.201': 'private' },
  },
  '168.63.129.16/32': {
    ...{ '168.63.129.15': 'public', '168.63.129.16': 'forbidden', '168.63.129.17': 'public' },
  },
  '192.0.0.192/32': { '192.0.0.191': 'private', '192.0.0.192': 'forbidden', '192.0.0.193': 'private' },

  '2000::/3': {
    ...{ '1fff::1': 'private', '2000::1': 'public', '2606:4700::1111': 'public' },
    ...{ '3ffe:ffff::1': 'public', '3fff:ffff::1': 'public', '4000::1': 'private' },
  },
  '2001::/23': {
    ...{ '2000:ffff::1': 'public', '2001:1::1': 'private', '2001:2::1': 'private', '2001:3::1': 'private' },
    ...{
      '2001:10::1': 'private',
      '2001:20::1': 'private',
      '2001:30::1': 'private',
      '2001:4:112::1': 'private',
    },
    ...{ '2001:1ff:ffff::': 'private', '2001:200::1': 'public' },
  },
  '2001:db8::/32': {
    ...{ '2001:db7:ffff::1': 'public', '2001:db8::': 'private', '2001:db8:ffff::1': 'private' },
    '2001:db9::1': 'public',
  },
  '2620:4f:8000::/48': {
    ...{ '2620:4f:7fff::1': 'public', '2620:4f:8000::': 'private', '2620:4f:8000:ffff::1': 'private' },
    '2620:4f:8001::1': 'public',
  },
  '3fff::/20': {
    '3ffe:ffff::1': 'public',
    '3fff::1': 'private',
    '3fff:fff::1': 'private',
    '3fff:1000::1': 'public',
  },
  'fe80::/10': {
    ...{
      'fe7f::1': 'private',
      'fe80::1': 'forbidden',
      'fe80::1%eth0': 'forbidden',
      'febf:ffff::1': 'forbidden',
    },
    'fec0::1': 'private',
  },
  'fd00:42::42/128': { 'fd00:42::41': 'private', 'fd00:42::42': 'forbidden' },
  'fd00:c1::a9fe:a9fe/128': { 'fd00:c1::a9fe:a9fd': 'private', 'fd00:c1::a9fe:a9fe': 'forbidden' },
  'fd00:ec2::254/128': { 'fd00:ec2::253': 'private', 'fd00:ec2::254': 'forbidden' },
  'fd20:ce::254/128': { 'fd20:ce::253': 'private', 'fd20:ce::254': 'forbidden' },

  '::ffff:0:0/96': {
    ...{ '::ffff:8.8.8.8': 'public', '::ffff:10.0.0.1': 'private', '::ffff:192.168.1.1': 'private' },
    ...{ '::ffff:169.254.169.254': 'forbidden', '::ffff:223.1.1.1': 'public', '::fffe:8.8.8.8': 'private' },
  },
  '64:ff9b::/96': {
    ...{
      '64:ff9b::8.8.8.8': 'public',
      '64:ff9b::10.0.0.1': 'private',
      '64:ff9b::169.254.169.254': 'forbidden',
    },
    ...{ '64:ff9b::223.1.1.1': 'public', '64:ff9b::1:8.8.8.8': 'private' },
  },
  '2002::/16': {
    ...{ '2002:808:808::1': 'public', '2002:a00:1::1': 'private', '2002:c0a8:101::1': 'private' },
    ...{ '2002:a9fe:a9fe::1': 'forbidden', '2002:df01:101::1': 'public', '2003::1': 'public' },
  },
  '::/96': {
    ...{ '::': 'private', '::1': 'private', '::8.8.8.8': 'private', '::10.0.0.1': 'private' },
    ...{ '::169.254.169.254': 'forbidden', '::168.63.129.16': 'forbidden' },
  },
  '::ffff:0:0:0/96': {
    ...{
      '::ffff:0:8.8.8.8': 'private',
      '::ffff:0:10.0.0.1': 'private',
      '::ffff:0:169.254.169.254': 'forbidden',
    },
    '::ffff:0:168.63.129.16': 'forbidden',
  },
  // Metadata services behind prefixes of 48, 56, 64 and 96 bits; byte 8 is empty.
  '64:ff9b:1::/48': {
    ...{
      '64:ff9b:1::8.8.8.8': 'private',
      '64:ff9b:1::10.0.0.1': 'private',
      '64:ff9b:1:a00:0:100::': 'private',
    },
    ...{ '64:ff9b:1:6464:64:c800::': 'forbidden', '64:ff9b:1:ffa9:fe:a9fe::': 'forbidden' },
    ...{ '64:ff9b:1:ffff:a9:fea9:fe00:0': 'forbidden', '64:ff9b:1:ffff:ff:ffff:a9fe:a9fe': 'forbidden' },
    '64:ff9b:1:8:8:808:101:101': 'private',
  },
  '2001::/32': {
    ...{ '2001:0:808:808::': 'private', '2001:0:a9fe:a9fe::': 'forbidden' },
    ...{ '2001:0:808:808:0:0:f5ff:fffe': 'private', '2001:0:808:808:0:0:5601:5601': 'forbidden' },
  },
}

/** The first half of a network; empty for a single address and for networks with embedded addresses. */
function firstHalf({ network, embeddedAddresses }: (typeof knownNetworks)[number]): string[] {
  const [start, bits] = ipaddr.parseCIDR(network)
  const isOne = bits === start.toByteArray().length * 8
  return isOne || embeddedAddresses.length > 0 ? [] : [`${start}/${bits + 1}`]
}

test('the examples cover exactly the networks of the table', () => {
  expect(Object.keys(examples).sort()).toEqual(knownNetworks.map(({ network }) => network).sort())
})

describe.each(knownNetworks)('$network', known => {
  const own = Object.entries(examples[known.network]!)

  test('addresses in the network and next to it have the expected range', () => {
    for (const [address, range] of own) expect([address, rangeOf(address)]).toEqual([address, range])
  })

  const others = knownNetworks.filter(one => one !== known)
  const misjudged = (...changed: typeof others) => {
    const find = createRangeFinder([...others, ...changed])
    return own.filter(([address, range]) => find(address) !== range).map(([address]) => address)
  }

  test('some example detects that the network is missing', () => {
    expect(misjudged()).not.toEqual([])
  })

  test.each(firstHalf(known))('some example detects a network that is halved to %s', network => {
    expect(misjudged({ ...known, network })).not.toEqual([])
  })

  test.each(known.embeddedAddresses.map((carried, at) => [at, carried] as const))(
    'some example detects that the embedded address at position %i is not read',
    (_, dropped) => {
      const embeddedAddresses = known.embeddedAddresses.filter(carried => carried !== dropped)
      expect(misjudged({ ...known, range: 'private', embeddedAddresses })).not.toEqual([])
    },
  )
})

test.each<[address: string, range: AddressRange]>([
  ['fc00::1', 'private'], // Unique local.
  ['fdff::1', 'private'],
  ['fec0::1', 'private'], // Site-local.
  ['ff02::1', 'private'], // Multicast.
  ['ff0e::1', 'private'],
  ['100::1', 'private'], // Discard-only.
  ['5f00::1', 'private'], // Segment routing.
  ['64:ff9b:2::1', 'private'], // Next to NAT64.
  ['2001:4860::5efe:8.8.8.8', 'public'], // ISATAP.
  ['2001:4860::5efe:10.0.0.1', 'private'],
  ['2001:4860::200:5efe:169.254.1.1', 'forbidden'],
  ['2002:808:808::5efe:169.254.1.1', 'forbidden'], // ISATAP in 6to4.
  ['0x7f.0.0.1', 'forbidden'], // Not the canonical form of an address.
  ['127.1', 'forbidden'],
  ['a name', 'forbidden'],
  ['', 'forbidden'],
])('%s is %s', (address, range) => {
  expect(rangeOf(address)).toBe(range)
})
