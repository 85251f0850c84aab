import type { ApiKeyRow } from '../storage/tables.ts'

/**
 * Returns the principal that a key acts as under row-level access.
 *
 * @see docs/access.md#what-the-role-does
 */
export function principalOfKey({ principalId, keyId }: Pick<ApiKeyRow, 'principalId' | 'keyId'>): string {
  return principalId ?? keyId
}
