import { LRUCache } from 'lru-cache'
import { keyedHash } from '../hash.ts'
import type { Admission } from './admission.ts'
import { isDigestOf, isMarked } from './token.ts'

const provenMax = 10_000
const refusedMax = 10_000

/** A key, and the digest that its token was verified against. */
export interface Proven {
  readonly workspaceId: string
  readonly keyId: string
  readonly digest: string
}

/** A presented token, and the address it came from. */
export interface Claim {
  readonly token: string
  /** IP address of the client, an IPv6 address as its /64. */
  readonly address: string
}

/**
 * Caches which tokens are valid or invalid, and shares running checks. Tokens are stored only as hashes, with
 * a key that exists only in this object.
 *
 * @see docs/security.md#rule-10
 */
export class Proofs {
  readonly #hash = keyedHash()
  readonly #proven = new LRUCache<string, Proven>({ max: provenMax })
  /** By token hash, the digest that the token does not match. A changed row is checked again. */
  readonly #refused = new LRUCache<string, string>({ max: refusedMax })
  readonly #checks = new Map<string, Promise<boolean>>()

  /** @param parts.tokenKey  secret of the store, used to mark its tokens */
  constructor(private readonly parts: { admission: Admission; tokenKey: string }) {}

  /** Returns the key of a token that was verified before. */
  proven(token: string): Proven | undefined {
    return this.#proven.get(this.#hash(token))
  }

  /** Removes a token from the verified ones. */
  forget(token: string): void {
    this.#proven.delete(this.#hash(token))
  }

  /**
   * Returns true if a token matches a row. The result is cached.
   *
   * @throws rate_limited  when too many tokens of the client are waiting
   */
  async prove({ token, address }: Claim, row: Proven): Promise<boolean> {
    const hash = this.#hash(token)
    if (this.#refused.get(hash) === row.digest) return false
    // By address, so that no client waits in another client's queue.
    const name = [hash, row.digest, address].join()
    let check = this.#checks.get(name)
    if (!check) {
      const { admission, tokenKey } = this.parts
      const lane = isMarked(token, tokenKey) ? 'marked' : 'unmarked'
      check = admission
        .run({ lane, client: address }, () => this.#check(hash, token, row))
        .finally(() => this.#checks.delete(name))
      this.#checks.set(name, check)
    }
    return check
  }

  async #check(hash: string, token: string, row: Proven): Promise<boolean> {
    // Another client may have had the same token verified while this check waited.
    if (this.#proven.get(hash)?.digest === row.digest) return true
    const isRight = await isDigestOf(token, row.digest)
    if (isRight) this.#proven.set(hash, row)
    else this.#refused.set(hash, row.digest)
    return isRight
  }
}
