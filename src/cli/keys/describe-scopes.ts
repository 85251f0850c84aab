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

/** Permissions that a key lacks if it has neither a coarse scope nor its fine scopes, worded to follow "may not". */
const missingPermissionOfScope = {
  write: 'change anything',
  manage: 'manage keys or access, or delete the workspace',
} as const

const writeScopes: readonly Scope[] = ['write:ingest', 'write:kb', 'write:services', 'write:agents']
const manageScopes: readonly Scope[] = ['manage:keys', 'manage:access', 'manage:workspace']

/** The permissions that a key has, and those that it lacks, in the order of the scopes. */
export interface ScopeDescription {
  readonly may: readonly string[]
  readonly mayNot: readonly string[]
}

/**
 * Describes what the scopes of a key allow. As in authorization, a coarse scope includes its fine scopes,
 * every key of the workspace can read over HTTP, and `write` also allows agents to call tools.
 *
 * @see docs/requirements.md#scopes, docs/requirements.md#privileges
 */
export function describeScopes(scopes: readonly Scope[]): ScopeDescription {
  const has: HasScope = scope => grantsScope(scopes, scope)
  const canReadAudit = has('read:audit') || has('manage:access')
  const canInvokeTools = has('tools:invoke') || has('write')
  const may = [
    ...(has('read') ? [permissionOfScope.read] : describeReading(has)),
    ...(canReadAudit && !has('read') ? [permissionOfScope['read:audit']] : []),
    ...describeGranted('write', writeScopes, has),
    ...describeGranted('manage', manageScopes, has),
    ...(canInvokeTools ? [permissionOfScope['tools:invoke']] : []),
  ]
  const mayNot = [
    ...(canReadAudit ? [] : [permissionOfScope['read:audit']]),
    ...describeMissing('write', writeScopes, has),
    ...describeMissing('manage', manageScopes, has),
    ...(canInvokeTools ? [] : [permissionOfScope['tools:invoke']]),
  ]
  return { may, mayNot }
}

type HasScope = (scope: Scope) => boolean

/** Describes what a key without `read` can read. Over HTTP, every key can read. Through tools, it needs a scope. */
function describeReading(has: HasScope): string[] {
  const granted = (['read:content', 'read:chat'] as const).filter(has).map(scope => permissionOfScope[scope])
  return [...granted, 'read the content of the workspace over HTTP, like every key']
}

/** Describes the coarse scope if the key has it, otherwise the fine scopes that the key has. */
function describeGranted(
  coarseScope: 'write' | 'manage',
  fineScopes: readonly Scope[],
  has: HasScope,
): string[] {
  if (has(coarseScope)) return [permissionOfScope[coarseScope]]
  return fineScopes.filter(has).map(scope => permissionOfScope[scope])
}

function describeMissing(
  coarseScope: 'write' | 'manage',
  fineScopes: readonly Scope[],
  has: HasScope,
): string[] {
  if (has(coarseScope)) return []
  if (!fineScopes.some(has)) return [missingPermissionOfScope[coarseScope]]
  return fineScopes.filter(scope => !has(scope)).map(scope => permissionOfScope[scope])
}
