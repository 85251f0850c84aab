/**
 * Secrets of the current user, identified by a service and an account. The first five functions have the signatures
 * of keytar.
 */
export interface Keychain {
  /** Returns a secret; null if there is no such entry, or if it is incomplete. */
  getPassword(service: string, account: string): Promise<string | null>
  setPassword(service: string, account: string, password: string): Promise<void>
  /** Deletes an entry, and returns true if it existed. */
  deletePassword(service: string, account: string): Promise<boolean>
  /** Returns the password of any account of a service; null if the service has no accounts. */
  findPassword(service: string): Promise<string | null>
  findCredentials(service: string): Promise<KeychainCredential[]>
  /**
   * Returns all accounts that have any data, even if a killed process wrote only a part of it. `deletePassword` removes
   * such parts, too.
   */
  findAccounts(service: string): Promise<string[]>
}

export interface KeychainCredential {
  account: string
  password: string
}

/** Functions that each library implements. The other functions of a keychain are the same for all libraries. */
export type KeychainEntries = Omit<Keychain, 'findPassword' | 'findAccounts'>

/**
 * The software that stores entries. A driver cannot read the entries of another driver, so callers must store which
 * driver they used.
 */
export type KeychainDriver = 'keyring' | 'keytar' | 'file'

/**
 * Reason for a failure. `missing`: the package is not installed. `unavailable`: there is no usable keychain.
 * `locked`: the keychain is locked. `timeout`: the keychain did not respond in time.
 */
export type KeychainFault = 'missing' | 'unavailable' | 'locked' | 'timeout'

/** Error for a keychain that cannot be used. It is unknown if an entry exists. `cause` is the error of the library. */
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
