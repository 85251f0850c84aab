/** Privilege scopes in canonical order. @see docs/requirements.md#S2.4-01 */
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
 * A held scope grants itself and, when it is a coarse tier, its fine grants. Null holds everything.
 *
 * @see docs/requirements.md#S2.4-13
 */
export function holds(held: readonly Scope[] | null, required: Scope): boolean {
  return held === null || held.some(scope => required === scope || required.startsWith(`${scope}:`))
}

/** The scopes that both sets grant. Null grants everything. */
export function inBoth(held: readonly Scope[] | null, others: readonly Scope[]): Scope[] {
  if (held === null) return inOrder(others)
  return scopes.filter(
    scope => (held.includes(scope) && holds(others, scope)) || (others.includes(scope) && holds(held, scope)),
  )
}

/** Roles, each a whole set of scopes, from the least privileged on. */
export const roles = ['viewer', 'editor', 'admin'] as const
export type Role = (typeof roles)[number]

/** What a role holds. @see docs/requirements.md#S2.4-02 */
export const scopesOfRole: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: ['read'],
  editor: ['read', 'write'],
  admin: ['read', 'write', 'manage'],
}

/** The role whose scopes are exactly these, else null. */
export function roleOf(held: readonly Scope[]): Role | null {
  const set = inOrder(held).join()
  return roles.find(role => scopesOfRole[role].join() === set) ?? null
}

/** Scopes without repetition, in canonical order; nothing is folded or expanded. */
export function inOrder(held: readonly Scope[]): Scope[] {
  return scopes.filter(scope => held.includes(scope))
}
