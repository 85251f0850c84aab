import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { Keychain, KeychainDriver } from '../../src/keychain/keychain.ts'
import { startKeychainProcess } from '../../src/keychain/keychain-process.ts'
import { openKeychain } from '../../src/keychain/open.ts'
import { canTest, type Session, startSecretService } from './secret-service.ts'

function keychainIn({ folder, environment }: Session, driver: KeychainDriver): Keychain {
  return openKeychain(driver, {
    folder: `${folder}/credentials`,
    clock: systemClock,
    environment,
    timeoutMs: 10_000,
  })
}

const long = `${'{"token":"é日本"}'.repeat(120)}\ud83d`

describe.each(['file', 'keyring', 'keytar'] as const)('the driver %s', driver => {
  test.skipIf(!canTest(driver))(
    'stores, lists, replaces and removes secrets of any content and length',
    async () => {
      const session = await startSecretService()
      const keychain = keychainIn(session, driver)
      expect(await keychain.getPassword('workbase', 'one')).toBeNull()
      expect(await keychain.findPassword('workbase')).toBeNull()
      expect(await keychain.deletePassword('workbase', 'one')).toBe(false)

      for (const secret of ['plain', '', 'a\0b', long, 'short', long, `${long}.`]) {
        await keychain.setPassword('workbase', 'one', secret)
        expect(await keychain.getPassword('workbase', 'one')).toBe(secret)
      }
      expect(await keychain.findPassword('workbase')).toBe(`${long}.`)

      await keychain.setPassword('workbase', 'https://two.example/ #a0', 'two')
      await keychain.setPassword('other', 'one', 'of another service')
      // Another process can read them.
      const found = await keychainIn(session, driver).findCredentials('workbase')
      expect(found.sort((a, b) => b.account.localeCompare(a.account))).toEqual([
        { account: 'one', password: `${long}.` },
        { account: 'https://two.example/ #a0', password: 'two' },
      ])

      expect(await keychain.deletePassword('workbase', 'one')).toBe(true)
      expect(await keychain.getPassword('workbase', 'one')).toBeNull()
      expect(await keychain.findCredentials('workbase')).toHaveLength(1)
      expect(await keychain.getPassword('other', 'one')).toBe('of another service')
    },
  )
})

describe.each(['keyring', 'keytar'] as const)('%s', driver => {
  test.skipIf(!canTest(driver))('leaves no chunk of a long secret behind', async () => {
    const session = await startSecretService()
    const keychain = keychainIn(session, driver)
    const raw = startKeychainProcess(driver, systemClock, session.environment)
    const pieces = () => raw.entries.findCredentials('workbase pieces')

    await keychain.setPassword('workbase', 'one', long)
    const before = await pieces()
    expect(before.length).toBeGreaterThan(2)
    for (const { password } of before) expect(password).toMatch(/^[\x20-\x7e]{1,1200}$/)
    await keychain.setPassword('workbase', 'one', 'short')
    expect(await pieces()).toEqual([])
    await keychain.setPassword('workbase', 'one', long)
    await keychain.deletePassword('workbase', 'one')
    expect(await pieces()).toEqual([])
  })
})

test.skipIf(!canTest('keytar'))("drivers do not read each other's entries", async () => {
  const session = await startSecretService()
  await keychainIn(session, 'keyring').setPassword('workbase', 'one', 'by keyring')
  await keychainIn(session, 'keytar').setPassword('workbase', 'two', 'by keytar')
  expect(await keychainIn(session, 'keytar').getPassword('workbase', 'one')).toBeNull()
  expect(await keychainIn(session, 'keyring').findCredentials('workbase')).toEqual([
    { account: 'one', password: 'by keyring' },
  ])
  expect(await keychainIn(session, 'file').findCredentials('workbase')).toEqual([])
})
