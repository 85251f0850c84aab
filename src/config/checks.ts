import { isInTheClear, isLoopback } from '../base/loopback.ts'
import type { Config } from './schema.ts'
import { hasCookiePrefix } from './values.ts'

/** Error in the configuration, by key. The message never contains a value that could be a secret. */
export interface Problem {
  key: string
  message: string
}

/**
 * Checks rules that involve several keys.
 *
 * @see docs/configuration.md
 */
export function crossCheck(config: Config): Problem[] {
  return [
    ...authProblems(config),
    ...controlPlaneProblems(config),
    ...nameProblems(config),
    ...productionProblems(config),
  ]
}

/**
 * Returns a problem if the driver is not available in this version. No runtime opens with it
 * (`driver_unavailable`).
 */
export function notBuilt({ controlPlane: { driver } }: Config): Problem[] {
  const message = 'is not built yet; a server starts in rescue mode with it, and commands fail'
  return when(driver === 'postgres' || driver === 'astra', 'controlPlane.driver', message)
}

/** Returns warnings about settings that are valid but probably not intended. */
export function cautions(config: Config): string[] {
  return [...accessCautions(config), ...signInCautions(config)].map(({ key, message }) => `${key} ${message}`)
}

function when(condition: boolean, key: string, message: string): Problem[] {
  return condition ? [{ key, message }] : []
}

/** Returns true if callers without a credential are accepted. */
export function isOpen(config: Config): boolean {
  return config.auth.mode === 'disabled' || config.auth.anonymousPolicy === 'allow'
}

type Mode = Pick<Config['auth'], 'mode'>

/** Returns true if API keys are verified. */
export function usesKeys({ mode }: Mode): boolean {
  return mode === 'apiKey' || mode === 'any'
}

/** Returns true if users and devices sign in with an identity provider. */
export function usesOidc({ mode }: Mode): boolean {
  return mode === 'oidc' || mode === 'any'
}

function authProblems(config: Config): Problem[] {
  const { runtime, auth, controlPlane } = config
  const cookie = auth.oidc?.client?.sessionCookieName ?? ''
  const refused = auth.acknowledgeOpenAccess === false && controlPlane.driver !== 'memory' && isOpen(config)
  return [
    ...when(
      auth.mode === 'disabled' && auth.bootstrapTokenRef !== null,
      'auth.bootstrapTokenRef',
      'has no use while auth.mode is disabled; set auth.mode, or take it out',
    ),
    ...when(
      usesOidc(auth) && auth.oidc === null,
      'auth.oidc',
      `issuer and audience are required with auth.mode ${auth.mode}`,
    ),
    ...when(
      hasCookiePrefix(cookie) && !isHttps(runtime.publicOrigin),
      'auth.oidc.client.sessionCookieName',
      'has a prefix that browsers take over https only; set runtime.publicOrigin to an https URL, or take it out',
    ),
    ...when(
      refused,
      'auth.acknowledgeOpenAccess',
      'is false and callers without a credential pass; set auth.mode and anonymousPolicy: reject, or acknowledge it with true',
    ),
  ]
}

function isHttps(url: string | null): boolean {
  return url !== null && new URL(url).protocol === 'https:'
}

function controlPlaneProblems({ controlPlane, seedWorkspaces }: Config): Problem[] {
  const inMemory = controlPlane.driver === 'memory'
  return [
    ...when(
      inMemory && controlPlane.jobsResume.enabled,
      'controlPlane.jobsResume.enabled',
      'has no use with driver memory, whose jobs end with the process',
    ),
    ...when(seedWorkspaces.length > 0 && !inMemory, 'seedWorkspaces', 'needs controlPlane.driver memory'),
  ]
}

function nameProblems({ seedWorkspaces, mcp }: Config): Problem[] {
  return [
    ...repeated(seedWorkspaces.map(({ name }) => name)).map(at => ({
      key: `seedWorkspaces[${at}].name`,
      message: 'is the name of an earlier workspace',
    })),
    ...repeated(mcp.stdioServers.map(({ id }) => id)).map(at => ({
      key: `mcp.stdioServers[${at}].id`,
      message: 'is the id of an earlier server',
    })),
  ]
}

/** Returns the indexes of entries that also occur earlier in the list. */
function repeated(entries: readonly string[]): number[] {
  return entries.flatMap((entry, at) => (entries.indexOf(entry) < at ? [at] : []))
}

function productionProblems({ runtime, controlPlane, auth }: Config): Problem[] {
  if (runtime.environment !== 'production') return []
  const client = auth.oidc?.client
  const insecure = runtime.publicOrigin !== null && !isHttps(runtime.publicOrigin)
  return [
    ...when(controlPlane.driver === 'memory', 'controlPlane.driver', 'must not be memory in production'),
    ...when(auth.mode === 'disabled', 'auth.mode', 'must not be disabled in production'),
    ...when(auth.anonymousPolicy !== 'reject', 'auth.anonymousPolicy', 'must be reject in production'),
    ...when(insecure, 'runtime.publicOrigin', 'must be an https URL in production'),
    ...when(
      client?.sessionSecretRef === null,
      'auth.oidc.client.sessionSecretRef',
      'is required in production, so that sessions outlive a restart',
    ),
    ...when(
      !!client && runtime.publicOrigin === null,
      'runtime.publicOrigin',
      'is required in production when browser login is configured',
    ),
  ]
}

function accessCautions(config: Config): Problem[] {
  const { runtime, auth } = config
  return [
    ...when(
      auth.mode === 'disabled' && auth.anonymousPolicy === 'reject',
      'auth.anonymousPolicy',
      'is reject, which closes nothing while auth.mode is disabled: any text passes as a token; set auth.mode',
    ),
    ...when(
      isOpen(config) && !isLoopback(runtime.host) && auth.acknowledgeOpenAccess !== true,
      'runtime.host',
      'lets other machines in, and callers without a credential pass: no server starts without --allow-open-access',
    ),
    ...when(
      auth.mode !== 'disabled' && auth.anonymousPolicy === 'allow',
      'auth.anonymousPolicy',
      'is allow: callers without a credential pass every gate, whatever auth.mode says; set it to reject',
    ),
    ...when(
      runtime.trustProxyHeaders === true && !isLoopback(runtime.host),
      'runtime.trustProxyHeaders',
      'is true: whoever reaches this port may write any address, host and scheme; list the addresses of the proxies',
    ),
  ]
}

function signInCautions({ runtime: { publicOrigin }, auth }: Config): Problem[] {
  const { mode, oidc } = auth
  if (!oidc) return []
  if (!usesOidc(auth))
    return [
      { key: 'auth.oidc', message: `has no effect while auth.mode is ${mode}: nobody signs in with it` },
    ]
  if (!oidc.client || publicOrigin === null) return []
  const site = new URL(publicOrigin)
  return [
    ...when(
      new URL(oidc.client.redirectPath, site).origin !== site.origin,
      'auth.oidc.client.redirectPath',
      'leads to another origin than runtime.publicOrigin',
    ),
    ...when(
      isInTheClear(site),
      'runtime.publicOrigin',
      'is http: whoever listens on the way can take a session over',
    ),
  ]
}
