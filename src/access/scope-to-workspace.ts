import { type Role, scopesOfRole } from '../contract/scopes.ts'
import { type AuthContext, withRole } from './subject.ts'

/** Returns the role of a principal in a workspace; undefined if it has none. */
export type PrincipalRoles = (workspaceId: string, principalId: string) => Promise<Role | undefined>

/**
 * Returns a caller with the rights that it has in one workspace. If claims are mapped to roles, the principal's
 * role in the workspace overrides the role of the token.
 *
 * @see docs/requirements.md#S5.6-02
 */
export async function scopeToWorkspace(
  auth: AuthContext,
  workspaceId: string,
  roles: PrincipalRoles,
): Promise<AuthContext> {
  const { subject } = auth
  if (subject?.type !== 'oidc' || subject.role === null) return auth
  const role = await roles(workspaceId, subject.id)
  return role ? withRole(auth, role, scopesOfRole[role]) : auth
}
