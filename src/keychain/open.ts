import type { Clock } from '../base/clock.ts'
import { TimedOut, withTimeout } from '../base/deadline.ts'
import { createChunkedKeychain } from './chunked-keychain.ts'
import { libraryUnavailable } from './faults.ts'
import { createFileKeychain } from './file-keychain.ts'
import type { Keychain, KeychainDriver } from './keychain.ts'
import { type ProcessVariables, startKeychainProcess } from './keychain-process.ts'
import type { KeychainLibrary } from './libraries.ts'

export interface KeychainOptions {
  /** Folder for the driver `file`. It must contain only keychain files. */
  folder: string
  clock: Clock
  /**
   * Environment variables of the library's process. The library needs them to find the user's session.
   */
  environment: ProcessVariables
  /** Timeout of each call in milliseconds, including the start of the library; 3000 by default. */
  timeoutMs?: number
}

/**
 * Opens the keychain of a driver. The first call loads the driver. There is no fallback to another driver. Each call
 * has a timeout. After the timeout, the call does not keep this process alive.
 *
 * @returns a keychain whose functions reject with `KeychainUnavailable`
 */
export function openKeychain(driver: KeychainDriver, options: KeychainOptions): Keychain {
  return driver === 'file' ? createFileKeychain(options.folder) : systemKeychain(driver, options)
}

function systemKeychain(library: KeychainLibrary, options: KeychainOptions): Keychain {
  const { clock, environment, timeoutMs = 3000 } = options
  const entriesProcess = startKeychainProcess(library, clock, environment)
  const keychain = createChunkedKeychain(entriesProcess.entries)

  async function withCallTimeout<T>(call: Promise<T>): Promise<T> {
    try {
      return await withTimeout(clock, timeoutMs, () => call)
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error
      const timeoutError = libraryUnavailable(library, 'timeout', error)
      entriesProcess.stop(timeoutError)
      throw timeoutError
    }
  }

  return {
    getPassword: (service, account) => withCallTimeout(keychain.getPassword(service, account)),
    setPassword: (service, account, password) =>
      withCallTimeout(keychain.setPassword(service, account, password)),
    deletePassword: (service, account) => withCallTimeout(keychain.deletePassword(service, account)),
    findPassword: service => withCallTimeout(keychain.findPassword(service)),
    findCredentials: service => withCallTimeout(keychain.findCredentials(service)),
    findAccounts: service => withCallTimeout(keychain.findAccounts(service)),
  }
}
