import type { AuditTrail } from '../../access/audit-trail.ts'
import type { AuthContext } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { withTimeout } from '../../base/deadline.ts'
import { usesApiKeys, usesOidc } from '../../config/config-checks.ts'
import type { Config } from '../../config/schema.ts'
import { auth } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { roleOfScopes } from '../../contract/scopes.ts'
import type { JwtVerifier } from '../oidc/jwt-verifier.ts'
import type { OidcClient } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'
import { BrowserLogin } from './browser-login.ts'
import { BrowserSession } from './browser-session.ts'
import { DeviceLogin } from './device-login.ts'
import { TokenRenewer } from './issued-tokens.ts'
import { createPendingLogins } from './pending-logins.ts'
import type { Sealer } from './sealer.ts'
import type { SessionCookies } from './session-cookies.ts'
import { SignInTrail } from './sign-in-trail.ts'

export interface SignInDependencies {
  readonly client: OidcClient
  readonly provider: IdentityProvider
  readonly verifier: Pick<JwtVerifier, 'check'>
  readonly cookies: SessionCookies
  readonly sealer: Sealer
  readonly audit: Pick<AuditTrail, 'require' | 'note'>
  readonly clock: Clock
}

export interface SignInFlows {
  readonly login: BrowserLogin
  readonly session: BrowserSession
  readonly device: DeviceLogin
  readonly postLogoutPath: string
}

/** Paths below `/auth/` that do not need an identity provider. */
const alwaysServed: readonly string[] = [auth.config.path, auth.me.path]

function notConfigured(): WbError {
  return new WbError('not_configured', 'signing in with an identity provider is not configured')
}

/** Maximum time that `/auth/config` waits for the provider, in milliseconds. */
const providerWaitMs = 1_000

/** Sign-in for browsers and devices. It is not configured if `deps` is undefined. */
export class SignIn {
  readonly #flows: SignInFlows | undefined
  /** True if the provider had a device endpoint when it last responded. */
  #hadDeviceEndpoint = false

  constructor(
    readonly mode: Config['auth']['mode'],
    readonly deps: SignInDependencies | undefined,
  ) {
    this.#flows = deps && openFlows(mode, deps)
  }

  /** @throws not_configured  when sign-in with an identity provider is not configured */
  get flows(): SignInFlows {
    if (this.#flows) return this.#flows
    throw notConfigured()
  }

  /** Path of the redirect URI; undefined if sign-in is not configured. */
  get callbackPath(): string | undefined {
    return this.deps && new URL(this.deps.client.redirectPath, 'http://localhost').pathname
  }

  /**
   * Returns the error for a path that requires sign-in to be configured, if it is not configured; otherwise undefined.
   */
  errorForPath(path: string): WbError | undefined {
    const isServed = this.#flows || !path.startsWith('/auth/') || alwaysServed.includes(path)
    return isServed ? undefined : notConfigured()
  }

  /**
   * Returns the available authentication methods, even while the provider is unavailable.
   *
   * @see docs/requirements.md#S4.3-02
   */
  async config() {
    const login = this.deps !== undefined
    const pathIfConfigured = (path: string) => (login ? path : null)
    return {
      modes: {
        apiKey: usesApiKeys(this),
        oidc: usesOidc(this),
        login,
        device: await this.#hasDeviceEndpoint(),
      },
      loginPath: pathIfConfigured(auth.login.path),
      refreshPath: pathIfConfigured(auth.refresh.path),
      deviceAuthorizePath: pathIfConfigured(auth.deviceAuthorize.path),
      deviceTokenPath: pathIfConfigured(auth.deviceToken.path),
      deviceRefreshPath: pathIfConfigured(auth.deviceRefresh.path),
    }
  }

  /** Returns the current state of the provider, or its last known state if it does not respond. */
  async #hasDeviceEndpoint(): Promise<boolean> {
    if (!this.deps) return false
    const { provider, clock } = this.deps
    const refreshed = provider.hasDeviceEndpoint().then(
      hasEndpoint => {
        this.#hadDeviceEndpoint = hasEndpoint
      },
      () => {},
    )
    await withTimeout(clock, providerWaitMs, () => refreshed).catch(() => {})
    return this.#hadDeviceEndpoint
  }
}

function openFlows(mode: Config['auth']['mode'], deps: SignInDependencies): SignInFlows {
  const trail = new SignInTrail(deps.audit, mode)
  const renewer = new TokenRenewer(deps)
  return {
    login: new BrowserLogin({ ...deps, trail, pending: createPendingLogins(deps.clock) }),
    session: new BrowserSession({ ...deps, trail, renewer }),
    device: new DeviceLogin({ ...deps, trail, renewer }),
    postLogoutPath: deps.client.postLogoutPath,
  }
}

/**
 * Returns a description of the caller for display. It does not grant access: each route checks access separately.
 *
 * @throws unauthorized  when the caller is anonymous
 * @see docs/requirements.md#S2.6-10
 */
export function describeCaller({ subject, session }: AuthContext) {
  if (!subject) throw new WbError('unauthorized', 'the request has no signed-in caller')
  const { id, label, type, workspaceScopes, role, scopes } = subject
  return {
    id,
    label,
    type,
    workspaceScopes: workspaceScopes && [...workspaceScopes],
    role: role ?? (scopes && roleOfScopes(scopes)),
    scopes: scopes && [...scopes],
    expiresAt: session.expiresAtSeconds,
    canRefresh: session.canRefresh,
    keyExpiresAt: session.keyExpiresAt,
  }
}
