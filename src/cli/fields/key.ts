import type { ApiKey } from '../../contract/keys.ts'
import { limits } from '../../contract/limits.ts'
import { describeScopes } from '../keys/describe-scopes.ts'
import type { Column } from '../terminal/output.ts'
import type { Fields } from './resources.ts'
import { statusTone } from './status-tone.ts'

/** Returns the state of a key. */
export function keyState(
  { revokedAt, expiresAt }: Pick<ApiKey, 'revokedAt' | 'expiresAt'>,
  nowMs: number,
): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active'
}

/**
 * Returns true if a newer key replaces this key: it has the same label, principal and scopes, expires later, and was
 * created at most the maximum grace period before this key expires.
 */
export function isReplaced(key: ApiKey, all: readonly ApiKey[]): boolean {
  const { expiresAt } = key
  if (expiresAt === null || key.revokedAt !== null) return false
  return all.some(
    other =>
      other.revokedAt === null &&
      other.label === key.label &&
      other.principalId === (key.principalId ?? key.keyId) &&
      other.scopes.join() === key.scopes.join() &&
      other.createdAt > key.createdAt &&
      Date.parse(expiresAt) - Date.parse(other.createdAt) <= limits.keyGraceSeconds * 1_000 &&
      (other.expiresAt === null || other.expiresAt > expiresAt),
  )
}

/** Returns the columns of a list of keys. */
export function keyColumns(all: readonly ApiKey[], nowMs: number): Record<string, Column<ApiKey>> {
  const stateOf = (key: ApiKey) => {
    const state = keyState(key, nowMs)
    return state === 'active' && isReplaced(key, all) ? 'replaced' : state
  }
  return {
    id: { value: row => row.keyId, pipeOnly: true },
    prefix: { value: row => row.prefix },
    label: { value: row => row.label, format: 'flexible' },
    role: { value: row => row.role ?? row.scopes.join(' '), format: 'flexible' },
    state: { value: stateOf, tone: row => statusTone(stateOf(row)) },
    'last used': { value: row => row.lastUsedAt, format: 'time' },
    until: { value: row => row.expiresAt, format: 'due' },
    created: { value: row => row.createdAt, format: 'time', pipeOnly: true },
  }
}

/** Returns the fields of a key to show. */
export function keyFields(key: ApiKey, nowMs: number): Fields {
  const { may, mayNot } = describeScopes(key.scopes)
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
