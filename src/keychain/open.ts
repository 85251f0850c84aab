import type { Clock } from '../base/clock.ts'
import { TimedOut, withTimeout } from '../base/deadline.ts'
import { divided } from './divided.ts'
import { unavailable } from './faults.ts'
import { fileKeychain } from './file.ts'
import type { Keychain, KeychainDriver } from './keychain.ts'
import type { Library } from './libraries.ts'
import { entriesProcess, type Variables } from './process.ts'

export interface KeychainOptions {
  /** Folder of the driver `file`, used for nothing else. */
  folder: string
  clock: Clock
  /**
   * All environment variables of the library's process. The library needs them to find the user's session.
   */
  environment: Variables
  /** Timeout of each call in milliseconds, including the start of the library; 3000 by default. */
  timeoutMs?: number
}

/**
 * Opens a keychain by its driver. Nothing is loaded or started before the first call. There is no fallback to
 * another driver. Each call has a timeout, and none keeps this process from ending.
 *
 * @returns functions that reject with `KeychainUnavailable`
 */
export function openKeychain(driver: KeychainDriver, options: KeychainOptions): Keychain {
  return driver === 'file' ? fileKeychain(options.folder) : systemKeychain(driver, options)
}

function systemKeychain(library: Library, options: KeychainOptions): Keychain {
  const { clock, environment, timeoutMs = 3000 } = options
  const running = entriesProcess(library, clock, environment)
  const keychain = divided(running.entries)

  async function bounded<T>(call: Promise<T>): Promise<T> {
    try {
      return await withTimeout(clock, timeoutMs, () => call)
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error
      const late = unavailable(library, 'timeout', error)
      running.stop(late)
      throw late
    }
  }

  return {
    getPassword: (service, account) => bounded(keychain.getPassword(service, account)),
    setPassword: (service, account, password) => bounded(keychain.setPassword(service, account, password)),
    deletePassword: (service, account) => bounded(keychain.deletePassword(service, account)),
    findPassword: service => bounded(keychain.findPassword(service)),
    findCredentials: service => bounded(keychain.findCredentials(service)),
    findAccounts: service => bounded(keychain.findAccounts(service)),
  }
}
