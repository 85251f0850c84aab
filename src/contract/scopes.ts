/**
 * Scopes in canonical order.
 *
 * @see docs/requirements.md#S2.4-01
 */
export const scopes = [
  'read',
  'read:content',
  'read:chat',
  'read:audit',
  'write',
  'write:ingest',
  'write:kb',
  'write:services',
  'write:agents',
  'manage',
  'manage:keys',
  'manage:access',
  'manage:workspace',
  'tools:invoke',
] as const

export type Scope = (typeof scopes)[number]

/**
 * Returns true if the granted scopes include the required one. A scope includes itself and all scopes that extend
 * its name: `read` includes `read:chat`. Null includes all scopes.
 *
 * @see docs/requirements.md#S2.4-13
 */
export function grantsScope(granted: readonly Scope[] | null, required: Scope): boolean {
  return granted === null || granted.some(scope => required === scope || required.startsWith(`${scope}:`))
}

/** Returns the scopes that both sets include. Null includes all scopes. */
export function commonScopes(first: readonly Scope[] | null, second: readonly Scope[]): Scope[] {
  if (first === null) return sortScopes(second)
  return scopes.filter(
    scope =>
      (first.includes(scope) && grantsScope(second, scope)) ||
      (second.includes(scope) && grantsScope(first, scope)),
  )
}

/** Roles in order of increasing privilege. Each role is a set of scopes. */
export const roles = ['viewer', 'editor', 'admin'] as const
export type Role = (typeof roles)[number]

/**
 * Scopes of each role.
 *
 * @see docs/requirements.md#S2.4-02
 */
export const scopesOfRole: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: ['read'],
  editor: ['read', 'write'],
  admin: ['read', 'write', 'manage'],
}

/** Returns the role whose scopes are exactly these; null if there is no such role. */
export function roleOfScopes(granted: readonly Scope[]): Role | null {
  const set = sortScopes(granted).join()
  return roles.find(role => scopesOfRole[role].join() === set) ?? null
}

/** Returns scopes in canonical order and without duplicates. */
export function sortScopes(granted: readonly Scope[]): Scope[] {
  return scopes.filter(scope => granted.includes(scope))
}
