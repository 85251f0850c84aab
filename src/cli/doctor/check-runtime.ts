import { packageBuild, packageVersion } from '../../base/package.ts'
import { shellWord } from '../../base/shell-word.ts'
import { openClient } from '../../client/client.ts'
import { isRefusedConnection, Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { runtimeRoutes } from '../../contract/runtime-routes.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { KeychainUnavailable } from '../../keychain/keychain.ts'
import { toReport } from '../command/report.ts'
import { serveCommand, signInHints } from '../command/sign-in-hints.ts'
import { requiresNoCredential } from '../connection/auth-methods.ts'
import type { ResolvedRuntime } from '../connection/resolve-runtime.ts'
import type { Session } from '../connection/session.ts'
import { isCi } from '../environment.ts'
import { type Announcement, acceptsAnonymous, type LocalConfig } from '../local.ts'
import { suggestAddress } from '../settings/address.ts'
import { callerName, identifyCaller } from '../sign-in/identity.ts'
import { describeCredential } from '../sign-in/notes.ts'
import { formatCounted } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { type Finding, failed, failedWithHint, findingFromError, ok, skipped, warning } from './check.ts'

/** Address and transport of a runtime. */
export type RuntimeEndpoint = Pick<ResolvedRuntime, 'kind' | 'baseUrl' | 'fetch'>

/** Checks that a runtime serves requests. */
export async function checkRuntime(runtime: RuntimeEndpoint, signal: AbortSignal): Promise<Finding> {
  const { baseUrl } = runtime
  try {
    const ready = await openClient(runtime).call(runtimeRoutes.ready, {}, { signal })
    return ok(`${baseUrl} serves ${formatCounted(ready.workspaces, 'workspace')}`)
  } catch (error) {
    const suggestion = runtime.kind === 'url' ? suggestAddress(baseUrl, error) : undefined
    if (suggestion && error instanceof Error)
      return failed(`${baseUrl}: ${error.message}`, `wb doctor --url ${shellWord(suggestion.url)}`)
    if (error instanceof Unreachable)
      return failed(error.message, suggestCommand(runtime, isRefusedConnection(error)))
    if (!(error instanceof WbError) || error.code === 'draining') return findingFromError(error)
    const { code, message } = toReport(error)
    return failed(`${message} (${code}); fix the cause first`, 'wb api POST /setup/restart')
  }
}

/** Returns the finding for a runtime that does not respond in time. */
export function runtimeTimeoutFinding(runtime: RuntimeEndpoint): Finding {
  return failed(`${runtime.baseUrl} does not respond in time`, suggestCommand(runtime, false))
}

/** Suggests a command for a runtime that does not respond. If the port is free, the command starts a runtime. */
function suggestCommand({ kind, baseUrl }: RuntimeEndpoint, isPortFree: boolean): string {
  if (kind === 'server') return 'wb serve'
  return (isPortFree ? serveCommand(baseUrl) : undefined) ?? 'wb doctor --url URL'
}

/**
 * Compares the versions and commits of the runtime and wb. The commits are compared because `APP_VERSION` can set the
 * version that a runtime reports.
 */
export async function checkVersion(
  runtime: RuntimeEndpoint,
  server: Announcement | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  const { version, commit } = await openClient(runtime).call(runtimeRoutes.version, {}, { signal })
  const cliVersion = packageVersion()
  const cliCommit = packageBuild()?.commit ?? 'unknown'
  const build = compareCommits(cliCommit, commit)
  const restart = runtime.kind === 'server' && server ? `kill ${server.pid}; wb serve` : undefined
  if (version === cliVersion && restart && build === 'different')
    return warning(
      `wb ${cliVersion} is commit ${cliCommit}, but the server runs ${plainLine(commit)}`,
      restart,
    )
  if (version === cliVersion) return ok(`${cliVersion}, same as the runtime`)
  if (build === 'equal') return ok(`${cliVersion}, which the runtime reports as ${plainLine(version)}`)
  const detail = `wb is version ${cliVersion}, but the runtime is ${plainLine(version)}`
  if (restart) return warning(detail, restart)
  return warning(detail, isVersion(version) ? `npm install --global workbase@${version}` : undefined)
}

/**
 * Compares two commits. Only hashes can be compared, and one of them may be abbreviated. A build outside a clone
 * has no hash, and `APP_COMMIT` can have any value.
 */
function compareCommits(first: string, second: string): 'equal' | 'different' | 'unknown' {
  const isHash = (text: string) => /^[0-9a-f]{7,64}$/i.test(text)
  if (!isHash(first) || !isHash(second)) return 'unknown'
  const [a, b] = [first.toLowerCase(), second.toLowerCase()]
  return a.startsWith(b) || b.startsWith(a) ? 'equal' : 'different'
}

/** Returns true for a version number. Other text from the runtime must not become part of a suggested command. */
function isVersion(text: string): boolean {
  return /^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(text)
}

/** Returns the `Date` header of a runtime. */
export async function fetchDateHeader(
  { baseUrl, fetch }: RuntimeEndpoint,
  signal: AbortSignal,
): Promise<string | null> {
  const response = await fetch(`${baseUrl}/healthz`, { method: 'GET', headers: {}, signal })
  await response.text()
  return response.headers.get('date')
}

/**
 * Checks that the runtime accepts the credential. If `runtime` is undefined, only describes the credential that
 * would be sent.
 *
 * @param local  configuration of the data directory; undefined if it cannot be read
 */
export async function checkCredential(
  session: Session,
  runtime: RuntimeEndpoint | undefined,
  local: LocalConfig | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  const { used } = session.credential
  const credential = used ? describeCredential(used) : 'no credential'
  if (!runtime) return skipped(`${credential}; no server is running to check it`, 'wb whoami')
  const caller = await identifyCaller(session, signal).catch(toUnreadable)
  if (caller === 'unreadable') return skipped(`${credential}, which could not be read; see keychain`)
  if (caller.kind === 'identified') return ok(`${credential}; you are ${callerName(caller.me)}`)
  if (caller.kind === 'anonymous' || (!used && (await allowsAnonymous(session, signal))))
    return openAccessFinding(runtime, local)
  const { error, authMethods } = caller
  if (error.facts.wireStatus !== 401) throw error
  const { message } = error
  const lines = signInHints(session.profile, used, {
    ...runtime,
    authMethods,
    isCi: isCi(session.io.env),
    message,
  })
  if (used && authMethods && requiresNoCredential(authMethods))
    return failed(
      `${lines[0]}, and does not need one`,
      used.from === 'wb login' ? 'wb logout' : 'unset WB_API_KEY',
    )
  return failedWithHint(used ? lines[0]! : `${credential}, but the runtime requires one`, lines.at(-1))
}

/** Warns if the configuration of a server requires a credential since a change that needs a restart. */
async function openAccessFinding(
  { kind }: RuntimeEndpoint,
  local: LocalConfig | undefined,
): Promise<Finding> {
  return kind !== 'server' || !local || (await acceptsAnonymous(local))
    ? ok('no credential is needed')
    : warning(
        'no credential is needed, but the configuration requires one; restart the server',
        'wb api POST /setup/restart',
      )
}

/** Converts {@link KeychainUnavailable} to `unreadable`. Throws other errors again. */
function toUnreadable(error: unknown): 'unreadable' {
  if (error instanceof KeychainUnavailable) return 'unreadable'
  throw error
}

/** Replaces the error for a missing login with a finding that refers to the `auth` check, which explains the error. */
export async function skipIfSignedOut<Result extends Finding | Finding[]>(
  check: Promise<Result>,
): Promise<Result | Finding> {
  try {
    return await check
  } catch (error) {
    const isSignedOut =
      error instanceof KeychainUnavailable || (error instanceof WbError && error.code === 'unauthorized')
    if (isSignedOut) return skipped('needs a login; see auth')
    throw error
  }
}

async function allowsAnonymous({ anonymousClient }: Session, signal: AbortSignal): Promise<boolean> {
  try {
    await anonymousClient.call(workspaces.list, { query: { limit: 1 } }, { signal })
    return true
  } catch (error) {
    if (error instanceof WbError) return false
    throw error
  }
}
