import type { Scope } from './scopes.ts'

/** A rule for routes outside any workspace. */
export type RootAccess =
  /** No auth step at all. */
  | { readonly kind: 'open' }
  /** Passed the auth step, allowed anonymous callers included. */
  | { readonly kind: 'anyCaller' }
  /** A verified subject. */
  | { readonly kind: 'signedIn' }
  /** An unscoped subject, or an anonymous one where those pass. */
  | { readonly kind: 'platform' }
  /** An unscoped subject that was verified, or anyone while nothing is verified. @see docs/security.md#rule-17 */
  | { readonly kind: 'operator' }
  /** A verified unscoped subject that may manage; never an anonymous caller. @see docs/security.md#rule-1 */
  | { readonly kind: 'owner' }
  /**
   * The bootstrap token; or no credential, from this machine, while nothing is verified.
   *
   * @see docs/security.md#rule-17
   */
  | { readonly kind: 'setup' }

/** A further demand that depends on the validated body; in addition to the rule, never instead of it. */
export interface Raise {
  readonly when: BodyTest
  readonly scope: Scope
}

/** A test on a request body, with the words that the reference shows for it. */
export interface BodyTest {
  readonly describes: string
  readonly fields: readonly string[]
}

/** A rule for routes below a workspace. `covers` is the fine scope that the route belongs to. */
export type WorkspaceAccess =
  /** Reach of the workspace: reads, and POSTs shaped as queries. */
  | { readonly kind: 'member'; readonly covers: Scope | null }
  | {
      readonly kind: 'needs'
      readonly covers: Scope
      readonly scope: Scope
      /** The other scope that is enough. */
      readonly or?: Scope
      readonly raise?: Raise
    }
  /** Access to the workspace for records of the caller; one of two scopes for records of others. */
  | {
      readonly kind: 'own'
      readonly covers: Scope
      readonly scope: Scope
      /** The other scope that is enough. */
      readonly or: Scope
    }

export type Access = RootAccess | WorkspaceAccess

export const open = { kind: 'open' } as const satisfies RootAccess
export const anyCaller = { kind: 'anyCaller' } as const satisfies RootAccess
export const signedIn = { kind: 'signedIn' } as const satisfies RootAccess
export const platform = { kind: 'platform' } as const satisfies RootAccess
export const operator = { kind: 'operator' } as const satisfies RootAccess
export const settingUp = { kind: 'setup' } as const satisfies RootAccess
export const owner = { kind: 'owner' } as const satisfies RootAccess

/** Membership is enough; `covers` names the fine scope that a reader of the route is spoken of with. */
export function member(covers: Scope | null): WorkspaceAccess {
  return { kind: 'member', covers }
}

/** A rule that asks for a scope, and how to widen or raise it. */
interface Needs extends Extract<WorkspaceAccess, { kind: 'needs' }> {
  /** In addition, `more` for bodies that change one of some fields. */
  and(when: BodyTest, more: Scope): WorkspaceAccess
  /** Holding `other` instead is enough. */
  orElse(other: Scope): WorkspaceAccess
}

/** The scope is required. */
export function needs(scope: Scope): Needs {
  const rule = { kind: 'needs', covers: scope, scope } as const
  return {
    ...rule,
    and: (when, more) => ({ ...rule, raise: { when, scope: more } }),
    orElse: other => ({ ...rule, or: other }),
  }
}

/** Requires access to the workspace for records of the caller, and one of two scopes for records of others. */
export function own(covers: Scope, scope: Scope, or: Scope): WorkspaceAccess {
  return { kind: 'own', covers, scope, or }
}

/** Matches a body in which one of some fields differs from the stored value. */
export function changes(...fields: readonly string[]): BodyTest {
  return { describes: `changes ${fields.join(' or ')}`, fields }
}
