import { LRUCache } from 'lru-cache'
import type { Subject } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ApiKeyRow, tables } from '../../storage/tables.ts'
import type { RequestCredentials, TokenVerifier, VerifiedToken } from '../authenticate.ts'
import { createKeyedHash } from '../secret-hash.ts'
import type { Admission } from './admission.ts'
import { currentLifetimeMs, principalOfKey, scopesOfKey } from './key-row.ts'
import { KeyUseRecorder } from './key-use-recorder.ts'
import { isMarked, type KeyCost, matchesDigest, prefixOf, unmatchableDigest } from './token.ts'

const verifiedMax = 10_000
const refusedMax = 10_000

export interface ApiKeyVerifierParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly admission: Admission
  /** Secret of the store, used to mark its tokens. */
  readonly tokenKey: string
  readonly keyCost: KeyCost
}

/** A presented token, its hash, and the client that sent it. */
interface PresentedKey {
  readonly token: string
  readonly hash: string
  readonly client: string
}

/** A key, and the digest that its token was verified against. */
type VerifiedKey = Pick<ApiKeyRow, 'workspaceId' | 'keyId' | 'digest'>

/**
 * Verifies API keys. The row is read for every request, so a revocation takes effect with the next one, in
 * every process. Only the result of the digest check is cached, by a hash of the token with a key that exists
 * only in this object.
 *
 * @see docs/requirements.md#S3-03, docs/security.md#rule-10
 */
export class ApiKeyVerifier implements TokenVerifier {
  readonly #hash = createKeyedHash()
  /** Verified keys by token hash. */
  readonly #verified = new LRUCache<string, VerifiedKey>({ max: verifiedMax })
  /** By token hash, the digest that the token does not match. A changed row is checked again. */
  readonly #refused = new LRUCache<string, string>({ max: refusedMax })
  /** Running digest checks. */
  readonly #checks = new Map<string, Promise<boolean>>()
  readonly #lastUsed: KeyUseRecorder
  /** Substitute for the missing row of an unknown prefix. */
  readonly #unmatchableKey: VerifiedKey = { workspaceId: '', keyId: '', digest: unmatchableDigest() }

  constructor(private readonly parts: ApiKeyVerifierParts) {
    this.#lastUsed = new KeyUseRecorder(parts)
  }

  verify(token: string, { client }: RequestCredentials): Promise<VerifiedToken> | undefined {
    const prefix = prefixOf(token)
    return prefix === undefined ? undefined : this.#verify({ token, hash: this.#hash(token), client }, prefix)
  }

  async #verify(presented: PresentedKey, prefix: string): Promise<VerifiedToken> {
    const row = (await this.#verifiedRow(presented)) ?? (await this.#verifyRow(presented, prefix))
    if (!row) throw new WbError('unauthorized', 'the token is not valid')
    // The reason is revealed only here, to a caller with the correct secret.
    if (row.revokedAt !== null) throw inactiveKey('the key was revoked', row)
    if (row.expiresAt !== null && Date.parse(row.expiresAt) <= this.parts.clock.now())
      throw inactiveKey('the key has expired', row)
    this.#lastUsed.record(row)
    return { subject: subjectOfKey(row), expiresAtSeconds: null, keyExpiresAt: row.expiresAt }
  }

  /** Returns the current row of a token that was verified before. */
  async #verifiedRow({ hash }: PresentedKey): Promise<ApiKeyRow | undefined> {
    const proven = this.#verified.get(hash)
    if (!proven) return undefined
    const stored = await this.parts.rows.get(tables.apiKeys, [proven.workspaceId, proven.keyId])
    if (stored?.row.digest === proven.digest) return stored.row
    this.#verified.delete(hash)
    return undefined
  }

  /** Returns the row of a token after verifying it. An unknown prefix takes as long as a wrong secret. */
  async #verifyRow(presented: PresentedKey, prefix: string): Promise<ApiKeyRow | undefined> {
    const found = await this.parts.rows.list(tables.apiKeys, {
      index: 'byPrefix',
      prefix: [prefix],
      limit: 1,
    })
    const { workspaceId, keyId, digest } = found[0]?.row ?? this.#unmatchableKey
    const isRight = await this.#matches(presented, { workspaceId, keyId, digest })
    // Reads again, because the check may have waited for a long time.
    return isRight ? this.#verifiedRow(presented) : undefined
  }

  /**
   * Returns true if a token matches the digest of a key. Equal checks of a client share one result.
   *
   * @throws rate_limited  when too many tokens of the client are waiting
   */
  async #matches(presented: PresentedKey, key: VerifiedKey): Promise<boolean> {
    const { token, hash, client } = presented
    if (this.#refused.get(hash) === key.digest) return false
    // By client, so that no client waits in the queue of another one.
    const checkKey = [hash, key.digest, client].join()
    let check = this.#checks.get(checkKey)
    if (!check) {
      const { admission, tokenKey } = this.parts
      const queue = isMarked(token, tokenKey) ? 'marked' : 'unmarked'
      check = admission
        .run({ queue, client }, () => this.#check(presented, key))
        .finally(() => this.#checks.delete(checkKey))
      this.#checks.set(checkKey, check)
    }
    return check
  }

  async #check({ token, hash }: PresentedKey, key: VerifiedKey): Promise<boolean> {
    // Another client may have had the same token verified while this check waited.
    if (this.#verified.get(hash)?.digest === key.digest) return true
    const isRight = await matchesDigest(token, key.digest, this.parts.keyCost)
    if (isRight) this.#verified.set(hash, key)
    else this.#refused.set(hash, key.digest)
    return isRight
  }

  /** Writes pending last-used times. */
  async close(): Promise<void> {
    await this.#lastUsed.close()
  }
}

/**
 * Returns the error for a revoked or expired key, with the facts that let the workspace's audit trail name
 * the key.
 */
function inactiveKey(message: string, { workspaceId, keyId }: ApiKeyRow): WbError {
  return new WbError('unauthorized', message, { ofWorkspace: workspaceId, keyId })
}

function subjectOfKey(row: ApiKeyRow): Subject {
  const { workspaceId, keyId, label } = row
  return {
    id: keyId,
    label,
    type: 'apiKey',
    workspaceScopes: [workspaceId],
    scopes: scopesOfKey(row),
    role: null,
    principalId: principalOfKey(row),
    grantSpanMs: currentLifetimeMs(row),
  }
}
