import type { Access } from '../contract/access.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { Scope } from '../contract/scopes.ts'
import type { AuthContext } from './subject.ts'

export type Decision =
  | { readonly allow: true }
  | {
      readonly allow: false
      readonly code: ErrorCode
      readonly message: string
      readonly requiredScope?: Scope
    }

/** What is asked for: a rule, and the workspace that the path names. */
export interface Demand {
  readonly rule: Access
  readonly workspaceId: string | undefined
}

const allowed: Decision = { allow: true }

/**
 * Whether a caller may pass a route's rule. The only place where scopes are compared.
 *
 * @see specification 5.4, 5.5
 */
export function decide(demand: Demand, auth: AuthContext): Decision {
  const { rule } = demand
  if (rule.kind === 'open') return allowed
  const subject = auth.subject
  if (!subject)
    return rule.kind === 'signedIn'
      ? { allow: false, code: 'unauthorized', message: 'this route needs a signed-in caller' }
      : allowed
  if (rule.kind === 'platform' && subject.workspaceScopes)
    return { allow: false, code: 'forbidden', message: 'this operation is for subjects of the whole runtime' }
  if (demand.workspaceId && subject.workspaceScopes && !subject.workspaceScopes.includes(demand.workspaceId))
    return {
      allow: false,
      code: 'forbidden',
      message: 'authenticated subject has no access to this workspace',
    }
  if (rule.kind === 'needs' && !holds(subject.scopes, rule.scope))
    return {
      allow: false,
      code: 'forbidden',
      message: `authenticated subject is missing required scope '${rule.scope}'`,
      requiredScope: rule.scope,
    }
  return allowed
}

/** A held scope grants itself and, when it is a coarse tier, its fine grants. Null holds everything. @see specification 2.4 */
export function holds(held: readonly Scope[] | null, required: Scope): boolean {
  return held === null || held.some(scope => required === scope || required.startsWith(`${scope}:`))
}
