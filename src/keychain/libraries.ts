import type { KeychainEntries, KeychainFault } from './keychain.ts'

/** Drivers that are packages with native code. They run in a separate process (see `keychain-process.ts`). */
export type KeychainLibrary = 'keyring' | 'keytar'

/** Functions that load a library. @throws Error  the package or its native module is not installed */
export const loadLibrary: Record<KeychainLibrary, () => Promise<KeychainEntries>> = {
  keyring: loadKeyring,
  keytar: loadKeytar,
}

/**
 * Loads `@napi-rs/keyring`, the default driver.
 *
 * Without the option `store`, if no Secret Service responds, the library would store secrets in the kernel's keyring.
 * They would be lost when the machine restarts.
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
 * Loads keytar. On Linux, keytar reports a locked keychain as a missing entry, and crashes its process when it lists
 * locked entries. Therefore, `@napi-rs/keyring` is used to check if the keychain is locked, before entries are listed
 * and after an entry was not found.
 *
 * @see https://github.com/atom/node-keytar/issues/477
 */
async function loadKeytar(): Promise<KeychainEntries> {
  const { default: library } = await import('keytar')
  return {
    async getPassword(service, account) {
      const password = await library.getPassword(service, account)
      if (password === null) await requireUnlocked(service)
      return password
    },
    setPassword: library.setPassword,
    async deletePassword(service, account) {
      const existed = await library.deletePassword(service, account)
      if (!existed) await requireUnlocked(service)
      return existed
    },
    async findCredentials(service) {
      await requireUnlocked(service)
      return library.findCredentials(service)
    },
  }
}

/** @throws Error  the service has a locked entry; the error is thrown by `@napi-rs/keyring` */
async function requireUnlocked(service: string): Promise<void> {
  if (process.platform !== 'linux') return
  try {
    const { findCredentialsAsync } = await import('@napi-rs/keyring')
    await findCredentialsAsync(service)
  } catch (error) {
    if (keychainFaultOf(error) === 'locked') throw error
  }
}

/** Patterns for error messages. The libraries have no error codes. */
const faultPatterns: [pattern: RegExp, fault: KeychainFault][] = [
  [/islocked|locked (?:object|collection)|prompt was dismissed/i, 'locked'],
  // Errors on macOS if the user cannot be asked, or declined.
  [/interaction is not allowed|user canceled/i, 'locked'],
  [/timeout was reached|did not receive a reply/i, 'timeout'],
]

/** Returns the fault that caused a library error. */
export function keychainFaultOf(error: unknown): KeychainFault {
  return faultPatterns.find(([pattern]) => pattern.test(String(error)))?.[1] ?? 'unavailable'
}
