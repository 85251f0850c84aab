import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { configSchema } from '../../src/config/schema.ts'
import { rangeOf } from '../../src/models/address-range.ts'
import {
  destinationOf,
  EndpointGuard,
  EndpointRefused,
  endpointRefusalIn,
  openEndpointGuard,
} from '../../src/models/endpoint-guard.ts'

const strict = new EndpointGuard({ blocksPrivate: true, exceptions: [] })
const lenient = new EndpointGuard({ blocksPrivate: false, exceptions: [] })

/** Forms of an IPv6 address with an embedded IPv4 address. */
const carriers = {
  mapped: (octets: readonly number[]) => `::ffff:${octets.join('.')}`,
  compatible: (octets: readonly number[]) => `::${octets.join('.')}`,
  translated: (octets: readonly number[]) => `::ffff:0:${octets.join('.')}`,
  NAT64: (octets: readonly number[]) => `64:ff9b::${octets.join('.')}`,
  'local NAT64': (octets: readonly number[]) => `64:ff9b:1::${octets.join('.')}`,
  '6to4': (octets: readonly number[]) => `2002:${groups(octets)}::1`,
  Teredo: (octets: readonly number[]) => `2001:0:808:808:0:0:${groups(octets.map(octet => octet ^ 255))}`,
  ISATAP: (octets: readonly number[]) => `2001:4860::5efe:${octets.join('.')}`,
  'ISATAP, as if unique': (octets: readonly number[]) => `2001:4860::200:5efe:${octets.join('.')}`,
}

function groups([a, b, c, d]: readonly number[]): string {
  return `${((a! << 8) | b!).toString(16)}:${((c! << 8) | d!).toString(16)}`
}

const octet = fc.integer({ min: 0, max: 255 })
const forms = Object.keys(carriers) as (keyof typeof carriers)[]

test.each(forms)('a link-local address is forbidden as %s, and a private one is never public', form => {
  fc.assert(
    fc.property(octet, octet, octet, (b, c, d) => {
      expect(rangeOf(carriers[form]([169, 254, c, d]))).toBe('forbidden')
      for (const inner of [
        [10, b, c, d],
        [127, b, c, d],
        [192, 168, c, d],
      ])
        expect(rangeOf(carriers[form](inner))).not.toBe('public')
    }),
  )
})

test('only IPv6 addresses in the global range can be public', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 }), parts => {
      const address = new ipaddr.IPv6(parts)
      const isGlobal = parts[0]! >= 0x2000 && parts[0]! <= 0x3fff
      fc.pre(!isGlobal && !address.isIPv4MappedAddress() && parts[0] !== 0x64)
      expect(rangeOf(address.toString())).not.toBe('public')
    }),
  )
})

test('parses every notation of an address', () => {
  const spellings = ['127.0.0.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.1', '127.0.0.1.', '0x7f.1']
  for (const host of spellings) expect(destinationOf(new URL(`http://${host}/`)).host).toBe('127.0.0.1')
  expect(destinationOf(new URL('https://[0:0::1]:8443/'))).toEqual({ host: '::1', port: 8443 })
  expect(destinationOf(new URL('https://EXAMPLE.com./'))).toEqual({ host: 'example.com', port: 443 })
})

describe('the endpoint guard', () => {
  const at = (host: string, port = 443) => ({ host, port })

  test('rejects a name if one of its addresses is rejected', () => {
    expect(() => strict.check(at('a.example'), ['8.8.8.8', '10.0.0.1'])).toThrow(EndpointRefused)
    expect(() => strict.check(at('a.example'), ['8.8.8.8', '1.1.1.1'])).not.toThrow()
  })

  test('allows private addresses unless they are blocked, and never metadata services', () => {
    expect(() => lenient.check(at('a.example'), ['10.0.0.1', '::1'])).not.toThrow()
    for (const address of ['169.254.169.254', 'fe80::1', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe'])
      expect(() => lenient.check(at('a.example'), [address])).toThrow(EndpointRefused)
  })

  test.each([
    ['http://models.internal:8080/v1', at('models.internal', 8080), '10.0.0.1', true],
    ['http://models.internal:8080/v1', at('models.internal', 8081), '10.0.0.1', false],
    ['https://models.internal', at('models.internal', 443), '10.0.0.1', true],
    ['models.internal', at('models.internal', 1), '10.0.0.1', true],
    ['models.internal:80', at('models.internal', 80), '10.0.0.1', true],
    ['models.internal', at('evil.models.internal'), '10.0.0.1', false],
    ['10.0.0.0/8', at('any.example'), '10.200.0.1', true],
    ['10.0.0.0/8', at('any.example'), '::ffff:10.200.0.1', true],
    ['::ffff:10.0.0.0/104', at('any.example'), '10.200.0.1', true],
    ['10.0.0.0/8', at('any.example'), '11.0.0.1', true],
    ['10.0.0.0/8', at('any.example'), '192.168.0.1', false],
    ['10.0.0.7', at('any.example'), '10.0.0.7', true],
    ['10.0.0.7', at('any.example'), '10.0.0.8', false],
    ['10.0.0.7:8080', at('10.0.0.7', 8080), '10.0.0.7', true],
    ['10.0.0.7:8080', at('10.0.0.7', 8081), '10.0.0.7', false],
    ['[fd00::7]:8080', at('fd00::7', 8080), 'fd00::7', true],
    ['fd00::/8', at('a.example'), 'fd00::7', true],
    ['fd00::/8', at('a.example'), '10.0.0.1', false],
  ])('with the exception %s, %o at %s is allowed: %s', (exception, to, address, passes) => {
    const guard = new EndpointGuard({ blocksPrivate: true, exceptions: [exception] })
    const check = () => guard.check(to, [address])
    if (passes) expect(check).not.toThrow()
    else expect(check).toThrow(EndpointRefused)
  })

  test('never allows a metadata service as an exception', () => {
    const guard = new EndpointGuard({
      blocksPrivate: true,
      exceptions: ['169.254.0.0/16', 'meta.example', 'fd00::/8'],
    })
    expect(() => guard.check(at('meta.example'), ['169.254.169.254'])).toThrow(EndpointRefused)
    expect(() => guard.check(at('meta.example'), ['fd00:ec2::254'])).toThrow(EndpointRefused)
  })

  test('checks a URL without resolving its name', () => {
    expect(() => strict.checkUrl('url', 'https://unknown.example/')).not.toThrow()
    expect(() => lenient.checkUrl('url', 'http://localhost:1/')).not.toThrow()
    for (const url of ['http://localhost:1/', 'http://a.localhost/', 'http://2130706433/', 'http://[::1]/'])
      expect(() => strict.checkUrl('url', url)).toThrow(/^url: .* resolves to a private address$/)
    expect(() => lenient.checkUrl('url', 'http://[64:ff9b::a9fe:a9fe]/')).toThrow(/metadata service/)
  })

  test('throws an error that can be found in a cause, with a hint that names the setting', () => {
    const refusal = new EndpointRefused(at('fd00::7', 8080), 'private')
    expect(endpointRefusalIn(new TypeError('fetch failed', { cause: refusal }))).toBe(refusal)
    expect(endpointRefusalIn(new TypeError('fetch failed'))).toBeUndefined()
    expect(refusal.hint).toContain('"[fd00::7]:8080" to runtime.allowedEndpoints')
  })
})

describe('the endpoint guard of a configuration', () => {
  const guardOf = (config: object, variables: Record<string, string> = {}) =>
    openEndpointGuard(configSchema.parse({ version: 1, ...config }), createEnvironment(variables))
  const isBlocked = (guard: EndpointGuard, host: string, port: number) => {
    try {
      guard.check({ host, port }, ['10.0.0.1'])
      return false
    } catch {
      return true
    }
  }

  test.each([
    ['nothing said', {}, false],
    ['auth', { auth: { mode: 'apiKey' } }, true],
    ['production', { runtime: { environment: 'production' } }, true],
    ['blockPrivateNetworkEndpoints', { runtime: { blockPrivateNetworkEndpoints: true } }, true],
  ])('with %s, private addresses are rejected: %s', (_, config, blocked) => {
    expect(isBlocked(guardOf(config), 'models.internal', 80)).toBe(blocked)
  })

  test('allows addresses in the configuration, OLLAMA_BASE_URL and DOCLING_URL', () => {
    const guard = guardOf(
      {
        auth: {
          mode: 'oidc',
          oidc: { issuer: 'https://id.internal', audience: 'wb', jwksUri: 'https://keys.internal/jwks' },
        },
        chat: { baseUrl: 'http://chat.internal:1' },
        controlPlane: { driver: 'astra', endpoint: 'https://db.internal', tokenRef: 'env:TOKEN' },
        seedWorkspaces: [{ name: 'seed', kind: 'hcd', url: 'http://seed.internal:8181' }],
        runtime: {
          allowedEndpoints: ['models.internal'],
          tracing: { exporterUrl: 'http://traces.internal:4318' },
        },
      },
      { OLLAMA_BASE_URL: 'http://ollama.internal:11434', DOCLING_URL: 'http://docling.internal:5001' },
    )
    for (const [host, port] of [
      ['id.internal', 443],
      ['keys.internal', 443],
      ['chat.internal', 1],
      ['models.internal', 9],
      ['traces.internal', 4318],
      ['ollama.internal', 11434],
      ['docling.internal', 5001],
      ['db.internal', 443],
      ['seed.internal', 8181],
    ] as const)
      expect([host, isBlocked(guard, host, port)]).toEqual([host, false])
    expect(isBlocked(guard, 'other.internal', 443)).toBe(true)
    expect(isBlocked(guard, 'localhost', 11434)).toBe(true)
  })

  test('allows the default address of Ollama if it is the chat provider', () => {
    const guard = guardOf({ auth: { mode: 'apiKey' }, chat: { provider: 'ollama' } })
    expect(isBlocked(guard, 'localhost', 11434)).toBe(false)
    const baseUrl = 'http://ollama.internal:11434'
    const elsewhere = guardOf({ auth: { mode: 'apiKey' }, chat: { provider: 'ollama', baseUrl } })
    expect(isBlocked(elsewhere, 'localhost', 11434)).toBe(true)
  })
})
