import type { Caller } from '../../access/caller.ts'
import { requireWorkspace, workspaceNotFound } from '../../access/workspace.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import type { AuditDetails } from '../../contract/audit-record.ts'
import { WbError } from '../../contract/errors.ts'
import type { ApiKey, ApiKeyCreate, ApiKeyRotate } from '../../contract/keys.ts'
import type { PageQuery } from '../../contract/page.ts'
import { changeRow } from '../../storage/change.ts'
import type { Page, Pager } from '../../storage/cursor.ts'
import type { RowStore, Write } from '../../storage/rows.ts'
import { type ApiKeyRow, tables } from '../../storage/tables.ts'
import type { Admission } from './admission.ts'
import { checkGrant, earlier, endAfter, endOf, type Grant } from './grants.ts'
import { principalOf, scopesOf, shown, spanOf } from './row.ts'
import { digestOf, newToken } from './token.ts'

/** A key and its token, which is known this once. */
export interface Minted {
  readonly plaintext: string
  readonly key: ApiKey
}

interface KeyPath {
  readonly workspaceId: string
  readonly keyId: string
}

interface Terms extends Grant {
  readonly workspaceId: string
  readonly label: string
  /** Milliseconds since 1970. */
  readonly now: number
  readonly expiresAt: string | null
}

/** The keys of workspaces. @see docs/requirements.md#api-keys, docs/requirements.md#states */
export class ApiKeys {
  /** @param parts.tokenKey  secret of the store, which its tokens are marked by */
  constructor(
    readonly parts: { rows: RowStore; pager: Pager; clock: Clock; admission: Admission; tokenKey: string },
  ) {}

  /**
   * The keys of a workspace in the order in which they were made, revoked ones included.
   *
   * @throws workspace_not_found
   * @throws invalid_cursor       the cursor is not of this list
   */
  async list(workspaceId: string, query: PageQuery): Promise<Page<ApiKey>> {
    await requireWorkspace(this.parts.rows, workspaceId)
    const byWorkspace = { index: 'byWorkspace', prefix: [workspaceId] }
    const { items, nextCursor } = await this.parts.pager.page(tables.apiKeys, byWorkspace, query)
    return { items: items.map(shown), nextCursor }
  }

  /**
   * Mint a key. Its token is in the answer and nowhere else.
   *
   * @throws workspace_not_found
   * @throws validation_error     `expiresAt` is not in the future
   * @throws forbidden            it would be more than the caller may grant
   * @throws rate_limited         too many keys of the workspace are being made
   * @throws unauthorized         the caller was let in, and would not be now
   */
  async create(
    workspaceId: string,
    { label, scopes, principalId = null, expiresAt: asked }: ApiKeyCreate,
    caller: Pick<Caller, 'auth' | 'record' | 'confirm'>,
  ): Promise<Minted> {
    const { subject } = caller.auth
    const now = this.parts.clock.now()
    const expiresAt = endOf(asked, now, subject)
    checkGrant(subject, { scopes, principalId })
    const { plaintext, row } = await this.#mint({ workspaceId, label, scopes, principalId, now, expiresAt })
    await caller.confirm()
    const outcome = await this.parts.rows.atomic([
      { op: 'require', table: tables.workspaces, key: [workspaceId] },
      inserted(row),
      caller.record(told(row)),
    ])
    if (outcome.ok) return { plaintext, key: shown(row) }
    throw outcome.at === 0 ? workspaceNotFound(workspaceId) : collision()
  }

  /** @throws workspace_not_found, api_key_not_found */
  async get(workspaceId: string, keyId: string): Promise<ApiKey> {
    return shown(await this.#row({ workspaceId, keyId }))
  }

  /**
   * Mint a successor that may do what its predecessor may, is who its predecessor is, and lasts as long from now as
   * its predecessor was made to; the predecessor ends after a grace time.
   *
   * @throws workspace_not_found
   * @throws api_key_not_found    there is none, or it was revoked
   * @throws forbidden            the successor would be more than the caller may grant
   * @throws rate_limited         too many keys of the workspace are being made
   * @throws unauthorized         the caller was let in, and would not be now
   */
  async rotate(
    path: KeyPath,
    { graceSeconds }: ApiKeyRotate,
    caller: Pick<Caller, 'auth' | 'record' | 'confirm'>,
  ): Promise<Minted & { previous: ApiKey }> {
    const { subject } = caller.auth
    const now = this.parts.clock.now()
    const old = active(await this.#row(path))
    const grant = { scopes: [...scopesOf(old)], principalId: principalOf(old) }
    checkGrant(subject, grant)
    const expiresAt = endAfter(now, [spanOf(old), subject?.grantSpanMs ?? null])
    const { workspaceId, label } = old
    const { plaintext, row } = await this.#mint({ workspaceId, label, ...grant, now, expiresAt })
    await caller.confirm()
    const previous = await this.#change(
      path,
      key => ({ ...key, spanMs: spanOf(key), expiresAt: earlier(key.expiresAt, now + graceSeconds * 1_000) }),
      () => [inserted(row), caller.record({ ...told(row), source: path.keyId })],
    )
    return { plaintext, key: shown(row), previous: shown(previous) }
  }

  /**
   * Revoke a key for good; it stays in the list.
   *
   * @throws workspace_not_found
   * @throws api_key_not_found    there is none, or it was revoked before
   */
  async revoke(path: KeyPath, caller: Pick<Caller, 'record'>): Promise<void> {
    await this.#change(
      path,
      key => ({ ...key, revokedAt: timestamp(this.parts.clock) }),
      ({ keyId, label }) => [caller.record({ keyId, label })],
    )
  }

  /** A digest is as dear to make as to check: whoever asks for a key waits, and may have lost its own meanwhile. */
  async #mint({ now, ...terms }: Terms): Promise<{ plaintext: string; row: ApiKeyRow }> {
    const { admission, tokenKey } = this.parts
    const { token, prefix } = newToken(tokenKey)
    const turn = { lane: 'mints', client: `workspace ${terms.workspaceId}` } as const
    const digest = await admission.run(turn, () => digestOf(token))
    const row: ApiKeyRow = {
      ...terms,
      scopes: [...terms.scopes],
      keyId: newId(),
      prefix,
      digest,
      createdAt: new Date(now).toISOString(),
      lastUsedAt: null,
      revokedAt: null,
    }
    return { plaintext: token, row }
  }

  /** Change a key that is not revoked, together with `also`. */
  async #change(
    path: KeyPath,
    change: (row: ApiKeyRow) => ApiKeyRow,
    also: (row: ApiKeyRow) => Write[],
  ): Promise<ApiKeyRow> {
    const changed = await changeRow(
      this.parts.rows,
      tables.apiKeys,
      [path.workspaceId, path.keyId],
      row => change(active(row)),
      also,
    )
    if ('absent' in changed) throw await this.#missing(path)
    if ('refused' in changed) throw collision()
    return changed.row
  }

  async #row(path: KeyPath): Promise<ApiKeyRow> {
    const stored = await this.parts.rows.get(tables.apiKeys, [path.workspaceId, path.keyId])
    if (!stored) throw await this.#missing(path)
    return stored.row
  }

  async #missing({ workspaceId, keyId }: KeyPath): Promise<WbError> {
    await requireWorkspace(this.parts.rows, workspaceId)
    return keyNotFound(keyId)
  }
}

/** @throws api_key_not_found  it was revoked */
function active(row: ApiKeyRow): ApiKeyRow {
  if (row.revokedAt !== null) throw keyNotFound(row.keyId)
  return row
}

function inserted(row: ApiKeyRow): Write {
  return { op: 'insert', table: tables.apiKeys, row }
}

/** What the audit trail says of a new key. */
function told({ keyId, label, scopes, principalId }: ApiKeyRow): AuditDetails {
  return { keyId, label, scopes: scopes?.join(), ...(principalId && { principalId }) }
}

function keyNotFound(keyId: string): WbError {
  return new WbError('api_key_not_found', `api key '${keyId}' not found`)
}

/** Its chance is nil, so that the unit was refused for a reason which nobody thought of. */
function collision(): Error {
  return new Error('a new key or its record met another one of its name')
}
