import { isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { clientRange, createNetworkCheck, normalizeAddress } from '../../src/http/addresses.ts'
import { isForwarded, ProxyResolver, type TrustedProxies } from '../../src/http/proxy-resolver.ts'

const peer = '10.0.0.1'

function request(headers: Record<string, string> = {}, address = peer) {
  return {
    address,
    encrypted: false,
    host: 'wb.internal:8787',
    header: (name: string) => headers[name] ?? null,
  }
}

const clientOf = (trusted: TrustedProxies, headers: Record<string, string>, address = peer) =>
  new ProxyResolver(trusted).clientAddress(request(headers, address))

describe('address normalization', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
    ['::FFFF:7f00:1', '127.0.0.1'],
    ['0:0:0:0:0:ffff:255.254.253.252', '255.254.253.252'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['::', '0:0:0:0:0:0:0:0'],
    ['2001:DB8::', '2001:db8:0:0:0:0:0:0'],
    ['2001:0db8:0:0:1:2:3:4', '2001:db8:0:0:1:2:3:4'],
    ['64:ff9b::1.2.3.4', '64:ff9b:0:0:0:0:102:304'],
    ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:1'],
    ['::ffff:0:1.2.3.4', '0:0:0:0:ffff:0:102:304'],
  ])('normalizes %s to %s', (text, plain) => {
    expect(normalizeAddress(text)).toBe(plain)
  })

  test.each([
    '',
    'localhost',
    '1.2.3',
    '1.2.3.256',
    '01.2.3.4',
    '1.2.3.4:80',
    '[::1]',
    ':::',
    '1::2::3',
    '0x7f.1',
  ])('rejects %s', text => {
    expect(normalizeAddress(text)).toBeUndefined()
  })

  test('property: a normalized address is valid and stays unchanged', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), address => {
        const plain = normalizeAddress(address)!
        expect(isIPv4(plain) || isIPv6(plain), address).toBe(true)
        expect(normalizeAddress(plain)).toBe(plain)
      }),
    )
  })

  test('S8-09: identifies a subscriber by an IPv4 address or an IPv6 /64 network', () => {
    expect(clientRange('192.0.2.7')).toBe('192.0.2.7')
    const of = (text: string) => clientRange(normalizeAddress(text)!)
    expect(of('2001:db8:1:2::1')).toBe('2001:db8:1:2::/64')
    expect(of('2001:db8:1:2:ffff:ffff:ffff:ffff')).toBe(of('2001:db8:1:2::1'))
    expect(of('2001:db8:1:3::1')).not.toBe(of('2001:db8:1:2::1'))
  })

  test.each([
    [['10.0.0.0/8'], '10.255.0.1', true],
    [['10.0.0.0/8'], '11.0.0.1', false],
    [['192.0.2.1'], '192.0.2.1', true],
    [['192.0.2.1'], '192.0.2.2', false],
    [['0.0.0.0/0'], '203.0.113.9', true],
    [['0.0.0.0/0'], '2001:db8::1', false],
    [['fd00::/8'], 'fdff::1', true],
    [['FD00::/8'], 'fe00::1', false],
    [['::1'], '::1', true],
    [['::ffff:10.0.0.0/104'], '10.1.2.3', true],
    [['::ffff:10.0.0.0/104'], '11.1.2.3', false],
    [['::ffff:10.0.0.1'], '10.0.0.1', true],
    [['192.0.2.1', 'fd00::/8'], 'fd00::1', true],
    [['localhost'], '127.0.0.1', false],
  ])('%j contains %s: %s', (networks, address, isIn) => {
    expect(createNetworkCheck(networks)(normalizeAddress(address)!)).toBe(isIn)
  })
})

describe('S8-06 S8-09: the client behind proxies', () => {
  const both = { 'x-forwarded-for': '192.0.2.1, 198.51.100.2', 'x-real-ip': '203.0.113.3' }

  test('is the peer without a trusted proxy, regardless of the headers', () => {
    expect(clientOf(false, both)).toBe(peer)
    expect(clientOf(['192.0.2.99'], both)).toBe(peer)
    expect(clientOf(['192.0.2.1', '198.51.100.0/24'], both)).toBe(peer)
  })

  test('is the right-most hop if the setting is true', () => {
    expect(clientOf(true, both)).toBe('198.51.100.2')
    expect(clientOf(true, { 'x-forwarded-for': '127.0.0.1' })).toBe('127.0.0.1')
  })

  test('is the first untrusted hop from the right, or the left-most one if all are trusted', () => {
    expect(clientOf(['10.0.0.0/8'], both)).toBe('198.51.100.2')
    expect(clientOf(['10.0.0.0/8', '198.51.100.2'], both)).toBe('192.0.2.1')
    expect(clientOf(['10.0.0.0/8', '198.51.100.2', '192.0.2.0/24'], both)).toBe('192.0.2.1')
    const forged = { 'x-forwarded-for': '1.1.1.1, 2.2.2.2, 192.0.2.1, 198.51.100.2' }
    expect(clientOf(['10.0.0.0/8', '198.51.100.2'], forged)).toBe('192.0.2.1')
  })

  test('is X-Real-IP only without X-Forwarded-For and if it is an address', () => {
    const only = { 'x-real-ip': '203.0.113.3' }
    expect(clientOf(true, only)).toBe('203.0.113.3')
    expect(clientOf(['10.0.0.1'], only)).toBe('203.0.113.3')
    expect(clientOf(false, only)).toBe(peer)
    expect(clientOf(true, { 'x-real-ip': '203.0.113.3, 203.0.113.4' })).toBe(peer)
    expect(clientOf(true, { 'x-real-ip': 'nobody' })).toBe(peer)
    expect(clientOf(true, { ...only, 'x-forwarded-for': 'unknown' })).toBe(peer)
    expect(clientOf(true, {})).toBe(peer)
  })

  test('is the hop before an entry that is not an address', () => {
    const trusted = ['10.0.0.0/8', '198.51.100.0/24']
    for (const broken of ['unknown', '', '_hidden', '1.2.3', '999.1.1.1', '"192.0.2.1"', 'x\u00e9'])
      expect(clientOf(trusted, { 'x-forwarded-for': `192.0.2.1, ${broken}, 198.51.100.2` }), broken).toBe(
        '198.51.100.2',
      )
    expect(clientOf(trusted, { 'x-forwarded-for': '' })).toBe(peer)
    expect(clientOf(trusted, { 'x-forwarded-for': '192.0.2.1,' })).toBe(peer)
  })

  test('does not depend on ports, brackets, mapped addresses or letter case', () => {
    for (const entry of ['192.0.2.1:4711', '::ffff:192.0.2.1', '[::ffff:192.0.2.1]:4711', ' 192.0.2.1 '])
      expect(clientOf(true, { 'x-forwarded-for': entry }), entry).toBe('192.0.2.1')
    for (const entry of ['2001:DB8::1', '[2001:db8::2]', '[2001:db8:0:0::3]:80'])
      expect(clientOf(true, { 'x-forwarded-for': entry }), entry).toBe('2001:db8:0:0::/64')
    expect(clientOf(false, {}, '::ffff:192.0.2.1')).toBe('192.0.2.1')
    expect(clientOf(['192.0.2.1'], both, '::ffff:192.0.2.1')).toBe('198.51.100.2')
    expect(clientOf(true, both, '')).toBe('198.51.100.2')
    expect(clientOf(false, both, '')).toBe('')
  })

  const outsider = fc.ipV4().filter(address => !/^(?:10|172)\./.test(address))
  const proxy = fc
    .tuple(fc.constantFrom(10, 172), fc.nat(255), fc.nat(255), fc.nat(255))
    .map(parts => parts.join('.'))

  test("property: entries before the client's address have no effect", () => {
    const written = fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()), { maxLength: 5 })
    fc.assert(
      fc.property(written, outsider, fc.array(proxy, { maxLength: 4 }), (own, client, hops) => {
        const entries = [...own.map(text => text.replaceAll(',', ' ')), client, ...hops]
        const found = clientOf(['10.0.0.0/8', '172.0.0.0/8'], { 'x-forwarded-for': entries.join(', ') })
        expect(found).toBe(client)
      }),
    )
  })

  test('property: headers of an untrusted peer have no effect', () => {
    const headers = fc.record({ 'x-forwarded-for': fc.string(), 'x-real-ip': fc.ipV4() })
    fc.assert(
      fc.property(outsider, headers, (address, sent) => {
        expect(clientOf(['10.0.0.0/8', '172.0.0.0/8'], sent, address)).toBe(address)
      }),
    )
  })

  test('property: is always an address of the list or the peer', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.ipV4(), fc.string()), { maxLength: 6 }), entries => {
        const header = entries.join(',')
        const known = [peer, ...header.split(',').map(entry => normalizeAddress(entry.trim().split(':')[0]!))]
        for (const trusted of [true, ['10.0.0.0/8'], ['0.0.0.0/0']])
          expect(known).toContain(clientOf(trusted, { 'x-forwarded-for': header }))
      }),
    )
  })

  test.each(['x-forwarded-for', 'x-real-ip', 'forwarded', 'x-forwarded-host', 'x-forwarded-proto', 'via'])(
    '%s shows that a request passed a proxy',
    name => {
      expect(isForwarded(request({ [name]: '' }))).toBe(true)
      expect(isForwarded(request({ 'x-via': '1.1 x' }))).toBe(false)
    },
  )
})

describe('S2.2-28 S2.5-04: the scheme and host of the client', () => {
  const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'wb.example.com' }
  const reached = (trusted: TrustedProxies, headers: Record<string, string>) =>
    new ProxyResolver(trusted).targetOf(request(headers))
  const direct = { encrypted: false, host: 'wb.internal:8787' }

  test('are read only from a trusted proxy', () => {
    expect(reached(true, forwarded)).toEqual({ encrypted: true, host: 'wb.example.com' })
    expect(reached(['10.0.0.1'], forwarded)).toEqual({ encrypted: true, host: 'wb.example.com' })
    expect(reached(['10.0.0.2'], forwarded)).toEqual(direct)
    expect(reached(false, forwarded)).toEqual(direct)
  })

  test('are the right-most values, of the nearest proxy', () => {
    const twice = {
      'x-forwarded-proto': 'https, http',
      'x-forwarded-host': 'evil.example, wb.example.com:8443',
    }
    expect(reached(true, twice)).toEqual({ encrypted: false, host: 'wb.example.com:8443' })
  })

  test('are not read from a connection without an address, unless all proxies are trusted', () => {
    const targetWithoutAddress = (trusted: TrustedProxies) =>
      new ProxyResolver(trusted).targetOf(request(forwarded, ''))
    expect(targetWithoutAddress(['10.0.0.0/8', '::/0'])).toEqual(direct)
    expect(targetWithoutAddress(true).encrypted).toBe(true)
  })

  test('are read independently, and invalid values are ignored', () => {
    expect(reached(true, { 'x-forwarded-proto': 'HTTPS' })).toEqual({ ...direct, encrypted: true })
    expect(reached(true, { 'x-forwarded-host': '[2001:db8::1]:8443' })).toEqual({
      ...direct,
      host: '[2001:db8::1]:8443',
    })
    for (const scheme of ['', 'ws', 'javascript', 'https://', 'https,'])
      expect(reached(true, { 'x-forwarded-proto': scheme }), scheme).toEqual(direct)
    for (const host of ['', 'a b', 'a/b', 'x@y', 'evil.example#', '[::1', 'a:b', 'ä.example', 'a:123456'])
      expect(reached(true, { 'x-forwarded-host': host }), host).toEqual(direct)
    const encrypted = { ...request({ 'x-forwarded-proto': 'ws' }), encrypted: true }
    expect(new ProxyResolver(true).targetOf(encrypted).encrypted).toBe(true)
    const plain = { ...request({ 'x-forwarded-proto': 'http' }), encrypted: true }
    expect(new ProxyResolver(true).targetOf(plain).encrypted).toBe(false)
  })
})
