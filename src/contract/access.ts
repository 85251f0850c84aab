import type { Scope } from './scopes.ts'

/** Access rule of a route outside workspaces. */
export type RootAccess =
  /** No authentication. */
  | { readonly kind: 'open' }
  /** Any caller that authentication accepts, including anonymous callers where allowed. */
  | { readonly kind: 'anyCaller' }
  /** A verified subject. */
  | { readonly kind: 'signedIn' }
  /** A caller with access to the whole runtime. Includes anonymous callers if the configuration allows them. */
  | { readonly kind: 'platform' }
  /**
   * A verified subject with access to the whole runtime, or any caller if authentication is disabled.
   *
   * @see docs/security.md#rule-17
   */
  | { readonly kind: 'operator' }
  /**
   * A verified subject with access to the whole runtime and the scope `manage`. Never an anonymous caller.
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

/** A scope that a request also requires if its validated body meets a condition. */
export interface ExtraScope {
  readonly condition: BodyCondition
  readonly scope: Scope
}

/** Condition that is met if a request body changes the stored value of at least one of the fields. */
export interface BodyCondition {
  /** Text for the API reference. */
  readonly description: string
  readonly fields: readonly string[]
}

/**
 * Access rule of a route below a workspace. `covers` is the narrowest scope that includes the route; only the
 * documentation uses it.
 */
export type WorkspaceAccess =
  /** Requires only access to the workspace. Used for reads, including searches by POST. */
  | { readonly kind: 'member'; readonly covers: Scope | null }
  | {
      readonly kind: 'needs'
      readonly covers: Scope
      readonly scope: Scope
      /** Alternative scope that is also sufficient. */
      readonly alternative?: Scope
      readonly extraScope?: ExtraScope
    }
  /** Requires access to the workspace. For records of other callers, also requires one of two scopes. */
  | {
      readonly kind: 'ownRecords'
      readonly covers: Scope
      readonly scope: Scope
      /** Alternative scope that is also sufficient. */
      readonly alternative: Scope
    }

export type Access = RootAccess | WorkspaceAccess

export const openToAll = { kind: 'open' } as const satisfies RootAccess
export const anyCaller = { kind: 'anyCaller' } as const satisfies RootAccess
export const signedIn = { kind: 'signedIn' } as const satisfies RootAccess
export const platform = { kind: 'platform' } as const satisfies RootAccess
export const operator = { kind: 'operator' } as const satisfies RootAccess
export const setupOnly = { kind: 'setup' } as const satisfies RootAccess
export const owner = { kind: 'owner' } as const satisfies RootAccess

/** Requires only access to the workspace. */
export function member(covers: Scope | null): WorkspaceAccess {
  return { kind: 'member', covers }
}

/** A rule that requires a scope. Its methods return extended rules. */
interface ScopeRule extends Extract<WorkspaceAccess, { kind: 'needs' }> {
  /** Returns a rule that also requires a second scope if the body meets the condition. */
  requireIf(condition: BodyCondition, extraScope: Scope): WorkspaceAccess
  /** Returns a rule that also accepts an alternative scope. */
  orElse(alternative: Scope): WorkspaceAccess
}

/** Requires a scope. */
export function needs(scope: Scope): ScopeRule {
  const rule = { kind: 'needs', covers: scope, scope } as const
  return {
    ...rule,
    requireIf: (condition, extraScope) => ({ ...rule, extraScope: { condition, scope: extraScope } }),
    orElse: alternative => ({ ...rule, alternative }),
  }
}

/** Requires access to the workspace. For records of other callers, also requires one of two scopes. */
export function ownRecords(covers: Scope, scope: Scope, alternative: Scope): WorkspaceAccess {
  return { kind: 'ownRecords', covers, scope, alternative }
}

/** Returns a condition that is met if the body changes at least one of the fields. */
export function changesAnyOf(...fields: readonly string[]): BodyCondition {
  return { description: `changes ${fields.map(field => `\`${field}\``).join(' or ')}`, fields }
}
