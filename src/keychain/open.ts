import type { Clock } from '../base/clock.ts'
import { TimedOut, within } from '../base/deadline.ts'
import { divided } from './divided.ts'
import { unavailable } from './faults.ts'
import { fileKeychain } from './file.ts'
import type { Keychain, KeychainDriver } from './keychain.ts'
import type { Library } from './libraries.ts'
import { entriesProcess, type Variables } from './process.ts'

export interface KeychainOptions {
  /** Where the driver `file` keeps its entries: a folder of its own. */
  folder: string
  clock: Clock
  /** By what a library finds the person's session; its process is given these, and no others. */
  environment: Variables
  /** For each call of the five functions, starting the library included; 3000 by default. */
  timeoutMs?: number
}

/**
 * A keychain by its driver; nothing is loaded or started before the first call. No driver stands in for another.
 *
 * Each call has its time, and none keeps this process from ending.
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
      return await within(clock, timeoutMs, () => call)
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
