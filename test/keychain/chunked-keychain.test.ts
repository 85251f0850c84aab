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

/** Entries in memory, of 1200 ASCII characters at most; a process that uses them may be ended before any change. */
class Stored implements KeychainEntries {
  readonly kept = new Map<string, string>()
  changesLeft = Number.POSITIVE_INFINITY

  async getPassword(...place: [service: string, account: string]) {
    return this.kept.get(JSON.stringify(place)) ?? null
  }

  async setPassword(service: string, account: string, password: string) {
    expect(password).toMatch(/^[\x20-\x7e]{1,1200}$/)
    this.change()
    this.kept.set(JSON.stringify([service, account]), password)
  }

  async deletePassword(...place: [service: string, account: string]) {
    this.change()
    return this.kept.delete(JSON.stringify(place))
  }

  async findCredentials(wanted: string) {
    return [...this.kept].flatMap(([place, password]) => {
      const [service, account] = JSON.parse(place) as [string, string]
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
/** Of up to 2000 UTF-16 units, cut anywhere; each may need six characters. */
const secret = oneof(
  string({ unit: 'binary' }),
  tuple(string({ unit: 'binary', minLength: 1, maxLength: 3 }), nat(2000)).map(([text, length]) =>
    text.repeat(length).slice(0, length),
  ),
)
const act = record({ account, secret: option(secret), crashAt: option(nat(8)) })

describe('a divided keychain', () => {
  test('reads what was last written or removed, or where that was interrupted, what was there before', async () => {
    await check(
      asyncProperty(array(act, { maxLength: 8 }), async acts => {
        const stored = new Stored()
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
          if (!interrupted) expect(piecesOf(stored, account)).toHaveLength(piecesIn(stored, account))
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
    'a reader that a writer overtakes after %i calls reads what is new',
    async calls => {
      const stored = new Stored()
      const writer = createChunkedKeychain(stored)
      await writer.setPassword(service, 'one', 'x'.repeat(4000))
      let left = calls
      const overtaken: KeychainEntries = Object.assign(Object.create(stored) as Stored, {
        async getPassword(...place: [service: string, account: string]) {
          if (left-- === 0)
            for (const letter of 'yz') await writer.setPassword(service, 'one', letter.repeat(5000))
          return stored.getPassword(...place)
        },
      })
      expect(await createChunkedKeychain(overtaken).getPassword(service, 'one')).toBe('z'.repeat(5000))
    },
  )

  test.each([
    ['is missing', (stored: Stored, [piece]: string[]) => stored.kept.delete(piece!)],
    ['is of another secret', (stored: Stored, [piece]: string[]) => stored.kept.set(piece!, 'x')],
  ])('a secret of which a piece %s is none', async (_, damage) => {
    const stored = new Stored()
    const keychain = createChunkedKeychain(stored)
    await keychain.setPassword(service, 'one', 'y'.repeat(5000))
    damage(stored, piecesOf(stored, 'one'))
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
  ])('the entry %j, which it did not write, is none', async text => {
    const stored = new Stored()
    stored.kept.set(JSON.stringify([service, 'one']), text)
    expect(await createChunkedKeychain(stored).getPassword(service, 'one')).toBeNull()
  })

  test('refuses what nobody would sign in with', async () => {
    await expect(
      createChunkedKeychain(new Stored()).setPassword(service, 'one', 'x'.repeat(76_800)),
    ).rejects.toThrow(RangeError)
  })
})

/** Keys of the pieces of an account. */
function piecesOf(stored: Stored, account: string): string[] {
  return [...stored.kept.keys()].filter(key => {
    const [service, name] = JSON.parse(key) as [string, string]
    return service === 'workbase pieces' && name.replace(/#[ab]\d+$/, '') === account
  })
}

/** How many pieces the entry of an account speaks of. */
function piecesIn(stored: Stored, account: string): number {
  const head: unknown = JSON.parse(stored.kept.get(JSON.stringify([service, account])) ?? '""')
  return typeof head === 'string' ? 0 : (head as { pieces: number }).pieces
}
