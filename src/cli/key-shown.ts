import type { ApiKey } from '../contract/keys.ts'
import { keyWords } from './key-words.ts'
import type { Column } from './output.ts'
import type { Fields } from './shown.ts'

/** Whether a key works, and if not, why. */
export function keyState(
  { revokedAt, expiresAt }: Pick<ApiKey, 'revokedAt' | 'expiresAt'>,
  nowMs: number,
): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active'
}

/** What a person decides by in a list of keys. */
export function keyColumns(nowMs: number): Record<string, Column<ApiKey>> {
  return {
    id: { of: row => row.keyId, piped: true },
    prefix: { of: row => row.prefix },
    label: { of: row => row.label, as: 'free' },
    role: { of: row => row.role ?? row.scopes.join(' '), as: 'free' },
    state: { of: row => keyState(row, nowMs) },
    'last used': { of: row => row.lastUsedAt, as: 'time' },
    until: { of: row => row.expiresAt, as: 'due' },
    created: { of: row => row.createdAt, as: 'time', piped: true },
  }
}

/** The fields of a key that a person reads. */
export function keyFields(key: ApiKey, nowMs: number): Fields {
  const { may, mayNot } = keyWords(key.scopes)
  return {
    id: key.keyId,
    prefix: key.prefix,
    label: key.label,
    role: key.role,
    scopes: key.scopes.join(' '),
    may: may.join('; '),
    'may not': mayNot.join('; '),
    principal: key.principalId,
    state: keyState(key, nowMs),
    created: { time: key.createdAt },
    'last used': key.lastUsedAt ? { time: key.lastUsedAt } : 'never',
    until: key.expiresAt ? { due: key.expiresAt } : undefined,
    revoked: key.revokedAt ? { time: key.revokedAt } : undefined,
  }
}
