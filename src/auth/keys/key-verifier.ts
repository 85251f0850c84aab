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
import { hasValidChecksum, type KeyCost, matchesDigest, prefixOf, unmatchableDigest } from './token.ts'

const verifiedMax = 10_000
const mismatchedMax = 10_000

export interface ApiKeyVerifierParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly admission: Admission
  /** Secret of the store, from which the checksums of its tokens are derived. */
  readonly tokenKey: string
  readonly keyCost: KeyCost
}

/** A presented token, its hash, and the client that sent it. */
interface PresentedKey {
  readonly token: string
  readonly hash: string
  readonly client: string
}

/** A key, and the digest that its token matched. */
type VerifiedKey = Pick<ApiKeyRow, 'workspaceId' | 'keyId' | 'digest'>

/**
 * Verifies API keys. The row is read for every request, so a revocation takes effect with the next request, in
 * every process. Only the result of the digest check is cached, by a hash of the token. The key of that hash
 * exists only in this object.
 *
 * @see docs/requirements.md#S3-03, docs/security.md#rule-10
 */
export class ApiKeyVerifier implements TokenVerifier {
  readonly #hash = createKeyedHash()
  /** Verified keys by token hash. */
  readonly #verified = new LRUCache<string, VerifiedKey>({ max: verifiedMax })
  /** Digests that tokens did not match, by token hash. If the digest changes, the token is checked again. */
  readonly #mismatched = new LRUCache<string, string>({ max: mismatchedMax })
  /** Digest checks in progress. */
  readonly #checks = new Map<string, Promise<boolean>>()
  readonly #lastUsed: KeyUseRecorder
  /** Checked instead of a row if the prefix of a token is unknown. */
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
    // These errors reveal that the key exists, but only to a caller with the correct secret.
    if (row.revokedAt !== null) throw inactiveKey('the key was revoked', row)
    if (row.expiresAt !== null && Date.parse(row.expiresAt) <= this.parts.clock.now())
      throw inactiveKey('the key has expired', row)
    this.#lastUsed.record(row)
    return { subject: subjectOfKey(row), expiresAtSeconds: null, keyExpiresAt: row.expiresAt }
  }

  /** Returns the current row of a token that was verified before. */
  async #verifiedRow({ hash }: PresentedKey): Promise<ApiKeyRow | undefined> {
    const verified = this.#verified.get(hash)
    if (!verified) return undefined
    const stored = await this.parts.rows.get(tables.apiKeys, [verified.workspaceId, verified.keyId])
    if (stored?.row.digest === verified.digest) return stored.row
    this.#verified.delete(hash)
    return undefined
  }

  /** Verifies a token, and returns its row. An unknown prefix takes as long as a wrong secret. */
  async #verifyRow(presented: PresentedKey, prefix: string): Promise<ApiKeyRow | undefined> {
    const rows = await this.parts.rows.list(tables.apiKeys, {
      index: 'byPrefix',
      prefix: [prefix],
      limit: 1,
    })
    const { workspaceId, keyId, digest } = rows[0]?.row ?? this.#unmatchableKey
    const isMatch = await this.#matches(presented, { workspaceId, keyId, digest })
    // Reads the row again, because the check may have waited for a long time.
    return isMatch ? this.#verifiedRow(presented) : undefined
  }

  /**
   * Returns true if a token matches the digest of a key. Identical checks of a client share one result.
   *
   * @throws rate_limited  when too many tokens of the client are waiting
   */
  async #matches(presented: PresentedKey, key: VerifiedKey): Promise<boolean> {
    const { token, hash, client } = presented
    if (this.#mismatched.get(hash) === key.digest) return false
    // The key includes the client, so that no client waits for a check in the queue of another client.
    const checkKey = [hash, key.digest, client].join()
    let check = this.#checks.get(checkKey)
    if (!check) {
      const { admission, tokenKey } = this.parts
      const queue = hasValidChecksum(token, tokenKey) ? 'withChecksum' : 'withoutChecksum'
      check = admission
        .run({ queue, client }, () => this.#check(presented, key))
        .finally(() => this.#checks.delete(checkKey))
      this.#checks.set(checkKey, check)
    }
    return check
  }

  async #check({ token, hash }: PresentedKey, key: VerifiedKey): Promise<boolean> {
    // A check for another client may have verified this token while this check waited.
    if (this.#verified.get(hash)?.digest === key.digest) return true
    const isMatch = await matchesDigest(token, key.digest, this.parts.keyCost)
    if (isMatch) this.#verified.set(hash, key)
    else this.#mismatched.set(hash, key.digest)
    return isMatch
  }

  /** Writes pending last-used times. */
  async close(): Promise<void> {
    await this.#lastUsed.close()
  }
}

/**
 * Returns the error for a revoked or expired key. Its facts are used to name the key in the workspace's audit
 * trail.
 */
function inactiveKey(message: string, { workspaceId, keyId }: ApiKeyRow): WbError {
  return new WbError('unauthorized', message, { auditWorkspaceId: workspaceId, keyId })
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
    keyLifetimeMaxMs: currentLifetimeMs(row),
  }
}
