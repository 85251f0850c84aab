import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { startKeychainProcess } from '../../src/keychain/keychain-process.ts'
import { openKeychain } from '../../src/keychain/open.ts'
import { place } from '../commands/wb.ts'
import { canTest, secretService } from './secret-service.ts'

const whole = 'https://whole.example 0123456789abcdef'
const half = 'https://half.example fedcba9876543210'

describe.each(['keyring', 'keytar'] as const)('%s', driver => {
  test.skipIf(!canTest(driver))(
    'what a killed login left goes with wb logout --all, and nothing else does',
    async () => {
      const session = await secretService()
      const keychain = openKeychain(driver, { ...session, clock: systemClock, timeoutMs: 10_000 })
      await keychain.setPassword('workbase', whole, `{"token":"${'t'.repeat(3_000)}"}`)
      await keychain.setPassword('workbase', 'of another program', 'kept')
      const raw = startKeychainProcess(driver, systemClock, session.environment).entries
      // Killed before the entry that names its pieces.
      for (const piece of ['a0', 'a1'])
        await raw.setPassword('workbase pieces', `${half}#${piece}`, 'a piece')
      const here = place()
      Object.assign(here.env, session.environment, { HOME: here.home, WB_KEYCHAIN: driver })
      const out = await here.wb(['logout', '--all'])
      expect([out.status, out.stderr.trimEnd().split('\n').sort()]).toEqual([
        0,
        ['half', 'whole'].map(name => `  ✓ removed an unused keychain entry for https://${name}.example`),
      ])
      expect(await keychain.findAccounts('workbase')).toEqual(['of another program'])
      expect(await raw.findCredentials('workbase pieces')).toEqual([])
      expect((await here.wb(['logout', '--all'])).stderr).toBe('  you are not signed in\n')
    },
  )
})

test.skipIf(!canTest('keyring'))('a keychain that is locked keeps what it has, which is told', async () => {
  const session = await secretService()
  const keychain = openKeychain('keyring', { ...session, clock: systemClock, timeoutMs: 10_000 })
  await keychain.setPassword('workbase', whole, 'kept')
  session.lock()
  const here = place()
  Object.assign(here.env, session.environment, { HOME: here.home, WB_KEYCHAIN: 'keyring' })
  const out = await here.wb(['logout', '--all'])
  expect([out.status, out.stderr]).toEqual([
    0,
    '  ! The keychain of this system is locked. Entries without a login were not removed.\n  you are not signed in\n',
  ])
})

test('what is left in files goes too, whole or half written', async () => {
  const here = place()
  here.env.WB_KEYCHAIN = 'file'
  const folder = join(here.env.XDG_CONFIG_HOME!, 'workbase', 'credentials')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const environment = {}
  const keychain = openKeychain('file', { folder, environment, clock: systemClock })
  await keychain.setPassword('workbase', whole, 'secret')
  const { pid } = spawnSync(process.execPath, ['--version'])
  writeFileSync(join(folder, `${'f'.repeat(32)}.json.${pid}`), '{"service":"work', { mode: 0o600 })
  const out = await here.wb(['logout', '--all'])
  expect([out.status, out.stderr]).toEqual([
    0,
    '  ✓ removed an unused keychain entry for https://whole.example\n',
  ])
  expect(readdirSync(folder)).toEqual([])
})
