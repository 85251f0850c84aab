import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { startKeychainProcess } from '../../src/keychain/keychain-process.ts'
import { openKeychain } from '../../src/keychain/open.ts'
import { createSandbox } from '../commands/sandbox.ts'
import { canTest, startSecretService } from './secret-service.ts'

const whole = 'https://whole.example 0123456789abcdef'
const half = 'https://half.example fedcba9876543210'

describe.each(['keyring', 'keytar'] as const)('%s', driver => {
  test.skipIf(!canTest(driver))(
    'wb logout --all removes leftovers of a killed login, and no other entries',
    async () => {
      const session = await startSecretService()
      const keychain = openKeychain(driver, { ...session, clock: systemClock, timeoutMs: 10_000 })
      await keychain.setPassword('workbase', whole, `{"token":"${'t'.repeat(3_000)}"}`)
      await keychain.setPassword('workbase', 'of another program', 'kept')
      const raw = startKeychainProcess(driver, systemClock, session.environment).entries
      // The process ended before it wrote the entry that lists these chunks.
      for (const piece of ['a0', 'a1'])
        await raw.setPassword('workbase pieces', `${half}#${piece}`, 'a piece')
      const sandbox = createSandbox()
      Object.assign(sandbox.env, session.environment, { HOME: sandbox.home, WB_KEYCHAIN: driver })
      const out = await sandbox.wb(['logout', '--all'])
      expect([out.status, out.stderr.trimEnd().split('\n').sort()]).toEqual([
        0,
        ['half', 'whole'].map(name => `  ✓ removed an unused keychain entry for https://${name}.example`),
      ])
      expect(await keychain.findAccounts('workbase')).toEqual(['of another program'])
      expect(await raw.findCredentials('workbase pieces')).toEqual([])
      expect((await sandbox.wb(['logout', '--all'])).stderr).toBe('  you are not signed in\n')
    },
  )
})

test.skipIf(!canTest('keyring'))(
  'a locked keychain keeps its entries, and a warning is printed',
  async () => {
    const session = await startSecretService()
    const keychain = openKeychain('keyring', { ...session, clock: systemClock, timeoutMs: 10_000 })
    await keychain.setPassword('workbase', whole, 'kept')
    session.lock()
    const sandbox = createSandbox()
    Object.assign(sandbox.env, session.environment, { HOME: sandbox.home, WB_KEYCHAIN: 'keyring' })
    const out = await sandbox.wb(['logout', '--all'])
    expect([out.status, out.stderr]).toEqual([
      0,
      '  ! The keychain of this system is locked. Entries without a login were not removed.\n  you are not signed in\n',
    ])
  },
)

test('removes complete and partial files of a killed process', async () => {
  const sandbox = createSandbox()
  sandbox.env.WB_KEYCHAIN = 'file'
  const folder = join(sandbox.env.XDG_CONFIG_HOME!, 'workbase', 'credentials')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const environment = {}
  const keychain = openKeychain('file', { folder, environment, clock: systemClock })
  await keychain.setPassword('workbase', whole, 'secret')
  const { pid } = spawnSync(process.execPath, ['--version'])
  writeFileSync(join(folder, `${'f'.repeat(32)}.json.${pid}`), '{"service":"work', { mode: 0o600 })
  const out = await sandbox.wb(['logout', '--all'])
  expect([out.status, out.stderr]).toEqual([
    0,
    '  ✓ removed an unused keychain entry for https://whole.example\n',
  ])
  expect(readdirSync(folder)).toEqual([])
})
