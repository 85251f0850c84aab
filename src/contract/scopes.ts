/** Privilege scopes in canonical order. @see specification 2.4 */
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
