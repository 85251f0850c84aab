import { shellWord } from '../../base/shell-word.ts'
import type { AuthConfig } from '../../contract/auth.ts'
import { browserSignInHint } from '../command/sign-in-hints.ts'
import { acceptsTokensOnly } from '../connection/auth-methods.ts'
import { acceptsAnonymous, type ServerRuntime } from '../local.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import { wrapWords } from '../terminal/wrap.ts'
import type { RestartableServer } from './restartable-server.ts'

/** Details of a started server. */
export interface StartedServer extends Pick<RestartableServer, 'url' | 'loopback' | 'config' | 'runtime'> {
  dataDir: string
  /** True if commands in another terminal use the data directory without a flag. */
  isDefaultDataDir: boolean
  version: string
}

/** Returns the startup message: address, data directory, authentication, and the next command to run. */
export async function welcome(
  server: StartedServer,
  { style, width }: Pick<Output, 'style' | 'width'>,
): Promise<string> {
  const { url, runtime, dataDir, version } = server
  const readiness = await fetchJson<Readiness>(runtime, '/readyz')
  const { workspaces } = readiness
  const state = workspaces === undefined ? readiness.error?.message : formatCounted(workspaces, 'workspace')
  const fields = {
    data: [dataDir, state].filter(Boolean).join(' · '),
    ...(await authFields(server)),
    reference: `${url}/docs`,
    'ctrl-c': 'stops the server',
  }
  const lines = [
    `  ${style.strong('Workbase')} ${version}  ${style.strong(url)}`,
    ...Object.entries(fields).map(
      ([name, text]) => `  ${style.dim(name)}${' '.repeat(11 - name.length)}${text}`,
    ),
    '',
    `  ${await nextCommand(server, workspaces)}`,
  ]
  return wrapWords(lines.join('\n'), width)
}

/** Response of `/readyz`. The error is present if the runtime is not ready, for example because the disk is full. */
type Readiness =
  | { readonly workspaces: number }
  | { readonly workspaces?: undefined; readonly error?: { readonly message: string } }

async function fetchJson<T>(runtime: ServerRuntime, path: string): Promise<T> {
  return (await runtime.fetch(new Request(`http://localhost${path}`))).json() as Promise<T>
}

/** Describes which callers are accepted, and how they authenticate. */
async function authFields({ loopback, config, runtime }: StartedServer): Promise<Record<string, string>> {
  const { mode, bootstrapTokenRef, oidc } = config.config.auth
  if (mode === 'disabled') return { callers: describeAnyCaller(loopback) }
  const anonymousCallers = (await acceptsAnonymous(config)) ? `${describeAnyCaller(loopback)}; ` : ''
  const { modes } = await fetchAuthMethods(runtime)
  const credentials = [
    modes.apiKey && 'an API key',
    modes.oidc && 'an access token of the identity provider',
  ].filter(Boolean)
  const signInMethods = [modes.login && 'browser sign-in', modes.device && 'device sign-in'].filter(Boolean)
  const signIn = signInMethods.length > 0 ? signInMethods.join(' and ') : 'access tokens only'
  return {
    callers: `${anonymousCallers}with ${credentials.join(' or ')} (auth.mode ${mode})`,
    ...(modes.oidc && oidc && { provider: `${oidc.issuer} · ${signIn}` }),
    bootstrap: bootstrapTokenRef === null ? 'no token' : 'token set; each use is audited',
  }
}

function describeAnyCaller(loopback: boolean): string {
  return loopback ? 'anyone on this machine' : 'anyone who can reach this address'
}

/** @param workspaces  number of workspaces; undefined if the runtime is not ready */
async function nextCommand(server: StartedServer, workspaces: number | undefined): Promise<string> {
  const { config, runtime, url, dataDir, isDefaultDataDir } = server
  const dataDirFlag = isDefaultDataDir ? '' : ` --data-dir ${shellWord(dataDir)}`
  const inOtherTerminal = (command: string) => `${command}${dataDirFlag}    in another terminal`
  if (workspaces === undefined) return inOtherTerminal('wb doctor')
  if (await acceptsAnonymous(config))
    return inOtherTerminal(workspaces === 0 ? 'wb quickstart' : 'wb kb search "…"')
  const authMethods = await fetchAuthMethods(runtime)
  return acceptsTokensOnly(authMethods)
    ? browserSignInHint(url, authMethods.loginPath)
    : inOtherTerminal('wb keys create NAME --role admin --as-operator')
}

function fetchAuthMethods(runtime: ServerRuntime): Promise<Pick<AuthConfig, 'modes' | 'loginPath'>> {
  return fetchJson(runtime, '/auth/config')
}

/** Returns a warning if the server accepts callers without a credential and stores its data on disk. */
export async function openAccessWarning({
  loopback,
  config,
  dataDir,
}: StartedServer): Promise<string | undefined> {
  const { controlPlane, auth } = config.config
  if (controlPlane.driver === 'memory' || !(await acceptsAnonymous(config))) return undefined
  const setting =
    auth.mode === 'disabled'
      ? 'auth.mode: apiKey and auth.anonymousPolicy: reject'
      : 'auth.anonymousPolicy: reject'
  return `${describeAnyCaller(loopback)} can read and change everything in ${dataDir} without a credential; to require one, set ${setting}`
}
