import type { Scope } from './scopes.ts'

/** Access rule of a route outside workspaces. */
export type RootAccess =
  /** No authentication. */
  | { readonly kind: 'open' }
  /** Any caller that authentication accepts, including anonymous callers where allowed. */
  | { readonly kind: 'anyCaller' }
  /** A verified subject. */
  | { readonly kind: 'signedIn' }
  /** An unscoped subject, or an anonymous one where allowed. */
  | { readonly kind: 'platform' }
  /**
   * A verified unscoped subject, or any caller if authentication is disabled.
   *
   * @see docs/security.md#rule-17
   */
  | { readonly kind: 'operator' }
  /**
   * A verified unscoped subject with the scope to manage; never an anonymous caller.
   *
   * @see docs/security.md#rule-1
   */
  | { readonly kind: 'owner' }
  /**
   * The bootstrap token, or no credential if authentication is disabled and the caller is on this machine.
   *
   * @see docs/security.md#rule-17
   */
  | { readonly kind: 'setup' }

/** An additional required scope that depends on the validated body. */
export interface ScopeRaise {
  readonly when: BodyTest
  readonly scope: Scope
}

/** A test of a request body, and its description in the reference. */
export interface BodyTest {
  readonly describes: string
  readonly fields: readonly string[]
}

/** Access rule of a route below a workspace. `covers` is the narrowest scope that the route belongs to. */
export type WorkspaceAccess =
  /** Access to the workspace is enough: reads, and POSTs that only query. */
  | { readonly kind: 'member'; readonly covers: Scope | null }
  | {
      readonly kind: 'needs'
      readonly covers: Scope
      readonly scope: Scope
      /** Alternative scope that is also sufficient. */
      readonly or?: Scope
      readonly raise?: ScopeRaise
    }
  /** Access to the workspace for records of the caller; one of two scopes for records of others. */
  | {
      readonly kind: 'own'
      readonly covers: Scope
      readonly scope: Scope
      /** Alternative scope that is also sufficient. */
      readonly or: Scope
    }

export type Access = RootAccess | WorkspaceAccess

export const openToAll = { kind: 'open' } as const satisfies RootAccess
export const anyCaller = { kind: 'anyCaller' } as const satisfies RootAccess
export const signedIn = { kind: 'signedIn' } as const satisfies RootAccess
export const platform = { kind: 'platform' } as const satisfies RootAccess
export const operator = { kind: 'operator' } as const satisfies RootAccess
export const setupOnly = { kind: 'setup' } as const satisfies RootAccess
export const owner = { kind: 'owner' } as const satisfies RootAccess

/** Requires only access to the workspace. `covers` is the read scope shown for the route. */
export function member(covers: Scope | null): WorkspaceAccess {
  return { kind: 'member', covers }
}

/** A rule that requires a scope. Its methods extend it. */
interface ScopeRule extends Extract<WorkspaceAccess, { kind: 'needs' }> {
  /** Also requires `more` for bodies that match the test. */
  and(when: BodyTest, more: Scope): WorkspaceAccess
  /** Accepts `other` instead of the scope. */
  orElse(other: Scope): WorkspaceAccess
}

/** Requires a scope. */
export function needs(scope: Scope): ScopeRule {
  const rule = { kind: 'needs', covers: scope, scope } as const
  return {
    ...rule,
    and: (when, more) => ({ ...rule, raise: { when, scope: more } }),
    orElse: other => ({ ...rule, or: other }),
  }
}

/** Requires access to the workspace for records of the caller, and one of two scopes for records of others. */
export function ownRecords(covers: Scope, scope: Scope, or: Scope): WorkspaceAccess {
  return { kind: 'own', covers, scope, or }
}

/** Matches a body in which one of some fields differs from the stored value. */
export function changesAnyOf(...fields: readonly string[]): BodyTest {
  return { describes: `changes ${fields.join(' or ')}`, fields }
}
