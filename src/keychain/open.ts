import type { Clock } from '../base/clock.ts'
import { TimedOut, withTimeout } from '../base/deadline.ts'
import { createDividedKeychain } from './divided-keychain.ts'
import { type ProcessVariables, startEntriesProcess } from './entries-process.ts'
import { libraryUnavailable } from './faults.ts'
import { createFileKeychain } from './file-keychain.ts'
import type { Keychain, KeychainDriver } from './keychain.ts'
import type { KeychainLibrary } from './libraries.ts'

export interface KeychainOptions {
  /** Folder of the driver `file`, used for nothing else. */
  folder: string
  clock: Clock
  /**
   * All environment variables of the library's process. The library needs them to find the user's session.
   */
  environment: ProcessVariables
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
  return driver === 'file' ? createFileKeychain(options.folder) : systemKeychain(driver, options)
}

function systemKeychain(library: KeychainLibrary, options: KeychainOptions): Keychain {
  const { clock, environment, timeoutMs = 3000 } = options
  const running = startEntriesProcess(library, clock, environment)
  const keychain = createDividedKeychain(running.entries)

  async function bounded<T>(call: Promise<T>): Promise<T> {
    try {
      return await withTimeout(clock, timeoutMs, () => call)
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error
      const late = libraryUnavailable(library, 'timeout', error)
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
