import type { KeychainEntries, KeychainFault } from './keychain.ts'

/** Drivers that are packages with native code. They run in a separate process, see `process.ts`. */
export type KeychainLibrary = 'keyring' | 'keytar'

/** @throws Error  when a package or its native part is not installed */
export const loadLibrary: Record<KeychainLibrary, () => Promise<KeychainEntries>> = {
  keyring: loadKeyring,
  keytar: loadKeytar,
}

/**
 * Loads the default driver.
 *
 * Without the option `store`, and if no Secret Service responds, it would store secrets in the kernel's
 * keyring, which is cleared when the machine restarts.
 */
async function loadKeyring(): Promise<KeychainEntries> {
  const { AsyncEntry, findCredentialsAsync } = await import('@napi-rs/keyring')
  const entry = (service: string, account: string) =>
    new AsyncEntry(service, account, { linux: { store: 'secret-service' } })
  return {
    getPassword: async (service, account) => entry(service, account).getPassword(),
    setPassword: async (service, account, password) => entry(service, account).setPassword(password),
    deletePassword: async (service, account) => entry(service, account).deletePassword(),
    findCredentials: findCredentialsAsync,
  }
}

/**
 * Loads keytar. On Linux, it reports a locked keychain as a missing entry, and crashes its process when it
 * lists locked entries. So the other library checks for a lock before a listing, and after an entry was not
 * found.
 *
 * @see https://github.com/atom/node-keytar/issues/477
 */
async function loadKeytar(): Promise<KeychainEntries> {
  const { default: library } = await import('keytar')
  return {
    async getPassword(service, account) {
      const password = await library.getPassword(service, account)
      if (password === null) await refuseLocked(service)
      return password
    },
    setPassword: library.setPassword,
    async deletePassword(service, account) {
      const existed = await library.deletePassword(service, account)
      if (!existed) await refuseLocked(service)
      return existed
    },
    async findCredentials(service) {
      await refuseLocked(service)
      return library.findCredentials(service)
    },
  }
}

/** @throws Error  from the library, when a service has a locked entry of either library */
async function refuseLocked(service: string): Promise<void> {
  if (process.platform !== 'linux') return
  try {
    const { findCredentialsAsync } = await import('@napi-rs/keyring')
    await findCredentialsAsync(service)
  } catch (error) {
    if (keychainFaultOf(error) === 'locked') throw error
  }
}

/** Both libraries distinguish their errors only by text. */
const texts: [pattern: RegExp, fault: KeychainFault][] = [
  [/islocked|locked (?:object|collection)|prompt was dismissed/i, 'locked'],
  // macOS, without a user at the screen, or after the user declined.
  [/interaction is not allowed|user canceled/i, 'locked'],
  [/timeout was reached|did not receive a reply/i, 'timeout'],
]

/** Returns the kind of a library error. */
export function keychainFaultOf(error: unknown): KeychainFault {
  return texts.find(([pattern]) => pattern.test(String(error)))?.[1] ?? 'unavailable'
}
