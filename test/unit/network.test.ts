import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { networkOf } from '../../src/base/network.ts'

describe('what counts as one client', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:c000:207', '192.0.2.7'],
    ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1'],
    ['2001:0DB8::1', '2001:db8:0:0'],
    ['2001:db8:0:1::', '2001:db8:0:1'],
    ['1::3:4:5:6:7:8', '1:0:3:4'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['64:ff9b::192.0.2.33', '64:ff9b:0:0'],
    ['1:2:3:4:5:6:192.0.2.33', '1:2:3:4'],
    ['', ''],
    ['no address', 'no address'],
  ])('%s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })

  const group = fc.integer({ min: 0, max: 0xffff })
  const groups = fc.tuple(group, group, group, group, group, group, group, group)
  const written = (all: readonly number[]) => all.map(one => one.toString(16)).join(':')

  test('addresses of one /64 are one client, of two they are two', () => {
    fc.assert(
      fc.property(groups, groups, (one, other) => {
        const sibling = [...one.slice(0, 4), ...other.slice(4)]
        const isSame = one.slice(0, 4).join() === other.slice(0, 4).join()
        const isPlain = one.some((value, at) => at < 5 && value !== 0)
        fc.pre(isPlain && other.some((value, at) => at < 5 && value !== 0))
        return (
          networkOf(written(one)) === networkOf(written(sibling)) &&
          (networkOf(written(one)) === networkOf(written(other))) === isSame
        )
      }),
    )
  })

  test('however an address is written, it is the same client', () => {
    fc.assert(
      fc.property(groups, all => {
        const plain = written(all)
        const short = new URL(`http://[${plain}]`).hostname.slice(1, -1)
        const [high, low] = [all[6], all[7]]
        const dotted = `${written(all.slice(0, 6))}:${[high >> 8, high & 255, low >> 8, low & 255].join('.')}`
        return networkOf(short) === networkOf(plain) && networkOf(dotted) === networkOf(plain)
      }),
    )
  })
})
