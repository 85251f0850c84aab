import type { AuditTrail } from '../access/audit-trail.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { AuthSecrets } from '../config/auth-secrets.ts'
import { usesApiKeys, usesOidc } from '../config/config-checks.ts'
import type { Config } from '../config/schema.ts'
import { auth } from '../contract/auth.ts'
import { api } from '../contract/index.ts'
import type { Route } from '../contract/route.ts'
import type { Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { type Authenticate, createAuthenticate, type TokenVerifier } from './authenticate.ts'
import { BootstrapVerifier } from './bootstrap-verifier.ts'
import { Admission } from './keys/admission.ts'
import { ApiKeys } from './keys/api-keys.ts'
import { ApiKeyVerifier } from './keys/key-verifier.ts'
import type { KeyCost } from './keys/token.ts'
import { JwtVerifier } from './oidc/jwt-verifier.ts'
import { type IdentityProvider, openProvider } from './oidc/provider.ts'
import { Sealer } from './session/sealer.ts'
import { SessionCookies } from './session/session-cookies.ts'
import { SignIn, type SignInDependencies } from './session/sign-in.ts'

export interface AuthDependencies {
  readonly config: Config['auth']
  readonly secrets: AuthSecrets
  readonly rows: RowStore
  readonly pager: Pager
  /** Secret of the store, from which the checksums of API keys are derived. */
  readonly tokenKey: string
  readonly keyCost: KeyCost
  readonly audit: AuditTrail
  readonly clock: Clock
  readonly log: Log
  readonly fetch: typeof fetch
}

/** The authentication module: authenticates callers, manages API keys, and signs in users. */
export interface Auth {
  readonly authenticate: Authenticate
  readonly keys: ApiKeys
  readonly signIn: SignIn
  /**
   * Discovers the identity provider if one is configured, and logs warnings about the configuration.
   *
   * @throws validation_error  when the provider cannot be found; the message contains the URL and the reason
   */
  discover(): Promise<void>
  close(): Promise<void>
}

const redirectKey = 'auth.oidc.client.redirectPath'
const sessionKey = 'auth.oidc.client.sessionSecretRef'
const unsetSecretWarning = `${sessionKey} is not set: browsers and devices are signed out when this process ends`

/** Creates the configured authentication. It does not contact the identity provider yet. */
export function openAuth(deps: AuthDependencies): Auth {
  const { config } = deps
  const { mode } = config
  const keyParts = { ...deps, admission: new Admission() }
  const keyVerifier = usesApiKeys(config) ? new ApiKeyVerifier(keyParts) : undefined
  const oidc = openOidc(deps)
  const signIn = new SignIn(mode, oidc?.signIn)
  const verifiers: (TokenVerifier | undefined)[] = [bootstrapVerifier(deps), keyVerifier, oidc?.verifier]
  return {
    authenticate: createAuthenticate({
      ...config,
      verifiers: verifiers.filter(verifier => verifier !== undefined),
      sessions: oidc?.signIn?.cookies,
    }),
    keys: new ApiKeys(keyParts),
    signIn,
    async discover() {
      await oidc?.provider.discover()
      if (oidc?.signIn) warnAboutSettings(deps, signIn.callbackPath)
    },
    close: async () => keyVerifier?.close(),
  }
}

type OperatorDependencies = Pick<AuthDependencies, 'config' | 'secrets' | 'audit'>

/**
 * Returns an authentication function that accepts only the bootstrap token. It works without a store.
 */
export function createOperatorAuthenticate(deps: OperatorDependencies): Authenticate {
  const verifier = bootstrapVerifier(deps)
  return createAuthenticate({ ...deps.config, verifiers: verifier ? [verifier] : [], sessions: undefined })
}

function bootstrapVerifier({
  config: { mode },
  secrets,
  audit,
}: OperatorDependencies): TokenVerifier | undefined {
  const token = secrets.bootstrapToken
  return mode === 'disabled' || token === undefined
    ? undefined
    : new BootstrapVerifier({ token, mode, audit })
}

/** Logs warnings about valid settings that have unexpected effects. */
function warnAboutSettings({ secrets, log }: AuthDependencies, callbackPath: string | undefined): void {
  if (secrets.sessionSecrets.length === 0) log.warn({ key: sessionKey }, unsetSecretWarning)
  const routes: Route[] = Object.values(api).flatMap(topic => Object.values(topic))
  const other = routes.find(({ method, path }) => method === 'GET' && path === callbackPath)
  if (other && other !== auth.callback)
    log.warn(
      { key: redirectKey },
      `${redirectKey} is the path of another route: configure a proxy that forwards it to ${auth.callback.path}`,
    )
}

interface OidcServices {
  readonly provider: IdentityProvider
  readonly verifier: JwtVerifier
  readonly signIn: SignInDependencies | undefined
}

function openOidc({ config, secrets, audit, clock, log, fetch }: AuthDependencies): OidcServices | undefined {
  const { oidc } = config
  if (!usesOidc(config) || !oidc) return undefined
  const provider = openProvider({ oidc, clientSecret: secrets.clientSecret, fetch, clock })
  const verifier = new JwtVerifier({ oidc, provider, fetch, clock, log })
  const { client } = oidc
  if (!client) return { provider, verifier, signIn: undefined }
  const sealer = new Sealer(secrets.sessionSecrets)
  const cookies = new SessionCookies({ sealer, name: client.sessionCookieName })
  return { provider, verifier, signIn: { client, provider, verifier, cookies, sealer, audit, clock } }
}
