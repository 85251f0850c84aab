import {
  array,
  asyncProperty,
  assert as check,
  constantFrom,
  nat,
  oneof,
  option,
  record,
  string,
  tuple,
} from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createChunkedKeychain } from '../../src/keychain/chunked-keychain.ts'
import type { KeychainEntries } from '../../src/keychain/keychain.ts'

class Crash extends Error {}

/** Entries in memory with at most 1200 ASCII characters each. A crash can be simulated before any change. */
class MemoryEntries implements KeychainEntries {
  readonly entries = new Map<string, string>()
  changesLeft = Number.POSITIVE_INFINITY

  async getPassword(...key: [service: string, account: string]) {
    return this.entries.get(JSON.stringify(key)) ?? null
  }

  async setPassword(service: string, account: string, password: string) {
    expect(password).toMatch(/^[\x20-\x7e]{1,1200}$/)
    this.change()
    this.entries.set(JSON.stringify([service, account]), password)
  }

  async deletePassword(...key: [service: string, account: string]) {
    this.change()
    return this.entries.delete(JSON.stringify(key))
  }

  async findCredentials(wanted: string) {
    return [...this.entries].flatMap(([key, password]) => {
      const [service, account] = JSON.parse(key) as [string, string]
      return service === wanted ? [{ account, password }] : []
    })
  }

  change() {
    if (this.changesLeft-- === 0) throw new Crash()
  }
}

const service = 'workbase'
const accounts = ['one', 'one#a0', 'one#b1']
const account = constantFrom(...accounts)
/** Up to 2000 UTF-16 units, which may end in half a surrogate pair. Each may need six characters. */
const secret = oneof(
  string({ unit: 'binary' }),
  tuple(string({ unit: 'binary', minLength: 1, maxLength: 3 }), nat(2000)).map(([text, length]) =>
    text.repeat(length).slice(0, length),
  ),
)
const act = record({ account, secret: option(secret), crashAt: option(nat(8)) })

describe('a chunked keychain', () => {
  test('returns the last written or removed value, or the previous one if the write was interrupted', async () => {
    await check(
      asyncProperty(array(act, { maxLength: 8 }), async acts => {
        const stored = new MemoryEntries()
        const keychain = createChunkedKeychain(stored)
        const expected = new Map<string, string | null>(accounts.map(account => [account, null]))
        for (const { account, secret, crashAt } of acts) {
          stored.changesLeft = crashAt ?? Number.POSITIVE_INFINITY
          const done =
            secret === null
              ? keychain.deletePassword(service, account)
              : keychain.setPassword(service, account, secret)
          const interrupted = await done.then(
            () => false,
            error => {
              if (!(error instanceof Crash)) throw error
              return true
            },
          )
          stored.changesLeft = Number.POSITIVE_INFINITY
          const found = await keychain.getPassword(service, account)
          expect(interrupted ? [secret, expected.get(account)] : [secret]).toContain(found)
          expected.set(account, found)
          if (!interrupted) expect(chunkKeysOf(stored, account)).toHaveLength(chunkCountOf(stored, account))
        }
        const all = [...expected].flatMap(([account, password]) =>
          password === null ? [] : [{ account, password }],
        )
        expect(await keychain.findCredentials(service)).toEqual(expect.arrayContaining(all))
        expect(await keychain.findCredentials(service)).toHaveLength(all.length)
      }),
    )
  })

  test.each([0, 1, 2, 3, 4])(
    'returns the new value if it is written after %i calls of a reader',
    async calls => {
      const stored = new MemoryEntries()
      const writer = createChunkedKeychain(stored)
      await writer.setPassword(service, 'one', 'x'.repeat(4000))
      let callsLeft = calls
      const overtaken: KeychainEntries = Object.assign(Object.create(stored) as MemoryEntries, {
        async getPassword(...key: [service: string, account: string]) {
          if (callsLeft-- === 0)
            for (const letter of 'yz') await writer.setPassword(service, 'one', letter.repeat(5000))
          return stored.getPassword(...key)
        },
      })
      expect(await createChunkedKeychain(overtaken).getPassword(service, 'one')).toBe('z'.repeat(5000))
    },
  )

  test.each([
    ['is missing', (stored: MemoryEntries, [piece]: string[]) => stored.entries.delete(piece!)],
    [
      'belongs to another secret',
      (stored: MemoryEntries, [piece]: string[]) => stored.entries.set(piece!, 'x'),
    ],
  ])('returns no secret if a chunk %s', async (_, damage) => {
    const stored = new MemoryEntries()
    const keychain = createChunkedKeychain(stored)
    await keychain.setPassword(service, 'one', 'y'.repeat(5000))
    damage(stored, chunkKeysOf(stored, 'one'))
    expect(await keychain.getPassword(service, 'one')).toBeNull()
    expect(await keychain.findCredentials(service)).toEqual([])
    expect(await keychain.deletePassword(service, 'one')).toBe(true)
  })

  test.each([
    '',
    'token',
    '17',
    'null',
    '{"slot":"a","pieces":1e9,"digest":""}',
    '{"slot":"c","pieces":1,"digest":""}',
  ])('ignores the entry %j, which it did not write', async text => {
    const stored = new MemoryEntries()
    stored.entries.set(JSON.stringify([service, 'one']), text)
    expect(await createChunkedKeychain(stored).getPassword(service, 'one')).toBeNull()
  })

  test('rejects a secret that is too long', async () => {
    await expect(
      createChunkedKeychain(new MemoryEntries()).setPassword(service, 'one', 'x'.repeat(76_800)),
    ).rejects.toThrow(RangeError)
  })
})

/** Returns the keys of an account's chunks. */
function chunkKeysOf(stored: MemoryEntries, account: string): string[] {
  return [...stored.entries.keys()].filter(key => {
    const [service, name] = JSON.parse(key) as [string, string]
    return service === 'workbase pieces' && name.replace(/#[ab]\d+$/, '') === account
  })
}

/** Returns the number of chunks in an account's entry. */
function chunkCountOf(stored: MemoryEntries, account: string): number {
  const head: unknown = JSON.parse(stored.entries.get(JSON.stringify([service, account])) ?? '""')
  return typeof head === 'string' ? 0 : (head as { pieces: number }).pieces
}
