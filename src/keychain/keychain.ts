/** Secrets of this person, each under a service and an account. The first five functions are those of keytar. */
export interface Keychain {
  /** @returns null where there is no such entry, or where one was only half written */
  getPassword(service: string, account: string): Promise<string | null>
  setPassword(service: string, account: string, password: string): Promise<void>
  /** @returns whether there was such an entry */
  deletePassword(service: string, account: string): Promise<boolean>
  /** The password of any one account. */
  findPassword(service: string): Promise<string | null>
  findCredentials(service: string): Promise<Credential[]>
  /** Accounts of which anything is there, also what a writer that was killed left of one; `deletePassword` removes it. */
  findAccounts(service: string): Promise<string[]>
}

export interface Credential {
  account: string
  password: string
}

/** What a library does; the other functions are the same for all of them. */
export type Entries = Omit<Keychain, 'findPassword' | 'findAccounts'>

/** Where entries are kept. Entries of one driver are not seen by another, so whoever writes one remembers its driver. */
export type KeychainDriver = 'keyring' | 'keytar' | 'file'

/**
 * Why there is no answer: the package is not installed; nothing keeps secrets here, or what does cannot be used; it is
 * locked; it did not answer in time.
 */
export type KeychainFault = 'missing' | 'unavailable' | 'locked' | 'timeout'

/** A keychain could not be used; whether there is an entry is not known. What the library said is the cause. */
export class KeychainUnavailable extends Error {
  override readonly name = 'KeychainUnavailable'

  /**
   * @param message  states the fact
   * @param hint     the next act
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
