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
      /** What to do about it. */
      readonly hint?: string
      readonly requiredScope?: Scope
    }

/** What is asked for: a rule, the workspace that is named, and the fields that would change. */
export interface Demand {
  readonly rule: Access
  readonly workspaceId: string | undefined
  readonly changed?: readonly string[]
  /** True if another caller created the requested record. */
  readonly isOfOther?: boolean
  /** How the request came; a rule that relies on it refuses what came by no known way. */
  readonly approach?: Approach
}

/** What is known of a request beside who it is from. */
export interface Approach {
  /** It carries an `Authorization` header, which may be one that nobody looked at. */
  readonly hasCredential: boolean
  /** Nobody but this machine can have sent it. */
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
 * Whether a caller may do what a rule guards. The only place where scopes are compared with rules.
 *
 * A caller without a subject is one whom the auth step let pass unasked: it passes every gate, but has no self to ask
 * after, and is not the operator of a runtime that asks others.
 *
 * @throws Error  a rule for workspaces stands outside of one, or the other way round: a defect
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

/** Reach of everything is not enough: who only reads all of it owns none of it. @see docs/security.md#rule-7 */
function ofOwner(subject: Subject): Decision {
  const decision = ofWholeRuntime(subject)
  return decision.allow && !holds(subject.scopes, 'manage') ? missing('manage') : decision
}

/**
 * No key and no sign-in sets a runtime up, whatever they may do in it. The owner of the data directory is one with the
 * bootstrap token.
 *
 * @see docs/security.md#rule-17
 */
function forSetup({ approach }: Demand, { subject, mode }: AuthContext): Decision {
  if (subject) return subject.type === 'bootstrap' || subject.type === 'system' ? allowed : notForSetup
  const isAtHand = approach?.isLocal === true && !approach.hasCredential
  return mode === 'disabled' && isAtHand ? allowed : notForSetup
}

/**
 * Checks reach before scopes: a caller without access to a workspace learns nothing about the scopes of its routes.
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

/** @throws unauthorized, forbidden  what `decide` says */
export function pass(demand: Demand, caller: Pick<Caller, 'auth'>): void {
  const decision = decide(demand, caller)
  if (decision.allow) return
  const { code, message, hint, requiredScope } = decision
  throw new WbError(code, message, { hint, requiredScope })
}

/**
 * The first of some scopes that a subject may not pass on to a key.
 *
 * Who holds the coarse `manage` administers the workspace and may pass on anything. Any other passes on what it holds;
 * `write` counts as holding `tools:invoke`, as it does where tools are called.
 *
 * @see docs/security.md#rule-7
 */
export function ungrantable(subject: Subject | null, wanted: readonly Scope[]): Scope | undefined {
  if (!subject || holds(subject.scopes, 'manage')) return undefined
  const { scopes } = subject
  return wanted.find(scope => !holds(scopes, scope) && !(scope === 'tools:invoke' && holds(scopes, 'write')))
}
