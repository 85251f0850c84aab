import type { Caller } from '../../access/caller.ts'
import { principalOfKey } from '../../access/principal-of-key.ts'
import { requireWorkspace, workspaceNotFound } from '../../access/require-workspace.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import type { AuditDetails } from '../../contract/audit-record.ts'
import { WbError } from '../../contract/errors.ts'
import type { ApiKey, ApiKeyCreate, ApiKeyRotate } from '../../contract/keys.ts'
import type { PageQuery } from '../../contract/page.ts'
import { changeRow } from '../../storage/change-row.ts'
import type { Pager, RowPage } from '../../storage/cursor.ts'
import type { RowStore, Write } from '../../storage/rows.ts'
import { type ApiKeyRow, tables } from '../../storage/tables.ts'
import type { Admission } from './admission.ts'
import { checkGrant, earlierExpiry, expiryAfter, expiryOfNewKey, type KeyGrant } from './grants.ts'
import { originalLifetimeMs, scopesOfKey, toApiKey } from './key-row.ts'
import { digestToken, type KeyCost, newToken } from './token.ts'

/** A new key and its token, which is returned only once. */
export interface CreatedKey {
  readonly plaintext: string
  readonly key: ApiKey
}

interface KeyAddress {
  readonly workspaceId: string
  readonly keyId: string
}

interface NewKey extends KeyGrant {
  readonly workspaceId: string
  readonly label: string
  /** Current time in milliseconds since 1970. */
  readonly now: number
  readonly expiresAt: string | null
}

/**
 * Creates, lists, rotates and revokes API keys.
 *
 * @see docs/requirements.md#api-keys, docs/requirements.md#life-cycle-of-keys-and-sessions
 */
export class ApiKeys {
  /** @param deps.tokenKey  secret of the store, from which the checksums of tokens are derived */
  constructor(
    readonly deps: {
      rows: RowStore
      pager: Pager
      clock: Clock
      admission: Admission
      tokenKey: string
      keyCost: KeyCost
    },
  ) {}

  /**
   * Lists the keys of a workspace in order of creation, including revoked ones.
   *
   * @throws workspace_not_found
   * @throws invalid_cursor       when the cursor is for another list
   */
  async list(workspaceId: string, query: PageQuery): Promise<RowPage<ApiKey>> {
    await requireWorkspace(this.deps.rows, workspaceId)
    const byWorkspace = { index: 'byWorkspace', prefix: [workspaceId] }
    const { items, nextCursor } = await this.deps.pager.page(tables.apiKeys, byWorkspace, query)
    return { items: items.map(toApiKey), nextCursor }
  }

  /**
   * Creates a key. Only the result contains the token, because the token is not stored.
   *
   * @throws workspace_not_found
   * @throws validation_error     when `expiresAt` is not in the future
   * @throws forbidden            when the key would have more rights than the caller may grant
   * @throws rate_limited         when too many keys of the workspace are being created
   * @throws unauthorized         when the caller lost access during the request
   */
  async create(
    workspaceId: string,
    { label, scopes, principalId = null, expiresAt: requestedExpiry }: ApiKeyCreate,
    caller: Pick<Caller, 'auth' | 'record' | 'reauthorize'>,
  ): Promise<CreatedKey> {
    const { subject } = caller.auth
    const now = this.deps.clock.now()
    const expiresAt = expiryOfNewKey(requestedExpiry, now, subject)
    checkGrant(subject, { scopes, principalId })
    const { plaintext, row } = await this.#prepareKey({
      workspaceId,
      label,
      scopes,
      principalId,
      now,
      expiresAt,
    })
    await caller.reauthorize()
    const outcome = await this.deps.rows.atomic([
      { op: 'require', table: tables.workspaces, key: [workspaceId] },
      insertWrite(row),
      caller.record(creationDetails(row)),
    ])
    if (outcome.ok) return { plaintext, key: toApiKey(row) }
    throw outcome.at === 0 ? workspaceNotFound(workspaceId) : idCollision()
  }

  /** @throws workspace_not_found, api_key_not_found */
  async get(workspaceId: string, keyId: string): Promise<ApiKey> {
    return toApiKey(await this.#row({ workspaceId, keyId }))
  }

  /**
   * Creates a successor of a key, with the same rights, principal and lifetime. The lifetime starts again. The old key
   * expires after a grace period.
   *
   * @throws workspace_not_found
   * @throws api_key_not_found    when there is no such key, or the key was revoked
   * @throws forbidden            when the successor would have more rights than the caller may grant
   * @throws rate_limited         when too many keys of the workspace are being created
   * @throws unauthorized         when the caller lost access during the request
   */
  async rotate(
    address: KeyAddress,
    { graceSeconds }: ApiKeyRotate,
    caller: Pick<Caller, 'auth' | 'record' | 'reauthorize'>,
  ): Promise<CreatedKey & { previous: ApiKey }> {
    const { subject } = caller.auth
    const now = this.deps.clock.now()
    const old = requireActive(await this.#row(address))
    const grant = { scopes: [...scopesOfKey(old)], principalId: principalOfKey(old) }
    checkGrant(subject, grant)
    const expiresAt = expiryAfter(now, [originalLifetimeMs(old), subject?.keyLifetimeMaxMs ?? null])
    const { workspaceId, label } = old
    const { plaintext, row } = await this.#prepareKey({ workspaceId, label, ...grant, now, expiresAt })
    await caller.reauthorize()
    const previous = await this.#change(
      address,
      key => ({
        ...key,
        spanMs: originalLifetimeMs(key),
        expiresAt: earlierExpiry(key.expiresAt, now + graceSeconds * 1_000),
      }),
      () => [insertWrite(row), caller.record({ ...creationDetails(row), source: address.keyId })],
    )
    return { plaintext, key: toApiKey(row), previous: toApiKey(previous) }
  }

  /**
   * Revokes a key permanently. The key stays in the list.
   *
   * @throws workspace_not_found
   * @throws api_key_not_found    when there is no such key, or the key was already revoked
   */
  async revoke(address: KeyAddress, caller: Pick<Caller, 'record'>): Promise<void> {
    await this.#change(
      address,
      key => ({ ...key, revokedAt: timestamp(this.deps.clock) }),
      ({ keyId, label }) => [caller.record({ keyId, label })],
    )
  }

  /**
   * Creates a token and its row. Computing the digest is as expensive as verifying a token, so the request waits in a
   * queue. In the meantime, the caller can lose access.
   */
  async #prepareKey({ now, ...fields }: NewKey): Promise<{ plaintext: string; row: ApiKeyRow }> {
    const { admission, tokenKey, keyCost } = this.deps
    const { token, prefix } = newToken(tokenKey)
    const task = { queue: 'creations', client: `workspace ${fields.workspaceId}` } as const
    const digest = await admission.run(task, () => digestToken(token, keyCost))
    const row: ApiKeyRow = {
      ...fields,
      scopes: [...fields.scopes],
      keyId: newId(),
      prefix,
      digest,
      createdAt: new Date(now).toISOString(),
      lastUsedAt: null,
      revokedAt: null,
    }
    return { plaintext: token, row }
  }

  /** Changes a key that is not revoked, in the same transaction as `otherWrites`. */
  async #change(
    address: KeyAddress,
    change: (row: ApiKeyRow) => ApiKeyRow,
    otherWrites: (row: ApiKeyRow) => Write[],
  ): Promise<ApiKeyRow> {
    const changed = await changeRow(
      this.deps.rows,
      tables.apiKeys,
      [address.workspaceId, address.keyId],
      row => change(requireActive(row)),
      otherWrites,
    )
    if ('absent' in changed) throw await this.#missing(address)
    if ('failedCheck' in changed) throw idCollision()
    return changed.row
  }

  async #row(address: KeyAddress): Promise<ApiKeyRow> {
    const stored = await this.deps.rows.get(tables.apiKeys, [address.workspaceId, address.keyId])
    if (!stored) throw await this.#missing(address)
    return stored.row
  }

  async #missing({ workspaceId, keyId }: KeyAddress): Promise<WbError> {
    await requireWorkspace(this.deps.rows, workspaceId)
    return keyNotFound(keyId)
  }
}

/** @throws api_key_not_found  when the key is revoked */
function requireActive(row: ApiKeyRow): ApiKeyRow {
  if (row.revokedAt !== null) throw keyNotFound(row.keyId)
  return row
}

function insertWrite(row: ApiKeyRow): Write {
  return { op: 'insert', table: tables.apiKeys, row }
}

/** Returns the audit details of a new key. */
function creationDetails({ keyId, label, scopes, principalId }: ApiKeyRow): AuditDetails {
  return { keyId, label, scopes: scopes?.join(), ...(principalId && { principalId }) }
}

function keyNotFound(keyId: string): WbError {
  return new WbError('api_key_not_found', `API key '${keyId}' not found`)
}

/** Returns the error for a duplicate ID. IDs are random, so a duplicate is a defect. */
function idCollision(): Error {
  return new Error('the ID of a new API key or of its audit record already exists')
}
