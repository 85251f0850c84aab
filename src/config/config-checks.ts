import { isLoopback, isUnencryptedRemote } from '../base/loopback.ts'
import type { Config } from './schema.ts'
import { hasCookiePrefix } from './values.ts'

/** Error in the configuration. The message never contains a value that could be a secret. */
export interface ConfigKeyProblem {
  key: string
  message: string
}

/**
 * Checks rules that involve several keys.
 *
 * @see docs/configuration.md
 */
export function checkAcrossKeys(config: Config): ConfigKeyProblem[] {
  return [
    ...authProblems(config),
    ...controlPlaneProblems(config),
    ...nameProblems(config),
    ...productionProblems(config),
  ]
}

/**
 * Returns a problem if this version does not have the configured driver. A runtime cannot be opened with it
 * (`driver_unavailable`).
 */
export function missingDriverProblems({ controlPlane: { driver } }: Config): ConfigKeyProblem[] {
  const message = 'is not implemented; with it, a server starts in rescue mode, and commands fail'
  return problemIf(driver === 'postgres' || driver === 'astra', 'controlPlane.driver', message)
}

/** Returns warnings about settings that are valid but probably not intended. */
export function configWarnings(config: Config): string[] {
  return [...accessWarnings(config), ...signInWarnings(config)].map(({ key, message }) => `${key} ${message}`)
}

function problemIf(condition: boolean, key: string, message: string): ConfigKeyProblem[] {
  return condition ? [{ key, message }] : []
}

/** Returns true if callers without a credential are accepted. */
export function allowsAnonymous(config: Config): boolean {
  return config.auth.mode === 'disabled' || config.auth.anonymousPolicy === 'allow'
}

type AuthMode = Pick<Config['auth'], 'mode'>

/** Returns true if API keys are verified. */
export function usesApiKeys({ mode }: AuthMode): boolean {
  return mode === 'apiKey' || mode === 'any'
}

/** Returns true if access tokens of an identity provider are verified. */
export function usesOidc({ mode }: AuthMode): boolean {
  return mode === 'oidc' || mode === 'any'
}

function authProblems(config: Config): ConfigKeyProblem[] {
  const { runtime, auth, controlPlane } = config
  const cookie = auth.oidc?.client?.sessionCookieName ?? ''
  const isOpenButNotAllowed =
    auth.acknowledgeOpenAccess === false && controlPlane.driver !== 'memory' && allowsAnonymous(config)
  return [
    ...problemIf(
      auth.mode === 'disabled' && auth.bootstrapTokenRef !== null,
      'auth.bootstrapTokenRef',
      'has no effect while auth.mode is disabled; set auth.mode, or remove it',
    ),
    ...problemIf(
      usesOidc(auth) && auth.oidc === null,
      'auth.oidc',
      `issuer and audience are required with auth.mode ${auth.mode}`,
    ),
    ...problemIf(
      hasCookiePrefix(cookie) && !isHttps(runtime.publicOrigin),
      'auth.oidc.client.sessionCookieName',
      'has a prefix that browsers accept over https only; set runtime.publicOrigin to an https URL, or remove the prefix',
    ),
    ...problemIf(
      isOpenButNotAllowed,
      'auth.acknowledgeOpenAccess',
      'is false, but callers without a credential are accepted; set auth.mode and anonymousPolicy: reject, or set this key to true',
    ),
  ]
}

function isHttps(url: string | null): boolean {
  return url !== null && new URL(url).protocol === 'https:'
}

function controlPlaneProblems({ controlPlane, seedWorkspaces }: Config): ConfigKeyProblem[] {
  const inMemory = controlPlane.driver === 'memory'
  return [
    ...problemIf(
      inMemory && controlPlane.jobsResume.enabled,
      'controlPlane.jobsResume.enabled',
      'has no effect with driver memory, because its jobs end with the process',
    ),
    ...problemIf(
      seedWorkspaces.length > 0 && !inMemory,
      'seedWorkspaces',
      'requires controlPlane.driver memory',
    ),
  ]
}

function nameProblems({ seedWorkspaces, mcp }: Config): ConfigKeyProblem[] {
  return [
    ...duplicateIndexes(seedWorkspaces.map(({ name }) => name)).map(index => ({
      key: `seedWorkspaces[${index}].name`,
      message: 'is the same as the name of another workspace in the list',
    })),
    ...duplicateIndexes(mcp.stdioServers.map(({ id }) => id)).map(index => ({
      key: `mcp.stdioServers[${index}].id`,
      message: 'is the same as the id of another server in the list',
    })),
  ]
}

/** Returns the indexes of entries that also occur earlier in the list. */
function duplicateIndexes(entries: readonly string[]): number[] {
  return entries.flatMap((entry, index) => (entries.indexOf(entry) < index ? [index] : []))
}

function productionProblems({ runtime, controlPlane, auth }: Config): ConfigKeyProblem[] {
  if (runtime.environment !== 'production') return []
  const client = auth.oidc?.client
  const hasInsecureOrigin = runtime.publicOrigin !== null && !isHttps(runtime.publicOrigin)
  return [
    ...problemIf(controlPlane.driver === 'memory', 'controlPlane.driver', 'must not be memory in production'),
    ...problemIf(auth.mode === 'disabled', 'auth.mode', 'must not be disabled in production'),
    ...problemIf(auth.anonymousPolicy !== 'reject', 'auth.anonymousPolicy', 'must be reject in production'),
    ...problemIf(hasInsecureOrigin, 'runtime.publicOrigin', 'must be an https URL in production'),
    ...problemIf(
      client?.sessionSecretRef === null,
      'auth.oidc.client.sessionSecretRef',
      'is required in production, so that sessions remain valid after a restart',
    ),
    ...problemIf(
      !!client && runtime.publicOrigin === null,
      'runtime.publicOrigin',
      'is required in production when browser login is configured',
    ),
  ]
}

function accessWarnings(config: Config): ConfigKeyProblem[] {
  const { runtime, auth } = config
  return [
    ...problemIf(
      auth.mode === 'disabled' && auth.anonymousPolicy === 'reject',
      'auth.anonymousPolicy',
      'is reject, which protects nothing while auth.mode is disabled, because any token is accepted; set auth.mode',
    ),
    ...problemIf(
      allowsAnonymous(config) && !isLoopback(runtime.host) && auth.acknowledgeOpenAccess !== true,
      'runtime.host',
      'lets other machines connect, and callers without a credential are accepted, so a server starts only with --allow-open-access',
    ),
    ...problemIf(
      auth.mode !== 'disabled' && auth.anonymousPolicy === 'allow',
      'auth.anonymousPolicy',
      'is allow: callers without a credential pass every check, for any auth.mode; set it to reject',
    ),
    ...problemIf(
      runtime.trustProxyHeaders === true && !isLoopback(runtime.host),
      'runtime.trustProxyHeaders',
      'is true: any client that can reach this port can forge its address, host and scheme. List the addresses of your proxies instead',
    ),
  ]
}

function signInWarnings({ runtime: { publicOrigin }, auth }: Config): ConfigKeyProblem[] {
  const { mode, oidc } = auth
  if (!oidc) return []
  if (!usesOidc(auth))
    return [
      {
        key: 'auth.oidc',
        message: `has no effect while auth.mode is ${mode}, so no caller can sign in with it`,
      },
    ]
  if (!oidc.client || publicOrigin === null) return []
  const site = new URL(publicOrigin)
  return [
    ...problemIf(
      new URL(oidc.client.redirectPath, site).origin !== site.origin,
      'auth.oidc.client.redirectPath',
      'does not have the origin of runtime.publicOrigin',
    ),
    ...problemIf(
      isUnencryptedRemote(site),
      'runtime.publicOrigin',
      'is http, so sessions can be stolen on the network; use https',
    ),
  ]
}
