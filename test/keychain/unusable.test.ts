import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { type Keychain, KeychainUnavailable } from '../../src/keychain/keychain.ts'
import { startKeychainProcess } from '../../src/keychain/keychain-process.ts'
import type { KeychainLibrary } from '../../src/keychain/libraries.ts'
import { openKeychain } from '../../src/keychain/open.ts'
import { programPath } from '../harness/program.ts'
import { TestClock } from '../harness/runtime.ts'
import {
  canTest,
  createBareSession,
  type Session,
  startBusSession,
  startSecretService,
} from './secret-service.ts'

const drivers = ['keyring', 'keytar'] as const

function keychainIn({ folder, environment }: Session, driver: KeychainLibrary, timeoutMs = 10_000): Keychain {
  return openKeychain(driver, { folder, clock: systemClock, environment, timeoutMs })
}

/** Calls every function of a keychain, and returns its failure reason or its value. */
async function callAllFunctions(keychain: Keychain): Promise<Record<string, unknown>> {
  const calls = {
    get: keychain.getPassword('workbase', 'one'),
    set: keychain.setPassword('workbase', 'one', 'new'),
    delete: keychain.deletePassword('workbase', 'one'),
    findOne: keychain.findPassword('workbase'),
    find: keychain.findCredentials('workbase'),
  }
  const outcomes = Object.entries(calls).map(async ([name, call]) => [name, await call.catch(reasonOf)])
  return Object.fromEntries(await Promise.all(outcomes))
}

function reasonOf(error: unknown): string {
  if (!(error instanceof KeychainUnavailable)) throw error
  expect(error.cause).toBeInstanceOf(Error)
  expect(error.hint).not.toBe('')
  return `${error.driver} ${error.reason}`
}

const sameForAll = (outcome: string) => ({
  get: outcome,
  set: outcome,
  delete: outcome,
  findOne: outcome,
  find: outcome,
})

describe.each(drivers)('%s', driver => {
  test.skipIf(!canTest(driver))('is unavailable without a bus, and stores nothing elsewhere', async () => {
    expect(await callAllFunctions(keychainIn(createBareSession(), driver))).toEqual(
      sameForAll(`${driver} unavailable`),
    )
  })

  test.skipIf(!canTest(driver))('is unavailable without a Secret Service', async () => {
    expect(await callAllFunctions(keychainIn(await startBusSession(), driver))).toEqual(
      sameForAll(`${driver} unavailable`),
    )
  })

  test.skipIf(!canTest(driver))('reports a locked keychain', async () => {
    const session = await startSecretService()
    const keychain = keychainIn(session, driver)
    await keychain.setPassword('workbase', 'one', 'kept')
    session.lock()
    expect(await callAllFunctions(keychain)).toEqual(sameForAll(`${driver} locked`))
  })

  test.skipIf(!canTest(driver))(
    'times out if the keychain does not respond, and works again when it does',
    async () => {
      const session = await startSecretService()
      await keychainIn(session, driver).setPassword('workbase', 'one', 'kept')
      const keychain = keychainIn(session, driver, 700)
      session.stall()
      const startedAt = systemClock.now()
      expect(await callAllFunctions(keychain)).toEqual(sameForAll(`${driver} timeout`))
      expect(systemClock.now() - startedAt).toBeLessThan(10_000)
      session.resume()
      await vi.waitFor(() => keychain.setPassword('workbase', 'two', 'again'), { timeout: 10_000 })
    },
  )

  test('reports a missing package', async () => {
    const session = createBareSession()
    const hooks = join(session.folder, 'hooks.mjs')
    const start = join(session.folder, 'start.mjs')
    writeFileSync(
      hooks,
      `export async function resolve(name, context, next) {
        if (['keytar', '@napi-rs/keyring'].includes(name)) throw new Error('not installed')
        return next(name, context)
      }`,
    )
    writeFileSync(start, `import { register } from 'node:module'\nregister('file://${hooks}')`)
    const environment = { ...session.environment, NODE_OPTIONS: `--import=${start}` }
    expect(await callAllFunctions(keychainIn({ ...session, environment }, driver))).toEqual(
      sameForAll(`${driver} missing`),
    )
  })
})

describe('a process whose keychain does not respond', () => {
  describe.each([
    ['keyring', 'wait', 0],
    ['keytar', 'exit', 3],
    ['keyring', 'kill', null],
  ] as const)('%s, %s', (driver, how, status) => {
    test.skipIf(!canTest(driver))('ends, and leaves no process behind', async () => {
      const session = await startSecretService()
      const asking = spawn(process.execPath, [programPath('keychain/ask'), driver, how], {
        env: session.environment,
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      const ended = once(asking, 'exit')
      await once(asking.stdout, 'data')
      expect(workersOf(session)).toHaveLength(1)
      session.stall()
      const startedAt = systemClock.now()
      asking.stdin.write('go\n')
      if (how === 'kill') asking.kill('SIGKILL')
      expect((await ended)[0]).toBe(status)
      // keytar times out after 25 s, and the other library never does.
      expect(systemClock.now() - startedAt).toBeLessThan(15_000)
      await vi.waitFor(() => expect(workersOf(session)).toEqual([]), { timeout: 2000 })
    })
  })
})

test.skipIf(!canTest('keyring'))('the keychain process ends when it is idle', async () => {
  const session = await startSecretService()
  const clock = new TestClock()
  const { entries } = startKeychainProcess('keyring', clock, session.environment)
  await entries.setPassword('workbase', 'one', 'kept')
  const [pid, ...others] = workersOf(session)
  expect(others).toEqual([])
  clock.advance(9_000)
  expect(await entries.getPassword('workbase', 'one')).toBe('kept')
  clock.advance(9_000)
  expect(workersOf(session)).toEqual([pid])
  clock.advance(1_000)
  await expect.poll(() => workersOf(session)).toEqual([])
  expect(await entries.getPassword('workbase', 'one')).toBe('kept')
})

/** Returns the IDs of a session's keychain processes. */
function workersOf({ folder }: Session): string[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        const [line, variables] = ['cmdline', 'environ'].map(file =>
          readFileSync(`/proc/${pid}/${file}`, 'utf8'),
        )
        return line!.includes('keychain/worker.js') && variables!.includes(`HOME=${folder}`)
      } catch {
        // The process has ended in the meantime.
        return false
      }
    })
}
