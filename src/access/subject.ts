import type { Scope } from '../contract/scopes.ts'

/** A verified caller. Null scopes mean every scope, null workspace scopes every workspace. @see specification 2.1 */
export interface Subject {
  readonly id: string
  readonly label: string | null
  readonly type: 'apiKey' | 'oidc' | 'bootstrap' | 'system'
  readonly workspaceScopes: readonly string[] | null
  readonly scopes: readonly Scope[] | null
}

/** What the auth step says of a request. @see specification 2.1 */
export interface AuthContext {
  readonly mode: 'disabled' | 'apiKey' | 'oidc' | 'any'
  readonly authenticated: boolean
  readonly anonymous: boolean
  readonly subject: Subject | null
}

/** A request of mode `disabled`: nothing is verified, everyone is anonymous. */
export const anonymous: AuthContext = {
  mode: 'disabled',
  authenticated: false,
  anonymous: true,
  subject: null,
}
