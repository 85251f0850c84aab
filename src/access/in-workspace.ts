import { type Role, scopesOfRole } from '../contract/scopes.ts'
import { type AuthContext, inRole } from './subject.ts'

/** The role that a workspace gives one of its principals; undefined for those it does not know. */
export type PrincipalRoles = (workspaceId: string, principalId: string) => Promise<Role | undefined>

/**
 * A caller as one workspace sees it: where roles are mapped, its own role for a principal overrides the token's.
 *
 * @see docs/requirements.md#S5.6-02
 */
export async function inWorkspace(
  auth: AuthContext,
  workspaceId: string,
  roles: PrincipalRoles,
): Promise<AuthContext> {
  const { subject } = auth
  if (subject?.type !== 'oidc' || subject.role === null) return auth
  const role = await roles(workspaceId, subject.id)
  return role ? inRole(auth, role, scopesOfRole[role]) : auth
}
