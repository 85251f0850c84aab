import type { Access, WorkspaceAccess } from '../contract/access.ts'
import { WbError } from '../contract/errors.ts'
import { grantsScope, type Scope } from '../contract/scopes.ts'
import type { Caller } from './caller.ts'
import type { AuthContext, Subject } from './subject.ts'

export type AccessDecision =
  | { readonly allow: true }
  | {
      readonly allow: false
      readonly code: 'unauthorized' | 'forbidden'
      readonly message: string
      /** Next step for the user. */
      readonly hint?: string
      readonly requiredScope?: Scope
    }

/** Input of an access decision: the rule, the workspace in the path, and the fields that would change. */
export interface AccessRequest {
  readonly rule: Access
  readonly workspaceId: string | undefined
  readonly changed?: readonly string[]
  /** True if another caller created the requested record. */
  readonly isOwnedByOther?: boolean
  /** Facts about how the request arrived. A rule that depends on them refuses requests without them. */
  readonly origin?: RequestOrigin
}

/** Facts about a request other than its caller. */
export interface RequestOrigin {
  /** True if the request has an `Authorization` header, even if it was not checked. */
  readonly hasCredential: boolean
  /** True if the request can only come from this machine. */
  readonly isLocal: boolean
}

const allowed: AccessDecision = { allow: true }
const unauthorized = {
  allow: false,
  code: 'unauthorized',
  message: 'this route needs a signed-in caller',
} as const satisfies AccessDecision

const setupUnauthorized: AccessDecision = {
  allow: false,
  code: 'unauthorized',
  message: 'setting up the runtime needs its bootstrap token',
  hint: 'Send the bootstrap token. On this machine, none is needed while auth.mode is disabled.',
}

const ownerUnauthorized: AccessDecision = {
  ...unauthorized,
  hint: 'The owner of the data directory can run this in process with --as-operator. Other callers must sign in.',
}

/**
 * Decides if a caller may do what a rule protects. Only this function compares scopes with rules.
 *
 * A caller without a subject was accepted without authentication. It passes all rules except those that need
 * an identity, or a runtime without authentication.
 *
 * @throws Error  when a workspace rule is used outside a workspace, or another rule inside one: a defect
 * @see docs/requirements.md#access-to-workspaces, docs/requirements.md#privileges
 */
export function decideAccess(demand: AccessRequest, { auth }: Pick<Caller, 'auth'>): AccessDecision {
  const { rule } = demand
  const { subject } = auth
  if (isWorkspaceRule(rule) !== (demand.workspaceId !== undefined))
    throw new Error(`the rule '${rule.kind}' does not fit the place that it guards`)
  switch (rule.kind) {
    case 'open':
    case 'anyCaller':
      return allowed
    case 'signedIn':
      return subject ? allowed : unauthorized
    case 'platform':
      return subject ? decideRuntimeAccess(subject) : allowed
    case 'operator':
      if (subject) return decideRuntimeAccess(subject)
      return auth.mode === 'disabled' ? allowed : unauthorized
    case 'owner':
      return subject ? decideOwnerAccess(subject) : ownerUnauthorized
    case 'setup':
      return decideSetupAccess(demand, auth)
    default:
      return subject ? decideWorkspaceAccess(subject, rule, demand) : allowed
  }
}

function isWorkspaceRule(rule: Access): rule is WorkspaceAccess {
  return rule.kind === 'member' || rule.kind === 'needs' || rule.kind === 'own'
}

/** @see docs/requirements.md#S5.4-02 */
function decideRuntimeAccess({ workspaceScopes }: Subject): AccessDecision {
  return workspaceScopes
    ? forbidden('this operation needs access to the whole runtime', {
        hint: 'An API key is limited to its workspace. Use the bootstrap token, or a sign-in with access to all workspaces.',
      })
    : allowed
}

/**
 * Access to all workspaces is not enough, because it may be read-only.
 *
 * @see docs/security.md#rule-7
 */
function decideOwnerAccess(subject: Subject): AccessDecision {
  const decision = decideRuntimeAccess(subject)
  return decision.allow && !grantsScope(subject.scopes, 'manage') ? missingScope('manage') : decision
}

/**
 * Setup needs the bootstrap token, or the owner of the data directory. API keys and sign-ins are refused,
 * whatever their scopes.
 *
 * @see docs/security.md#rule-17
 */
function decideSetupAccess({ origin }: AccessRequest, { subject, mode }: AuthContext): AccessDecision {
  if (subject) return subject.type === 'bootstrap' || subject.type === 'system' ? allowed : setupUnauthorized
  const isUncredentialedLocal = origin?.isLocal === true && !origin.hasCredential
  return mode === 'disabled' && isUncredentialedLocal ? allowed : setupUnauthorized
}

/**
 * Checks workspace access before scopes: a caller without access to a workspace learns nothing about the
 * scopes of its routes.
 *
 * @see docs/requirements.md#S5.5-03
 */
function decideWorkspaceAccess(
  subject: Subject,
  rule: WorkspaceAccess,
  demand: AccessRequest,
): AccessDecision {
  const { workspaceId, changed } = demand
  const { workspaceScopes, scopes } = subject
  if (workspaceScopes && !workspaceScopes.includes(workspaceId!))
    return forbidden('authenticated subject has no access to this workspace', {
      hint: 'Use a key of this workspace.',
    })
  if (rule.kind === 'member' || (rule.kind === 'own' && !demand.isOwnedByOther)) return allowed
  const { scope, or } = rule
  if (!grantsScope(scopes, scope) && !(or && grantsScope(scopes, or))) return missingScope(scope)
  const raise = rule.kind === 'needs' ? rule.raise : undefined
  const isRaised = raise?.when.fields.some(field => changed?.includes(field))
  if (raise && isRaised && !grantsScope(scopes, raise.scope)) return missingScope(raise.scope)
  return allowed
}

function forbidden(message: string, more: { hint: string; requiredScope?: Scope }): AccessDecision {
  return { allow: false, code: 'forbidden', message, ...more }
}

function missingScope(scope: Scope): AccessDecision {
  return forbidden(`authenticated subject is missing required scope '${scope}'`, {
    hint: `Use an API key with the scope ${scope}, or ask a workspace administrator for one.`,
    requiredScope: scope,
  })
}

/** @throws unauthorized, forbidden  when `decideAccess` refuses */
export function authorize(demand: AccessRequest, caller: Pick<Caller, 'auth'>): void {
  const decision = decideAccess(demand, caller)
  if (decision.allow) return
  const { code, message, hint, requiredScope } = decision
  throw new WbError(code, message, { hint, requiredScope })
}

/**
 * Returns the first scope that a subject may not grant to a key; undefined if it may grant all.
 *
 * A subject with the scope `manage` administers the workspace and may grant everything. Others may grant what
 * they hold; `write` includes `tools:invoke`, as for tool calls.
 *
 * @see docs/security.md#rule-7
 */
export function ungrantableScope(subject: Subject | null, wanted: readonly Scope[]): Scope | undefined {
  if (!subject || grantsScope(subject.scopes, 'manage')) return undefined
  const { scopes } = subject
  return wanted.find(
    scope => !grantsScope(scopes, scope) && !(scope === 'tools:invoke' && grantsScope(scopes, 'write')),
  )
}
