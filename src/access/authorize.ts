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

/** Input of an access decision. */
export interface AccessRequest {
  readonly rule: Access
  /** Workspace in the path. */
  readonly workspaceId: string | undefined
  /** Names of the fields that the request changes. */
  readonly changed?: readonly string[]
  /** True if another caller created the requested record. */
  readonly isOwnedByOther?: boolean
  /** How the request arrived. Rules that depend on this reject a request if it is absent. */
  readonly source?: RequestSource
}

/** How a request arrived. */
export interface RequestSource {
  /** True if the request has an `Authorization` header, even if it was not checked. */
  readonly hasCredential: boolean
  /** True if the connection can come only from this machine. */
  readonly isLocal: boolean
}

const allowed: AccessDecision = { allow: true }
const unauthorized = {
  allow: false,
  code: 'unauthorized',
  message: 'this route requires an authenticated caller',
} as const satisfies AccessDecision

const setupUnauthorized: AccessDecision = {
  allow: false,
  code: 'unauthorized',
  message: 'setting up the runtime requires its bootstrap token',
  hint: 'Send the bootstrap token. It is not needed on this machine while auth.mode is disabled.',
}

const ownerUnauthorized: AccessDecision = {
  ...unauthorized,
  hint: 'The owner of the data directory can run the command with --as-operator. Other callers must sign in.',
}

/**
 * Decides whether an access rule allows a request. Only this function compares scopes with rules.
 *
 * A caller without a subject was accepted without authentication. All rules allow it, except rules that require an
 * identity, and rules that allow such callers only if authentication is disabled.
 *
 * @throws Error  when a workspace rule is used without a workspace ID, or another rule with one, which is a defect
 * @see docs/requirements.md#access-to-workspaces, docs/requirements.md#privileges
 */
export function decideAccess(request: AccessRequest, { auth }: Pick<Caller, 'auth'>): AccessDecision {
  const { rule } = request
  const { subject } = auth
  if (isWorkspaceRule(rule) !== (request.workspaceId !== undefined))
    throw new Error(`the access rule '${rule.kind}' does not match the path of its route`)
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
      return decideSetupAccess(request, auth)
    default:
      return subject ? decideWorkspaceAccess(subject, rule, request) : allowed
  }
}

function isWorkspaceRule(rule: Access): rule is WorkspaceAccess {
  return rule.kind === 'member' || rule.kind === 'needs' || rule.kind === 'ownRecords'
}

/** @see docs/requirements.md#S5.4-02 */
function decideRuntimeAccess({ workspaceScopes }: Subject): AccessDecision {
  return workspaceScopes
    ? forbidden('this operation requires access to the whole runtime', {
        hint: 'An API key has access to its workspace only. Use the bootstrap token, or sign in as a user with access to all workspaces.',
      })
    : allowed
}

/**
 * Requires access to all workspaces, and the scope `manage`, because access to all workspaces can be read-only.
 *
 * @see docs/security.md#rule-7
 */
function decideOwnerAccess(subject: Subject): AccessDecision {
  const decision = decideRuntimeAccess(subject)
  return decision.allow && !grantsScope(subject.scopes, 'manage') ? missingScope('manage') : decision
}

/**
 * Allows only callers with the bootstrap token and the owner of the data directory. Rejects API keys and signed-in
 * users, even with all scopes. If authentication is disabled, also allows local requests without a credential.
 *
 * @see docs/security.md#rule-17
 */
function decideSetupAccess({ source }: AccessRequest, { subject, mode }: AuthContext): AccessDecision {
  if (subject) return subject.type === 'bootstrap' || subject.type === 'system' ? allowed : setupUnauthorized
  const isLocalWithoutCredential = source?.isLocal === true && !source.hasCredential
  return mode === 'disabled' && isLocalWithoutCredential ? allowed : setupUnauthorized
}

/**
 * Checks access to the workspace before scopes, so that a caller without access does not learn which scopes a route
 * requires.
 *
 * @see docs/requirements.md#S5.5-03
 */
function decideWorkspaceAccess(
  subject: Subject,
  rule: WorkspaceAccess,
  request: AccessRequest,
): AccessDecision {
  const { workspaceId, changed } = request
  const { workspaceScopes, scopes } = subject
  if (workspaceScopes && !workspaceScopes.includes(workspaceId!))
    return forbidden('authenticated subject has no access to this workspace', {
      hint: 'Use an API key of this workspace.',
    })
  if (rule.kind === 'member' || (rule.kind === 'ownRecords' && !request.isOwnedByOther)) return allowed
  const { scope, alternative } = rule
  if (!grantsScope(scopes, scope) && !(alternative && grantsScope(scopes, alternative)))
    return missingScope(scope)
  const extra = rule.kind === 'needs' ? rule.extraScope : undefined
  const needsExtra = extra?.condition.fields.some(field => changed?.includes(field))
  if (extra && needsExtra && !grantsScope(scopes, extra.scope)) return missingScope(extra.scope)
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

/** @throws unauthorized, forbidden  when `decideAccess` denies access */
export function authorize(request: AccessRequest, caller: Pick<Caller, 'auth'>): void {
  const decision = decideAccess(request, caller)
  if (decision.allow) return
  const { code, message, hint, requiredScope } = decision
  throw new WbError(code, message, { hint, requiredScope })
}

/**
 * Returns the first scope that a subject may not grant to a key; undefined if it may grant all.
 *
 * A subject with the scope `manage` may grant every scope. Other subjects may grant only scopes that they have.
 * In this check, `write` includes `tools:invoke`, as it does for tool calls.
 *
 * @see docs/security.md#rule-7
 */
export function ungrantableScope(subject: Subject | null, requested: readonly Scope[]): Scope | undefined {
  if (!subject || grantsScope(subject.scopes, 'manage')) return undefined
  const { scopes } = subject
  return requested.find(
    scope => !grantsScope(scopes, scope) && !(scope === 'tools:invoke' && grantsScope(scopes, 'write')),
  )
}
