import { type Clock, timestamp } from '../base/clock.ts'
import { WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import type { Principal, PrincipalCreate, PrincipalPatch } from '../contract/principals.ts'
import { type Role, type Scope, scopesOfRole } from '../contract/scopes.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import { type RowStore, revisionOf } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { ungrantableScope } from './authorize.ts'
import type { Caller } from './caller.ts'
import type { ActingPrincipal, KnownPrincipal } from './policy/evaluate.ts'
import { requireWorkspace, workspaceNotFound } from './require-workspace.ts'
import type { Subject } from './subject.ts'
import { principalVersion } from './versions/version-write.ts'

interface PrincipalKey {
  readonly workspaceId: string
  readonly principalId: string
}

export interface PrincipalsDependencies {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  /** True if token claims are mapped to roles. The role of a principal overrides the mapped role. */
  readonly mapsRoles: boolean
}

/**
 * Stores the principals of workspaces and their roles.
 *
 * @see docs/access.md
 */
export class Principals {
  constructor(private readonly deps: PrincipalsDependencies) {}

  /**
   * Lists principals, sorted by ID in code point order.
   *
   * @throws workspace_not_found, invalid_cursor
   */
  async list(workspaceId: string, query: PageQuery): Promise<RowPage<Principal>> {
    await requireWorkspace(this.deps.rows, workspaceId)
    return this.deps.pager.page(tables.principals, { index: 'byWorkspace', prefix: [workspaceId] }, query)
  }

  /**
   * @throws workspace_not_found
   * @throws conflict   when the workspace has a principal with this ID
   * @throws forbidden  when the caller may not grant the scopes of the role
   */
  async create(
    workspaceId: string,
    body: PrincipalCreate,
    caller: Pick<Caller, 'auth' | 'record'>,
  ): Promise<Principal> {
    checkRole(caller.auth.subject, body.role)
    const { principalId } = body
    const now = timestamp(this.deps.clock)
    const row: Principal = { workspaceId, ...body, createdAt: now, updatedAt: now }
    const outcome = await this.deps.rows.atomic([
      { op: 'require', table: tables.workspaces, key: [workspaceId] },
      { op: 'insert', table: tables.principals, row },
      caller.record({ principalId }),
    ])
    if (outcome.ok) return row
    if (outcome.at === 0) throw workspaceNotFound(workspaceId)
    throw new WbError('conflict', `principal '${principalId}' already exists in workspace '${workspaceId}'`)
  }

  /** @throws workspace_not_found, principal_not_found */
  async get(principalKey: PrincipalKey): Promise<Principal> {
    const row = await this.#find(principalKey)
    if (!row) throw await this.#notFoundError(principalKey)
    return row
  }

  /**
   * @throws workspace_not_found, principal_not_found
   * @throws forbidden  when the role changes, and the caller may not grant the scopes of the new role
   */
  async update(
    principalKey: PrincipalKey,
    patch: PrincipalPatch,
    caller: Pick<Caller, 'auth' | 'record'>,
  ): Promise<Principal> {
    const now = timestamp(this.deps.clock)
    const changed = await changeRow(
      this.deps.rows,
      tables.principals,
      [principalKey.workspaceId, principalKey.principalId],
      row => {
        if (patch.role !== undefined && patch.role !== row.role) checkRole(caller.auth.subject, patch.role)
        return { ...row, ...patch, updatedAt: now }
      },
      (before, after) => [...principalVersion(before, after, now), caller.record({})],
    )
    if (!('row' in changed)) throw await this.#notFoundError(principalKey)
    return changed.row
  }

  /**
   * @throws workspace_not_found, principal_not_found
   * @throws forbidden  when token claims are mapped to roles, and the caller may not grant the role admin. After the
   *   deletion, the role in the principal's token applies, which can be admin
   * @throws conflict   when the principal was changed concurrently
   */
  async delete(principalKey: PrincipalKey, caller: Pick<Caller, 'auth' | 'record'>): Promise<void> {
    const key = [principalKey.workspaceId, principalKey.principalId]
    const stored = await this.deps.rows.get(tables.principals, key)
    if (!stored) throw await this.#notFoundError(principalKey)
    // The role in the token is not known here. It can be higher than any role except admin.
    if (this.deps.mapsRoles && stored.row.role !== 'admin') checkRoleRemoval(caller.auth.subject, stored.row)
    const outcome = await this.deps.rows.atomic([
      { op: 'delete', table: tables.principals, key, ...revisionOf(stored) },
      ...principalVersion(stored.row, null, timestamp(this.deps.clock)),
      caller.record({}),
    ])
    if (outcome.ok) return
    if (outcome.reason === 'absent') throw await this.#notFoundError(principalKey)
    throw new WbError(
      'conflict',
      `principal '${principalKey.principalId}' was changed concurrently, and was not deleted`,
    )
  }

  /** Returns the role of a principal in a workspace; undefined if it has none. */
  async roleOf(workspaceId: string, principalId: string): Promise<Role | undefined> {
    return (await this.#find({ workspaceId, principalId }))?.role
  }

  /**
   * Returns a principal for the evaluation of policies. A principal that the workspace does not contain has no
   * attributes.
   *
   * @see docs/access.md#write-a-policy
   */
  async actingPrincipal(principalKey: PrincipalKey): Promise<ActingPrincipal> {
    return toActingPrincipal(principalKey.principalId, await this.#find(principalKey))
  }

  async #find({ workspaceId, principalId }: PrincipalKey): Promise<Principal | undefined> {
    return (await this.deps.rows.get(tables.principals, [workspaceId, principalId]))?.row
  }

  async #notFoundError({ workspaceId, principalId }: PrincipalKey): Promise<WbError> {
    await requireWorkspace(this.deps.rows, workspaceId)
    return new WbError('principal_not_found', `principal '${principalId}' not found`)
  }
}

/**
 * Returns a principal for the evaluation of policies.
 *
 * @param recorded  undefined if the workspace does not contain the principal
 */
export function toActingPrincipal(
  id: string,
  recorded: Pick<Principal, 'attributes' | 'role'> | undefined,
): KnownPrincipal {
  const { attributes = {}, role } = recorded ?? {}
  return { id, attributes: role === 'admin' ? { admin: 'true', ...attributes } : attributes }
}

/**
 * Checks that a caller may assign a role.
 *
 * @throws forbidden  when the role has a scope that the caller may not grant; the error names the scope
 * @see docs/security.md#rule-7
 */
function checkRole(subject: Subject | null, role: Role): void {
  const requiredScope = ungrantableScopeOfRole(subject, role)
  if (requiredScope)
    throw new WbError(
      'forbidden',
      `role: the role '${role}' has the scope '${requiredScope}', which you do not have`,
      { hint: 'Use a role that has only scopes that you have.', requiredScope },
    )
}

/**
 * Checks that a caller may delete a principal. After the deletion, the role in the principal's token applies, which can
 * be as high as admin.
 *
 * @throws forbidden  when the caller may not grant the role admin
 * @see docs/security.md#rule-7
 */
function checkRoleRemoval(subject: Subject | null, { principalId, role }: Principal): void {
  if (!ungrantableScopeOfRole(subject, 'admin')) return
  throw new WbError(
    'forbidden',
    `deleting '${principalId}' requires the scope 'manage': after the deletion, the role in its access token ` +
      `applies, which can be higher than '${role}'`,
    { hint: 'Set its role to viewer instead, or ask an admin to delete it.', requiredScope: 'manage' },
  )
}

/**
 * Returns a scope of a role that a subject may not grant; undefined if it may grant all. Ignores `read`, because
 * all callers with access to a workspace can read it.
 */
function ungrantableScopeOfRole(subject: Subject | null, role: Role): Scope | undefined {
  return ungrantableScope(
    subject,
    scopesOfRole[role].filter(scope => scope !== 'read'),
  )
}
