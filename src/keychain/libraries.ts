import type { Entries, KeychainFault } from './keychain.ts'

/** The drivers that are packages with native parts. They are loaded in a process of their own, see `process.ts`. */
export type Library = 'keyring' | 'keytar'

/** @throws as `import` does, when a package or its native part is not installed */
export const libraries: Record<Library, () => Promise<Entries>> = { keyring, keytar }

/**
 * The driver that is used by default.
 *
 * Without the option it keeps secrets in the kernel's keyring where no Secret Service answers, and they are gone after
 * the next start of the machine.
 */
async function keyring(): Promise<Entries> {
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
 * On Linux it answers for a locked keychain as for one that has no such entry, and brings its process down when it is
 * to list locked entries; so whenever it found nothing, and before it lists, the other library is asked.
 *
 * @see https://github.com/atom/node-keytar/issues/477
 */
async function keytar(): Promise<Entries> {
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

/** @throws what the library says of a service that has a locked entry, whichever library wrote that */
async function refuseLocked(service: string): Promise<void> {
  if (process.platform !== 'linux') return
  try {
    const { findCredentialsAsync } = await import('@napi-rs/keyring')
    await findCredentialsAsync(service)
  } catch (error) {
    if (faultOf(error) === 'locked') throw error
  }
}

/** Neither library tells its errors apart by more than their text. */
const texts: [pattern: RegExp, fault: KeychainFault][] = [
  [/islocked|locked (?:object|collection)|prompt was dismissed/i, 'locked'],
  // macOS, where nobody sits at the screen, and where somebody said no.
  [/interaction is not allowed|user canceled/i, 'locked'],
  [/timeout was reached|did not receive a reply/i, 'timeout'],
]

/** What an error of either library means. */
export function faultOf(error: unknown): KeychainFault {
  return texts.find(([pattern]) => pattern.test(String(error)))?.[1] ?? 'unavailable'
}
