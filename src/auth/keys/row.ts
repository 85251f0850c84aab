import type { ApiKey } from '../../contract/keys.ts'
import { roleOf, type Scope, scopesOfRole } from '../../contract/scopes.ts'
import type { ApiKeyRow } from '../../storage/tables.ts'

/** What a key may do; one from before there were scopes reads and writes. @see docs/requirements.md#S2.3-09 */
export function scopesOf({ scopes }: ApiKeyRow): readonly Scope[] {
  return scopes ?? scopesOfRole.editor
}

/** Who a key is under row-level access. @see docs/access.md#what-the-role-does */
export function principalOf({ principalId, keyId }: ApiKeyRow): string {
  return principalId ?? keyId
}

/** How long a key was made to last, in milliseconds; null is for ever. */
export function spanOf(row: ApiKeyRow): number | null {
  return row.spanMs !== undefined ? row.spanMs : presentSpanOf(row)
}

/** The same by its end as it now is: a key in its grace time ends, and grants nothing that never does. */
export function presentSpanOf({ createdAt, expiresAt }: ApiKeyRow): number | null {
  return expiresAt === null ? null : Date.parse(expiresAt) - Date.parse(createdAt)
}

/** A key as its workspace sees it: without the digest. */
export function shown(row: ApiKeyRow): ApiKey {
  const { workspaceId, keyId, prefix, label, createdAt, lastUsedAt, revokedAt, expiresAt } = row
  const scopes = [...scopesOf(row)]
  return {
    workspaceId,
    keyId,
    prefix,
    label,
    role: roleOf(scopes),
    scopes,
    principalId: row.principalId ?? null,
    createdAt,
    lastUsedAt,
    revokedAt,
    expiresAt,
  }
}
