import type { Access, WorkspaceAccess } from '../contract/access.ts'
import { WbError } from '../contract/errors.ts'
import { holds, type Scope } from '../contract/scopes.ts'
import type { Caller } from './caller.ts'
import type { AuthContext, Subject } from './subject.ts'

export type Decision =
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
export interface Demand {
  readonly rule: Access
  readonly workspaceId: string | undefined
  readonly changed?: readonly string[]
  /** True if another caller created the requested record. */
  readonly isOfOther?: boolean
  /** Facts about how the request arrived. A rule that depends on them refuses requests without them. */
  readonly approach?: Approach
}

/** Facts about a request other than its caller. */
export interface Approach {
  /** True if the request has an `Authorization` header, even if it was not checked. */
  readonly hasCredential: boolean
  /** True if the request can only come from this machine. */
  readonly isLocal: boolean
}

const allowed: Decision = { allow: true }
const stranger = {
  allow: false,
  code: 'unauthorized',
  message: 'this route needs a signed-in caller',
} as const satisfies Decision

const notForSetup: Decision = {
  allow: false,
  code: 'unauthorized',
  message: 'a runtime is set up with its bootstrap token',
  hint: 'Send the bootstrap token; none is needed on this machine where auth.mode is disabled.',
}

const unasked: Decision = {
  ...stranger,
  hint: 'Whoever owns the data directory does it in process, with --as-operator; others sign in.',
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
export function decide(demand: Demand, { auth }: Pick<Caller, 'auth'>): Decision {
  const { rule } = demand
  const { subject } = auth
  if (isOfWorkspace(rule) !== (demand.workspaceId !== undefined))
    throw new Error(`the rule '${rule.kind}' does not fit the place that it guards`)
  switch (rule.kind) {
    case 'open':
    case 'anyCaller':
      return allowed
    case 'signedIn':
      return subject ? allowed : stranger
    case 'platform':
      return subject ? ofWholeRuntime(subject) : allowed
    case 'operator':
      if (subject) return ofWholeRuntime(subject)
      return auth.mode === 'disabled' ? allowed : stranger
    case 'owner':
      return subject ? ofOwner(subject) : unasked
    case 'setup':
      return forSetup(demand, auth)
    default:
      return subject ? ofWorkspace(subject, rule, demand) : allowed
  }
}

function isOfWorkspace(rule: Access): rule is WorkspaceAccess {
  return rule.kind === 'member' || rule.kind === 'needs' || rule.kind === 'own'
}

/** @see docs/requirements.md#S5.4-02 */
function ofWholeRuntime({ workspaceScopes }: Subject): Decision {
  return workspaceScopes
    ? forbidden('this operation is for subjects of the whole runtime', {
        hint: 'No key reaches further than its workspace: use the bootstrap token, or a sign-in for all workspaces.',
      })
    : allowed
}

/**
 * Access to all workspaces is not enough, because it may be read-only.
 *
 * @see docs/security.md#rule-7
 */
function ofOwner(subject: Subject): Decision {
  const decision = ofWholeRuntime(subject)
  return decision.allow && !holds(subject.scopes, 'manage') ? missing('manage') : decision
}

/**
 * Setup needs the bootstrap token, or the owner of the data directory. API keys and sign-ins are refused,
 * whatever their scopes.
 *
 * @see docs/security.md#rule-17
 */
function forSetup({ approach }: Demand, { subject, mode }: AuthContext): Decision {
  if (subject) return subject.type === 'bootstrap' || subject.type === 'system' ? allowed : notForSetup
  const isAtHand = approach?.isLocal === true && !approach.hasCredential
  return mode === 'disabled' && isAtHand ? allowed : notForSetup
}

/**
 * Checks workspace access before scopes: a caller without access to a workspace learns nothing about the
 * scopes of its routes.
 *
 * @see docs/requirements.md#S5.5-03
 */
function ofWorkspace(subject: Subject, rule: WorkspaceAccess, demand: Demand): Decision {
  const { workspaceId, changed } = demand
  const { workspaceScopes, scopes } = subject
  if (workspaceScopes && !workspaceScopes.includes(workspaceId!))
    return forbidden('authenticated subject has no access to this workspace', {
      hint: 'Use a key of this workspace.',
    })
  if (rule.kind === 'member' || (rule.kind === 'own' && !demand.isOfOther)) return allowed
  const { scope, or } = rule
  if (!holds(scopes, scope) && !(or && holds(scopes, or))) return missing(scope)
  const raise = rule.kind === 'needs' ? rule.raise : undefined
  const isRaised = raise?.when.fields.some(field => changed?.includes(field))
  if (raise && isRaised && !holds(scopes, raise.scope)) return missing(raise.scope)
  return allowed
}

function forbidden(message: string, more: { hint: string; requiredScope?: Scope }): Decision {
  return { allow: false, code: 'forbidden', message, ...more }
}

function missing(scope: Scope): Decision {
  return forbidden(`authenticated subject is missing required scope '${scope}'`, {
    hint: `Ask for a key with the scope ${scope}.`,
    requiredScope: scope,
  })
}

/** @throws unauthorized, forbidden  when `decide` refuses */
export function authorize(demand: Demand, caller: Pick<Caller, 'auth'>): void {
  const decision = decide(demand, caller)
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
export function ungrantable(subject: Subject | null, wanted: readonly Scope[]): Scope | undefined {
  if (!subject || holds(subject.scopes, 'manage')) return undefined
  const { scopes } = subject
  return wanted.find(scope => !holds(scopes, scope) && !(scope === 'tools:invoke' && holds(scopes, 'write')))
}
