import type { ApiKey } from '../../contract/keys.ts'
import { roleOfScopes, type Scope, scopesOfRole } from '../../contract/scopes.ts'
import type { ApiKeyRow } from '../../storage/tables.ts'

/**
 * Returns the scopes of a key. Keys that were created before scopes existed have the scopes of an editor.
 *
 * @see docs/requirements.md#S2.3-09
 */
export function scopesOfKey({ scopes }: ApiKeyRow): readonly Scope[] {
  return scopes ?? scopesOfRole.editor
}

/** Returns the original lifetime of a key, in milliseconds; null for unlimited. */
export function originalLifetimeMs(row: ApiKeyRow): number | null {
  return row.spanMs !== undefined ? row.spanMs : currentLifetimeMs(row)
}

/**
 * Returns the time from the creation of a key to its current expiry, in milliseconds; null for unlimited. Rotation
 * reduces this lifetime, but not {@link originalLifetimeMs}. It limits new keys, so that a key in its grace period
 * cannot create keys that never expire.
 */
export function currentLifetimeMs({ createdAt, expiresAt }: ApiKeyRow): number | null {
  return expiresAt === null ? null : Date.parse(expiresAt) - Date.parse(createdAt)
}

/** Returns a key as API responses contain it, without the digest. */
export function toApiKey(row: ApiKeyRow): ApiKey {
  const { workspaceId, keyId, prefix, label, createdAt, lastUsedAt, revokedAt, expiresAt } = row
  const scopes = [...scopesOfKey(row)]
  return {
    workspaceId,
    keyId,
    prefix,
    label,
    role: roleOfScopes(scopes),
    scopes,
    principalId: row.principalId ?? null,
    createdAt,
    lastUsedAt,
    revokedAt,
    expiresAt,
  }
}
