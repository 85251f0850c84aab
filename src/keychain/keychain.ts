/**
 * Secrets of the current user, each under a service and an account. The first five functions are those of
 * keytar.
 */
export interface Keychain {
  /** Returns null if there is no such entry, or if it is incomplete. */
  getPassword(service: string, account: string): Promise<string | null>
  setPassword(service: string, account: string, password: string): Promise<void>
  /** Returns true if there was such an entry. */
  deletePassword(service: string, account: string): Promise<boolean>
  /** Returns the password of any account of a service; null if it has none. */
  findPassword(service: string): Promise<string | null>
  findCredentials(service: string): Promise<KeychainCredential[]>
  /**
   * Returns accounts with any data, including leftovers of a killed writer, which `deletePassword` removes.
   */
  findAccounts(service: string): Promise<string[]>
}

export interface KeychainCredential {
  account: string
  password: string
}

/** Functions that a library provides; the others are the same for all libraries. */
export type KeychainEntries = Omit<Keychain, 'findPassword' | 'findAccounts'>

/**
 * Storage of entries. Entries of one driver are not visible to another, so callers must store which driver
 * they used.
 */
export type KeychainDriver = 'keyring' | 'keytar' | 'file'

/**
 * Reason for a failure: the package is not installed; there is no usable keychain; it is locked; it did not
 * respond in time.
 */
export type KeychainFault = 'missing' | 'unavailable' | 'locked' | 'timeout'

/** The keychain could not be used, so it is unknown if an entry exists. The cause is the library's error. */
export class KeychainUnavailable extends Error {
  override readonly name = 'KeychainUnavailable'

  /**
   * @param message  description of the problem
   * @param hint     next step for the user
   */
  constructor(
    readonly driver: KeychainDriver,
    readonly reason: KeychainFault,
    message: string,
    readonly hint: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}
