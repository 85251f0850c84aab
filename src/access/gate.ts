import type { Access } from '../contract/access.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import type { Scope } from '../contract/scopes.ts'
import type { Caller } from './caller.ts'
import type { AuthContext, Subject } from './subject.ts'

export type Decision =
  | { readonly allow: true }
  | {
      readonly allow: false
      readonly code: ErrorCode
      readonly message: string
      readonly requiredScope?: Scope
    }

/** What is asked for: a rule, the workspace that is named, and the fields that would change. */
export interface Demand {
  readonly rule: Access
  readonly workspaceId: string | undefined
  readonly changed?: readonly string[]
}

const allowed: Decision = { allow: true }

/**
 * Whether a caller may do what a rule guards. The only place where scopes are compared.
 *
 * @see specification 5.4, 5.5
 */
export function decide(
  { rule, workspaceId, changed = [] }: Demand,
  { auth }: Pick<Caller, 'auth'>,
): Decision {
  if (rule.kind === 'open') return allowed
  const { subject } = auth
  if (!subject) return decideAnonymous(rule, auth)
  if ((rule.kind === 'platform' || rule.kind === 'operator') && subject.workspaceScopes)
    return forbidden('this operation is for subjects of the whole runtime')
  if (workspaceId && subject.workspaceScopes && !subject.workspaceScopes.includes(workspaceId))
    return forbidden('authenticated subject has no access to this workspace')
  if (rule.kind !== 'needs') return allowed
  if (!holds(subject.scopes, rule.scope) && !(rule.or && holds(subject.scopes, rule.or)))
    return missing(rule.scope)
  if (rule.raise && changed.includes(rule.raise.when.field) && !holds(subject.scopes, rule.raise.scope))
    return missing(rule.raise.scope)
  return allowed
}

/** Who is not known passes every gate, where such callers pass at all; but has no self to ask after. */
function decideAnonymous(rule: Access, auth: AuthContext): Decision {
  const isStranger = rule.kind === 'signedIn' || (rule.kind === 'operator' && auth.mode !== 'disabled')
  return isStranger
    ? { allow: false, code: 'unauthorized', message: 'this route needs a signed-in caller' }
    : allowed
}

function forbidden(message: string, requiredScope?: Scope): Decision {
  return { allow: false, code: 'forbidden', message, ...(requiredScope && { requiredScope }) }
}

function missing(scope: Scope): Decision {
  return forbidden(`authenticated subject is missing required scope '${scope}'`, scope)
}

/** @throws unauthorized, forbidden  what `decide` says */
export function pass(demand: Demand, caller: Pick<Caller, 'auth'>): void {
  const decision = decide(demand, caller)
  if (decision.allow) return
  throw new WbError(decision.code, decision.message, { requiredScope: decision.requiredScope })
}

/** A held scope grants itself and, when it is a coarse tier, its fine grants. Null holds everything. @see specification 2.4 */
export function holds(held: readonly Scope[] | null, required: Scope): boolean {
  return held === null || held.some(scope => required === scope || required.startsWith(`${scope}:`))
}

/**
 * The first of some scopes that a subject may not pass on to a key.
 *
 * Who holds the coarse `manage` administers the workspace and may pass on anything. Any other passes on what it holds;
 * `write` counts as holding `tools:invoke`, as it does where tools are called.
 *
 * @see security decision 7
 */
export function ungrantable(subject: Subject | null, wanted: readonly Scope[]): Scope | undefined {
  if (!subject || holds(subject.scopes, 'manage')) return undefined
  const { scopes } = subject
  return wanted.find(scope => !holds(scopes, scope) && !(scope === 'tools:invoke' && holds(scopes, 'write')))
}
