import { describe, expect, onTestFinished, test } from 'vitest'
import { openPageNetwork, PageAddressRefused } from '../../src/models/page-network.ts'

/** URLs of this machine, its network, and unassigned addresses, in the forms that URLs accept. */
const privateUrls = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0177.0.0.1/',
  'http://127.0.0.1:8080/',
  'http://0.0.0.0/',
  'http://0/',
  'http://10.1.2.3/',
  'http://172.16.0.1/',
  'http://192.168.1.1/',
  'http://100.64.0.1/',
  'http://192.0.2.1/',
  'http://224.0.0.1/',
  'http://255.255.255.255/',
  'http://[::1]/',
  'http://[::]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[::127.0.0.1]/',
  'http://[64:ff9b::10.0.0.1]/',
  'http://[64:ff9b:1::7f00:1]/',
  'http://[2002:7f00:1::1]/',
  'http://[fd00::1]/',
  'http://[fec0::1]/',
  'http://[ff02::1]/',
  'http://[2001:db8::1]/',
]
/** URLs of link-local addresses and metadata services. */
const forbiddenUrls = [
  'http://169.254.169.254/latest/meta-data/',
  'http://[::ffff:169.254.169.254]/',
  'http://[fe80::1]/',
  'http://[fd00:ec2::254]/',
  'http://[64:ff9b::a9fe:a9fe]/',
  'http://100.100.100.200/',
  'http://168.63.129.16/',
]

const request = { method: 'GET', headers: {}, body: null, signal: null } as const

function open(allowsPrivate: boolean, addresses: readonly string[] = []) {
  const network = openPageNetwork({ allowsPrivate, resolve: async () => addresses })
  onTestFinished(() => network.close())
  return network
}

describe('pages at addresses that are not public [security rule 14]', () => {
  test.each([...privateUrls, ...forbiddenUrls])('refuses to connect to %s', async url => {
    const network = open(false)
    await expect(network.send(new URL(url), request)).rejects.toThrow(PageAddressRefused)
    await expect(network.resolve(new URL(url))).rejects.toThrow(PageAddressRefused)
  })

  test.each(forbiddenUrls)('refuses %s even if private addresses are allowed', async url => {
    await expect(open(true).send(new URL(url), request)).rejects.toThrow(PageAddressRefused)
  })

  test.each(privateUrls)('allows the address of %s with the flag', async url => {
    await expect(open(true).resolve(new URL(url))).resolves.toHaveLength(1)
  })

  test.each([
    ['a private address', ['10.0.0.1']],
    ['a private address among public ones', ['93.184.216.34', '127.0.0.1']],
    ['an address of a metadata service', ['93.184.216.34', '169.254.169.254']],
  ])('refuses a name with %s', async (_, addresses) => {
    const url = new URL('https://rebound.example/')
    await expect(open(false, addresses).send(url, request)).rejects.toThrow(PageAddressRefused)
    await expect(open(false, addresses).resolve(url)).rejects.toThrow(PageAddressRefused)
  })

  test('suggests the flag for a private address only', async () => {
    await expect(open(false).resolve(new URL('http://10.0.0.1/'))).rejects.toThrow('add --allow-private')
    await expect(open(false).resolve(new URL('http://169.254.169.254/'))).rejects.toThrow('never read')
  })
})
