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
 * Returns true if the held scopes grant the required one. A scope grants itself and all scopes below it
 * (`read` grants `read:chat`). Null grants everything.
 *
 * @see docs/requirements.md#S2.4-13
 */
export function grantsScope(held: readonly Scope[] | null, required: Scope): boolean {
  return held === null || held.some(scope => required === scope || required.startsWith(`${scope}:`))
}

/** Returns the scopes that both sets grant. Null grants everything. */
export function commonScopes(held: readonly Scope[] | null, others: readonly Scope[]): Scope[] {
  if (held === null) return sortScopes(others)
  return scopes.filter(
    scope =>
      (held.includes(scope) && grantsScope(others, scope)) ||
      (others.includes(scope) && grantsScope(held, scope)),
  )
}

/** Roles, each a set of scopes, in order of increasing privilege. */
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

/** Returns the role with exactly these scopes; null if no role has them. */
export function roleOfScopes(held: readonly Scope[]): Role | null {
  const set = sortScopes(held).join()
  return roles.find(role => scopesOfRole[role].join() === set) ?? null
}

/** Returns scopes without duplicates, in canonical order. Does not add or combine any. */
export function sortScopes(held: readonly Scope[]): Scope[] {
  return scopes.filter(scope => held.includes(scope))
}
