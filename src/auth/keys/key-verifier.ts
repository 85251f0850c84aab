import { LRUCache } from 'lru-cache'
import { principalOfKey } from '../../access/principal-of-key.ts'
import type { Subject } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ApiKeyRow, tables } from '../../storage/tables.ts'
import type { RequestCredentials, TokenVerifier, VerifiedToken } from '../authenticate.ts'
import { createKeyedHash } from '../secret-hash.ts'
import type { Admission } from './admission.ts'
import { currentLifetimeMs, scopesOfKey } from './key-row.ts'
import { KeyUseRecorder } from './key-use-recorder.ts'
import { hasValidChecksum, type KeyCost, matchesDigest, prefixOf, unmatchableDigest } from './token.ts'

const verifiedMax = 10_000
const mismatchedMax = 10_000

export interface ApiKeyVerifierDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly admission: Admission
  /** Secret of the store, from which the checksums of tokens are derived. */
  readonly tokenKey: string
  readonly keyCost: KeyCost
}

/** A token in a request, its hash, and the client that sent it. */
interface PresentedKey {
  readonly token: string
  readonly hash: string
  readonly client: string
}

/** A key, and the digest that a token matched. */
type VerifiedKey = Pick<ApiKeyRow, 'workspaceId' | 'keyId' | 'digest'>

/**
 * Verifies API keys. The row is read for every request, so a revocation takes effect with the next request in
 * every process. Only the result of the digest check is cached, by a keyed hash of the token. The hash key exists only
 * in this object.
 *
 * @see docs/requirements.md#S3-03, docs/security.md#rule-10
 */
export class ApiKeyVerifier implements TokenVerifier {
  readonly #hash = createKeyedHash()
  /** Verified keys by token hash. */
  readonly #verified = new LRUCache<string, VerifiedKey>({ max: verifiedMax })
  /** Digests that tokens did not match, by token hash. A token is checked again if the digest of its key changes. */
  readonly #mismatched = new LRUCache<string, string>({ max: mismatchedMax })
  /** Digest checks in progress. */
  readonly #checks = new Map<string, Promise<boolean>>()
  readonly #lastUsed: KeyUseRecorder
  /** Checked instead of a stored key if the prefix of a token is unknown. */
  readonly #unmatchableKey: VerifiedKey = { workspaceId: '', keyId: '', digest: unmatchableDigest() }

  constructor(private readonly deps: ApiKeyVerifierDependencies) {
    this.#lastUsed = new KeyUseRecorder(deps)
  }

  verify(token: string, { client }: RequestCredentials): Promise<VerifiedToken> | undefined {
    const prefix = prefixOf(token)
    return prefix === undefined ? undefined : this.#verify({ token, hash: this.#hash(token), client }, prefix)
  }

  async #verify(presented: PresentedKey, prefix: string): Promise<VerifiedToken> {
    const row = (await this.#verifiedRow(presented)) ?? (await this.#verifyRow(presented, prefix))
    if (!row) throw new WbError('unauthorized', 'the token is not valid')
    // These errors reveal that the key exists, but only to a caller who knows its secret.
    if (row.revokedAt !== null) throw inactiveKey('the key was revoked', row)
    if (row.expiresAt !== null && Date.parse(row.expiresAt) <= this.deps.clock.now())
      throw inactiveKey('the key has expired', row)
    this.#lastUsed.record(row)
    return { subject: subjectOfKey(row), expiresAtSeconds: null, keyExpiresAt: row.expiresAt }
  }

  /** Returns the current row of a token that has already been verified; undefined if it must be verified again. */
  async #verifiedRow({ hash }: PresentedKey): Promise<ApiKeyRow | undefined> {
    const verified = this.#verified.get(hash)
    if (!verified) return undefined
    const stored = await this.deps.rows.get(tables.apiKeys, [verified.workspaceId, verified.keyId])
    if (stored?.row.digest === verified.digest) return stored.row
    this.#verified.delete(hash)
    return undefined
  }

  /** Verifies a token, and returns its row. This takes as long for an unknown prefix as for a wrong secret. */
  async #verifyRow(presented: PresentedKey, prefix: string): Promise<ApiKeyRow | undefined> {
    const rows = await this.deps.rows.list(tables.apiKeys, {
      index: 'byPrefix',
      prefix: [prefix],
      limit: 1,
    })
    const { workspaceId, keyId, digest } = rows[0]?.row ?? this.#unmatchableKey
    const isMatch = await this.#matches(presented, { workspaceId, keyId, digest })
    // Read the row again, because the check may have waited for a long time.
    return isMatch ? this.#verifiedRow(presented) : undefined
  }

  /**
   * Returns true if a token matches the digest of a key. Concurrent checks of the same token from one client share one
   * result.
   *
   * @throws rate_limited  when too many tokens from the client are waiting to be verified
   */
  async #matches(presented: PresentedKey, key: VerifiedKey): Promise<boolean> {
    const { token, hash, client } = presented
    if (this.#mismatched.get(hash) === key.digest) return false
    // The key includes the client, so that no client waits for a check in the queue of another client.
    const checkKey = [hash, key.digest, client].join()
    let check = this.#checks.get(checkKey)
    if (!check) {
      const { admission, tokenKey } = this.deps
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
    const isMatch = await matchesDigest(token, key.digest, this.deps.keyCost)
    if (isMatch) this.#verified.set(hash, key)
    else this.#mismatched.set(hash, key.digest)
    return isMatch
  }

  /** Writes the pending times of last uses. */
  async close(): Promise<void> {
    await this.#lastUsed.close()
  }
}

/**
 * Returns the error for a revoked or expired key. Its facts identify the key in the audit trail of the workspace.
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
