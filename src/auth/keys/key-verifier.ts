import type { Subject } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ApiKeyRow, tables } from '../../storage/tables.ts'
import type { RequestCredentials, TokenVerifier, VerifiedToken } from '../authenticate.ts'
import type { Admission } from './admission.ts'
import { currentLifetimeMs, principalOfKey, scopesOfKey } from './key-row.ts'
import { KeyUseRecorder } from './key-use-recorder.ts'
import { prefixOf, unmatchableDigest } from './token.ts'
import { type PresentedToken, TokenProofs } from './token-proofs.ts'

/**
 * Verifies API keys. The row is read for every request, so a revocation takes effect with the next one, in
 * every process. Only the result of the digest check is cached.
 *
 * @see docs/requirements.md#S3-03, docs/security.md#rule-10
 */
export class ApiKeyVerifier implements TokenVerifier {
  readonly #proofs: TokenProofs
  readonly #lastUsed: KeyUseRecorder
  /** Substitute for the missing row of an unknown prefix. */
  readonly #none = { workspaceId: '', keyId: '', digest: unmatchableDigest() }

  /** @param parts.tokenKey  secret of the store, used to mark its tokens */
  constructor(
    readonly parts: { rows: RowStore; clock: Clock; log: Log; admission: Admission; tokenKey: string },
  ) {
    this.#proofs = new TokenProofs(parts)
    this.#lastUsed = new KeyUseRecorder(parts)
  }

  verify(token: string, { address }: RequestCredentials): Promise<VerifiedToken> | undefined {
    const prefix = prefixOf(token)
    return prefix === undefined ? undefined : this.#verify({ token, address }, prefix)
  }

  /** Writes pending last-used times. */
  async close(): Promise<void> {
    await this.#lastUsed.close()
  }

  async #verify(claim: PresentedToken, prefix: string): Promise<VerifiedToken> {
    const row = (await this.#provenRow(claim)) ?? (await this.#proveRow(claim, prefix))
    if (!row) throw new WbError('unauthorized', 'the token is not valid')
    // The reason is revealed only here, to a caller with the correct secret.
    if (row.revokedAt !== null) throw inactiveKey('the key was revoked', row)
    if (row.expiresAt !== null && Date.parse(row.expiresAt) <= this.parts.clock.now())
      throw inactiveKey('the key has expired', row)
    this.#lastUsed.note(row)
    return { subject: subjectOfKey(row), expiresAtSeconds: null, keyExpiresAt: row.expiresAt }
  }

  /** Returns the current row of a token that was verified before. */
  async #provenRow({ token }: PresentedToken): Promise<ApiKeyRow | undefined> {
    const proven = this.#proofs.find(token)
    if (!proven) return undefined
    const stored = await this.parts.rows.get(tables.apiKeys, [proven.workspaceId, proven.keyId])
    if (stored?.row.digest === proven.digest) return stored.row
    this.#proofs.forget(token)
    return undefined
  }

  /** Returns the row of a token after verifying it. An unknown prefix takes as long as a wrong secret. */
  async #proveRow(claim: PresentedToken, prefix: string): Promise<ApiKeyRow | undefined> {
    const found = await this.parts.rows.list(tables.apiKeys, {
      index: 'byPrefix',
      prefix: [prefix],
      limit: 1,
    })
    const { workspaceId, keyId, digest } = found[0]?.row ?? this.#none
    const isRight = await this.#proofs.prove(claim, { workspaceId, keyId, digest })
    // Reads again, because the check may have waited for a long time.
    return isRight ? this.#provenRow(claim) : undefined
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
