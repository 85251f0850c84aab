import type { AuditTrail } from '../../access/audit.ts'
import type { AuthContext } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { within } from '../../base/deadline.ts'
import { usesKeys, usesOidc } from '../../config/checks.ts'
import type { Config } from '../../config/schema.ts'
import { auth } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { roleOf } from '../../contract/scopes.ts'
import type { JwtVerifier } from '../oidc/jwt.ts'
import type { OidcClient } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'
import type { SessionCookies } from './cookie.ts'
import { DeviceLogin } from './device.ts'
import { Renewer } from './issued.ts'
import { BrowserLogin } from './login.ts'
import { pendingLogins } from './pending-logins.ts'
import { BrowserSession } from './refresh.ts'
import type { Seal } from './seal.ts'
import { SignInTrail } from './trail.ts'

/** What signing in with an identity provider takes. */
export interface SignInParts {
  readonly client: OidcClient
  readonly provider: IdentityProvider
  readonly verifier: Pick<JwtVerifier, 'check'>
  readonly cookies: SessionCookies
  readonly seal: Seal
  readonly audit: Pick<AuditTrail, 'require' | 'note'>
  readonly clock: Clock
}

/** The ways of signing in. */
export interface Flows {
  readonly login: BrowserLogin
  readonly session: BrowserSession
  readonly device: DeviceLogin
  readonly postLogoutPath: string
}

/** Paths below `/auth/` that need no identity provider. */
const alwaysServed: readonly string[] = [auth.config.path, auth.me.path]

function notConfigured(): WbError {
  return new WbError('not_configured', 'signing in with an identity provider is not configured')
}

/** How long `/auth/config` waits for what the provider can do. */
const providerWaitMs = 1_000

/** Signing in: by a browser and by a device. Without `parts` only keys are known here. */
export class SignIn {
  readonly #flows: Flows | undefined
  /** Whether the provider had a device endpoint when it was last heard. */
  #device = false

  constructor(
    readonly mode: Config['auth']['mode'],
    readonly parts: SignInParts | undefined,
  ) {
    this.#flows = parts && openFlows(mode, parts)
  }

  /** @throws not_configured  nobody can sign in with an identity provider here */
  get flows(): Flows {
    if (this.#flows) return this.#flows
    throw notConfigured()
  }

  /** Path of the redirect URI on this runtime; undefined if sign-in is not configured. */
  get callbackPath(): string | undefined {
    return this.parts && new URL(this.parts.client.redirectPath, 'http://localhost').pathname
  }

  /** Returns the refusal of a path, for every method and body; undefined if the path is served. */
  refusalOf(path: string): WbError | undefined {
    const isServed = this.#flows || !path.startsWith('/auth/') || alwaysServed.includes(path)
    return isServed ? undefined : notConfigured()
  }

  /** Which ways of signing in exist, whatever the provider does at the moment. @see docs/requirements.md#S4.3-02 */
  async config() {
    const login = this.parts !== undefined
    const path = (at: string) => (login ? at : null)
    return {
      modes: {
        apiKey: usesKeys(this),
        oidc: usesOidc(this),
        login,
        device: await this.#hasDevice(),
      },
      loginPath: path(auth.login.path),
      refreshPath: path(auth.refresh.path),
      deviceAuthorizePath: path(auth.deviceAuthorize.path),
      deviceTokenPath: path(auth.deviceToken.path),
      deviceRefreshPath: path(auth.deviceRefresh.path),
    }
  }

  /** What the provider says now, else what it said last. */
  async #hasDevice(): Promise<boolean> {
    if (!this.parts) return false
    const { provider, clock } = this.parts
    const heard = provider.hasDeviceEndpoint().then(
      has => {
        this.#device = has
      },
      () => {},
    )
    await within(clock, providerWaitMs, () => heard).catch(() => {})
    return this.#device
  }
}

function openFlows(mode: Config['auth']['mode'], parts: SignInParts): Flows {
  const trail = new SignInTrail(parts.audit, mode)
  const renewer = new Renewer(parts)
  return {
    login: new BrowserLogin({ ...parts, trail, pending: pendingLogins(parts.clock) }),
    session: new BrowserSession({ ...parts, trail, renewer }),
    device: new DeviceLogin({ ...parts, trail, renewer }),
    postLogoutPath: parts.client.postLogoutPath,
  }
}

/**
 * A caller, as it is told about itself: for what a client shows, as each route checks for itself.
 *
 * @throws unauthorized  nobody is signed in
 * @see docs/requirements.md#S2.6-10
 */
export function describeSelf({ subject, session }: AuthContext) {
  if (!subject) throw new WbError('unauthorized', 'nobody is signed in')
  const { id, label, type, workspaceScopes, role, scopes } = subject
  return {
    id,
    label,
    type,
    workspaceScopes: workspaceScopes && [...workspaceScopes],
    role: role ?? (scopes && roleOf(scopes)),
    scopes: scopes && [...scopes],
    expiresAt: session.expiresAtSeconds,
    canRefresh: session.canRefresh,
    keyExpiresAt: session.keyExpiresAt,
  }
}
