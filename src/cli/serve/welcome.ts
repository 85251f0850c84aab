import { shellWord } from '../../base/shell-word.ts'
import type { AuthConfig } from '../../contract/auth.ts'
import { browserSignInHint } from '../command/sign-in-hints.ts'
import { acceptsTokensOnly } from '../connection/auth-methods.ts'
import { anonymousPass, type ServerRuntime } from '../local.ts'
import { formatCounted } from '../terminal/output.ts'
import type { Style } from '../terminal/style.ts'
import type { Serving } from './serving.ts'

/** Details of a started server. */
export interface StartedServer extends Pick<Serving, 'url' | 'loopback' | 'config' | 'runtime'> {
  dataDir: string
  /** True if commands in another terminal find the data directory without a flag. */
  isDefaultDataDir: boolean
  version: string
}

/** Returns the startup text: address, data, authentication and next commands. */
export async function welcome(server: StartedServer, style: Style): Promise<string> {
  const { url, runtime, dataDir, version } = server
  const { workspaces } = await fetchJson<{ workspaces: number }>(runtime, '/readyz')
  const fields = {
    data: `${dataDir} · ${formatCounted(workspaces, 'workspace')}`,
    ...(await authFields(server)),
    reference: `${url}/docs`,
    'ctrl-c': 'stops the server',
  }
  return [
    `  ${style.strong('Workbase')} ${version}  ${style.strong(url)}`,
    ...Object.entries(fields).map(
      ([name, text]) => `  ${style.dim(name)}${' '.repeat(11 - name.length)}${text}`,
    ),
    '',
    `  ${await nextCommand(server, workspaces)}`,
  ].join('\n')
}

async function fetchJson<T>(runtime: ServerRuntime, path: string): Promise<T> {
  return (await runtime.fetch(new Request(`http://localhost${path}`))).json() as Promise<T>
}

/** Describes the callers that are allowed, and how they authenticate. */
async function authFields({ loopback, config, runtime }: StartedServer): Promise<Record<string, string>> {
  const { mode, bootstrapTokenRef, oidc } = config.config.auth
  if (mode === 'disabled') return { callers: describeAnyCaller(loopback) }
  const passing = (await anonymousPass(config)) ? `${describeAnyCaller(loopback)}; ` : ''
  const { modes } = await fetchAuthMethods(runtime)
  const proofs = [
    modes.apiKey && 'an API key',
    modes.oidc && 'an access token of the identity provider',
  ].filter(Boolean)
  const ways = [modes.login && 'browsers', modes.device && 'devices'].filter(Boolean)
  const signIn = ways.length > 0 ? `${ways.join(' and ')} sign in` : 'tokens only'
  return {
    callers: `${passing}with ${proofs.join(' or ')} (auth.mode ${mode})`,
    ...(modes.oidc && oidc && { provider: `${oidc.issuer} · ${signIn}` }),
    bootstrap: bootstrapTokenRef === null ? 'no token' : 'token set; each use is audited',
  }
}

function describeAnyCaller(loopback: boolean): string {
  return loopback ? 'anyone on this machine' : 'anyone who can reach this address'
}

async function nextCommand(server: StartedServer, workspaces: number): Promise<string> {
  const { config, runtime, url, dataDir, isDefaultDataDir } = server
  const place = isDefaultDataDir ? '' : ` --data-dir ${shellWord(dataDir)}`
  const elsewhere = (line: string) => `${line}${place}    in another terminal`
  if (await anonymousPass(config)) return elsewhere(workspaces === 0 ? 'wb quickstart' : 'wb kb search "…"')
  const ways = await fetchAuthMethods(runtime)
  return acceptsTokensOnly(ways)
    ? browserSignInHint(url, ways.loginPath)
    : elsewhere('wb keys create NAME --role admin --as-operator')
}

function fetchAuthMethods(runtime: ServerRuntime): Promise<Pick<AuthConfig, 'modes' | 'loginPath'>> {
  return fetchJson(runtime, '/auth/config')
}

/** Returns a warning if the server stores data without authentication. */
export async function openAccessWarning({
  loopback,
  config,
  dataDir,
}: StartedServer): Promise<string | undefined> {
  const { controlPlane, auth } = config.config
  if (controlPlane.driver === 'memory' || !(await anonymousPass(config))) return undefined
  const setting =
    auth.mode === 'disabled'
      ? 'auth.mode: apiKey and anonymousPolicy: reject'
      : 'auth.anonymousPolicy: reject'
  return `${describeAnyCaller(loopback)} can read and change everything in ${dataDir} without a credential; to require one, set ${setting}`
}
