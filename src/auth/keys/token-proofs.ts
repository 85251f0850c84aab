import { LRUCache } from 'lru-cache'
import { createKeyedHash } from '../secret-hash.ts'
import type { Admission } from './admission.ts'
import { isMarked, matchesDigest } from './token.ts'

const validTokensMax = 10_000
const invalidTokensMax = 10_000

/** A key, and the digest that its token was verified against. */
export interface KeyProof {
  readonly workspaceId: string
  readonly keyId: string
  readonly digest: string
}

/** A presented token, and the address it came from. */
export interface PresentedToken {
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
export class TokenProofs {
  readonly #hash = createKeyedHash()
  readonly #valid = new LRUCache<string, KeyProof>({ max: validTokensMax })
  /** By token hash, the digest that the token does not match. A changed row is checked again. */
  readonly #invalid = new LRUCache<string, string>({ max: invalidTokensMax })
  readonly #checks = new Map<string, Promise<boolean>>()

  /** @param parts.tokenKey  secret of the store, used to mark its tokens */
  constructor(private readonly parts: { admission: Admission; tokenKey: string }) {}

  /** Returns the key of a token that was verified before. */
  find(token: string): KeyProof | undefined {
    return this.#valid.get(this.#hash(token))
  }

  /** Removes a token from the verified ones. */
  forget(token: string): void {
    this.#valid.delete(this.#hash(token))
  }

  /**
   * Returns true if a token matches a row. The result is cached.
   *
   * @throws rate_limited  when too many tokens of the client are waiting
   */
  async prove({ token, address }: PresentedToken, row: KeyProof): Promise<boolean> {
    const hash = this.#hash(token)
    if (this.#invalid.get(hash) === row.digest) return false
    // By address, so that no client waits in another client's queue.
    const name = [hash, row.digest, address].join()
    let check = this.#checks.get(name)
    if (!check) {
      const { admission, tokenKey } = this.parts
      const queue = isMarked(token, tokenKey) ? 'marked' : 'unmarked'
      check = admission
        .run({ queue, client: address }, () => this.#check(hash, token, row))
        .finally(() => this.#checks.delete(name))
      this.#checks.set(name, check)
    }
    return check
  }

  async #check(hash: string, token: string, row: KeyProof): Promise<boolean> {
    // Another client may have had the same token verified while this check waited.
    if (this.#valid.get(hash)?.digest === row.digest) return true
    const isRight = await matchesDigest(token, row.digest)
    if (isRight) this.#valid.set(hash, row)
    else this.#invalid.set(hash, row.digest)
    return isRight
  }
}
