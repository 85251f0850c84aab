import { grantsScope, type Scope } from '../../contract/scopes.ts'

/** Permissions of each scope, worded to follow "may". */
const permissionOfScope: Readonly<Record<Scope, string>> = {
  read: 'read everything',
  'read:content': 'search and read documents',
  'read:chat': 'read conversations',
  'read:audit': 'read the audit trail',
  write: 'change everything: documents, knowledge bases, services and agents',
  'write:ingest': 'add, change and delete documents and records',
  'write:kb': 'create, change and delete knowledge bases and filters',
  'write:services': 'create, change and delete services and MCP servers',
  'write:agents': 'create, change and delete agents',
  manage: 'manage keys and access, and delete the workspace',
  'manage:keys': 'create, rotate and revoke keys',
  'manage:access': 'manage access to documents',
  'manage:workspace': 'delete the workspace',
  'tools:invoke': 'let agents call external tools',
}

/** Permissions that a key without any scope of a tier lacks, worded to follow "may not". */
const missingPermissionOfTier = {
  write: 'change anything',
  manage: 'manage keys or access, or delete the workspace',
} as const

const writeScopes: readonly Scope[] = ['write:ingest', 'write:kb', 'write:services', 'write:agents']
const manageScopes: readonly Scope[] = ['manage:keys', 'manage:access', 'manage:workspace']

/** Permissions that a key has and lacks, in the order of the scopes. */
export interface ScopeDescription {
  readonly may: readonly string[]
  readonly mayNot: readonly string[]
}

/**
 * Describes the scopes of a key as authorization applies them: a coarse scope includes its fine scopes,
 * membership of the workspace is enough to read over HTTP, and write access includes tool calls of agents.
 *
 * @see docs/requirements.md#scopes, docs/requirements.md#privileges
 */
export function describeScopes(scopes: readonly Scope[]): ScopeDescription {
  const has: HasScope = scope => grantsScope(scopes, scope)
  const audits = has('read:audit') || has('manage:access')
  const tools = has('tools:invoke') || has('write')
  const may = [
    ...(has('read') ? [permissionOfScope.read] : describeReading(has)),
    ...(audits && !has('read') ? [permissionOfScope['read:audit']] : []),
    ...describeGranted('write', writeScopes, has),
    ...describeGranted('manage', manageScopes, has),
    ...(tools ? [permissionOfScope['tools:invoke']] : []),
  ]
  const mayNot = [
    ...(audits ? [] : [permissionOfScope['read:audit']]),
    ...describeMissing('write', writeScopes, has),
    ...describeMissing('manage', manageScopes, has),
    ...(tools ? [] : [permissionOfScope['tools:invoke']]),
  ]
  return { may, mayNot }
}

type HasScope = (scope: Scope) => boolean

/** Reading over HTTP needs no scope; reading through tools does. */
function describeReading(has: HasScope): string[] {
  const named = (['read:content', 'read:chat'] as const).filter(has).map(scope => permissionOfScope[scope])
  return [...named, 'read the content of the workspace over HTTP, like every key']
}

/** Describes a tier: as a whole if the key holds the coarse scope, else by its fine scopes. */
function describeGranted(whole: 'write' | 'manage', parts: readonly Scope[], has: HasScope): string[] {
  return has(whole) ? [permissionOfScope[whole]] : parts.filter(has).map(scope => permissionOfScope[scope])
}

function describeMissing(whole: 'write' | 'manage', parts: readonly Scope[], has: HasScope): string[] {
  if (has(whole)) return []
  if (!parts.some(has)) return [missingPermissionOfTier[whole]]
  return parts.filter(scope => !has(scope)).map(scope => permissionOfScope[scope])
}
