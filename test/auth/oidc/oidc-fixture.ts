import { JwtVerifier } from '../../../src/auth/oidc/jwt-verifier.ts'
import type { OidcClient, OidcConfig } from '../../../src/auth/oidc/protocol.ts'
import { type IdentityProvider, openProvider } from '../../../src/auth/oidc/provider.ts'
import type { Log } from '../../../src/base/log.ts'
import { audience, clients, type RunningProvider } from '../../harness/identity-provider.ts'
import { TestClock } from '../../harness/runtime.ts'

/** A clock that starts at the present, because tokens of a real provider do, and then moves only on request. */
export class PresentClock extends TestClock {
  constructor() {
    super()
    this.advance(Date.now() - this.now())
  }
}

export const minuteMs = 60_000

/** Returns the `auth.oidc` block with its defaults. */
export function oidcConfig(issuer: string, more: Partial<OidcConfig> = {}): OidcConfig {
  return {
    issuer,
    audience,
    jwksUri: null,
    clockToleranceSeconds: 30,
    scopes: [],
    claims: { subject: 'sub', label: 'email', workspaceScopes: 'wb_workspace_scopes' },
    roleMapping: null,
    client: null,
    ...more,
  }
}

/** Returns the `auth.oidc.client` block with its defaults. */
export function oidcClient(more: Partial<OidcClient> = {}): OidcClient {
  return {
    clientId: clients.public.id,
    clientSecretRef: null,
    redirectPath: '/auth/callback',
    postLogoutPath: '/',
    scopes: ['openid', 'profile', 'email'],
    resource: null,
    sessionCookieName: 'wb_session',
    sessionSecretRef: null,
    ...more,
  }
}

export interface OidcFixture {
  readonly verifier: JwtVerifier
  readonly provider: IdentityProvider
  readonly clock: TestClock
  /** Logged warnings with their details, as text. */
  readonly warnings: string[]
}

/** Creates the provider client and the verifier without a runtime. */
export function createOidcFixture(
  running: Pick<RunningProvider, 'issuer'>,
  more: Partial<OidcConfig> = {},
  parts: { clientSecret?: string; fetch?: typeof fetch } = {},
): OidcFixture {
  const clock = new PresentClock()
  const warnings: string[] = []
  const warn = (facts: object, message: string) => void warnings.push(`${message} ${JSON.stringify(facts)}`)
  const log: Log = { debug() {}, info() {}, warn, error: warn }
  const oidc = oidcConfig(running.issuer, more)
  const common = { oidc, clock, fetch: parts.fetch ?? fetch }
  const provider = openProvider({ ...common, clientSecret: parts.clientSecret })
  return { provider, verifier: new JwtVerifier({ ...common, provider, log }), clock, warnings }
}
