import { LRUCache } from 'lru-cache'
import { keyedHash } from '../hash.ts'
import type { Admission } from './admission.ts'
import { isDigestOf, isMarked } from './token.ts'

const provenMax = 10_000
const refusedMax = 10_000

/** Whose token it was, and by which digest. */
export interface Proven {
  readonly workspaceId: string
  readonly keyId: string
  readonly digest: string
}

/** A token that was presented, and from where. */
export interface Claim {
  readonly token: string
  /** IP address of the client, an IPv6 one as its /64. */
  readonly address: string
}

/**
 * What this process knows of tokens: which ones are right, which ones are wrong, and which it is looking into. Tokens
 * stand here as keyed hashes, whose key lives in this object only.
 *
 * @see docs/security.md#rule-10
 */
export class Proofs {
  readonly #hash = keyedHash()
  readonly #proven = new LRUCache<string, Proven>({ max: provenMax })
  /** The digest that a token is not of: a changed row is a new question. */
  readonly #refused = new LRUCache<string, string>({ max: refusedMax })
  readonly #checks = new Map<string, Promise<boolean>>()

  /** @param parts.tokenKey  secret of the store, which its tokens are marked by */
  constructor(private readonly parts: { admission: Admission; tokenKey: string }) {}

  /** What a token was found to be. */
  proven(token: string): Proven | undefined {
    return this.#proven.get(this.#hash(token))
  }

  /** What a token was found to be does not hold any more. */
  forget(token: string): void {
    this.#proven.delete(this.#hash(token))
  }

  /**
   * Whether a token is the one of a row; found out once.
   *
   * @throws rate_limited  too much of the client waits
   */
  async prove({ token, address }: Claim, row: Proven): Promise<boolean> {
    const hash = this.#hash(token)
    if (this.#refused.get(hash) === row.digest) return false
    // By address, so that nobody waits in the queue of another.
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
    // While this one waited, another client may have shown the same token.
    if (this.#proven.get(hash)?.digest === row.digest) return true
    const isRight = await isDigestOf(token, row.digest)
    if (isRight) this.#proven.set(hash, row)
    else this.#refused.set(hash, row.digest)
    return isRight
  }
}
