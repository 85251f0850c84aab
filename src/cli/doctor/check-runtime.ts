import { packageBuild, packageVersion } from '../../base/package.ts'
import { shellWord } from '../../base/shell-word.ts'
import { openClient } from '../../client/client.ts'
import { isRefusedConnection, Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { operational } from '../../contract/operational.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { KeychainUnavailable } from '../../keychain/keychain.ts'
import { reportOf } from '../command/report.ts'
import { serveCommand, signInHints } from '../command/sign-in-hints.ts'
import { requiresNoCredential } from '../connection/auth-methods.ts'
import type { ResolvedRuntime } from '../connection/resolve-runtime.ts'
import type { Session } from '../connection/session.ts'
import { isCi } from '../environment.ts'
import type { Announcement } from '../local.ts'
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
    const ready = await openClient(runtime).call(operational.ready, {}, { signal })
    return ok(`${baseUrl} serves ${formatCounted(ready.workspaces, 'workspace')}`)
  } catch (error) {
    const meant = runtime.kind === 'named' ? suggestAddress(baseUrl, error) : undefined
    if (meant && error instanceof Error)
      return failed(`${baseUrl}: ${error.message}`, `wb doctor --url ${shellWord(meant.url)}`)
    if (error instanceof Unreachable)
      return failed(error.message, startCommand(runtime, isRefusedConnection(error)))
    if (!(error instanceof WbError) || error.code === 'draining') return findingFromError(error)
    const { code, message } = reportOf(error)
    return failed(`${message} (${code}); fix the cause first`, 'wb api POST /setup/restart')
  }
}

/** Returns the finding for a runtime that does not respond in time. */
export function runtimeTimeoutFinding(runtime: RuntimeEndpoint): Finding {
  return failed(`${runtime.baseUrl} does not respond in time`, startCommand(runtime, false))
}

/**
 * Returns the command to try if an address does not respond. If the port is free, it starts a runtime there.
 */
function startCommand({ kind, baseUrl }: RuntimeEndpoint, isPortFree: boolean): string {
  if (kind === 'server') return 'wb serve'
  return (isPortFree ? serveCommand(baseUrl) : undefined) ?? 'wb doctor --url URL'
}

/**
 * Compares the builds of the runtime and wb. `APP_VERSION` can replace the version of a build, but not its
 * commit.
 */
export async function checkVersion(
  runtime: RuntimeEndpoint,
  server: Announcement | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  const { version, commit } = await openClient(runtime).call(operational.version, {}, { signal })
  const own = packageVersion()
  const ownCommit = packageBuild()?.commit ?? 'unknown'
  const build = compareCommits(ownCommit, commit)
  const restart = runtime.kind === 'server' && server ? `kill ${server.pid}; wb serve` : undefined
  if (version === own && restart && build === 'different')
    return warning(`wb ${own} is commit ${ownCommit}, but the server runs ${plainLine(commit)}`, restart)
  if (version === own) return ok(`${own}, same as the runtime`)
  if (build === 'equal') return ok(`${own}, which the runtime reports as ${plainLine(version)}`)
  const detail = `wb is version ${own}, but the runtime is ${plainLine(version)}`
  if (restart) return warning(detail, restart)
  return warning(detail, isVersion(version) ? `npm install --global workbase@${version}` : undefined)
}

/**
 * Compares two commits. Only hashes can be compared, and one may be abbreviated. Builds outside a clone have
 * no hash, and `APP_COMMIT` may be any text.
 */
function compareCommits(own: string, theirs: string): 'equal' | 'different' | 'unknown' {
  const isHash = (text: string) => /^[0-9a-f]{7,64}$/i.test(text)
  if (!isHash(own) || !isHash(theirs)) return 'unknown'
  const [a, b] = [own.toLowerCase(), theirs.toLowerCase()]
  return a.startsWith(b) || b.startsWith(a) ? 'equal' : 'different'
}

/** Prevents text from the runtime from reaching a shell command. */
function isVersion(text: string): boolean {
  return /^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(text)
}

/** Returns the `Date` header of a runtime. */
export async function fetchDateHeader(
  { baseUrl, fetch }: RuntimeEndpoint,
  signal: AbortSignal,
): Promise<string | null> {
  const answer = await fetch(`${baseUrl}/healthz`, { method: 'GET', headers: {}, signal })
  await answer.text()
  return answer.headers.get('date')
}

/**
 * Checks that the runtime accepts the credential. Without a runtime, only shows which credential would be
 * sent.
 */
export async function checkCredential(
  session: Session,
  runtime: RuntimeEndpoint | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  const { used } = session.credential
  const sent = used ? describeCredential(used) : 'no credential'
  if (!runtime) return skipped(`${sent}; no server is running to check it`, 'wb whoami')
  const caller = await identifyCaller(session, signal).catch(unreadableKeychain)
  if (caller === 'shut') return skipped(`${sent}, which could not be read; see keychain`)
  if (caller.kind === 'known') return ok(`${sent}; you are ${callerName(caller.me)}`)
  if (caller.kind === 'anybody' || (!used && (await allowsAnonymous(session, signal))))
    return ok('no credential is needed')
  const { refusal, ways: authMethods } = caller
  if (refusal.facts.wireStatus !== 401) throw refusal
  const { message } = refusal
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
  return failedWithHint(used ? lines[0]! : `${sent}, but the runtime requires one`, lines.at(-1))
}

/** @throws any error except {@link KeychainUnavailable} */
function unreadableKeychain(error: unknown): 'shut' {
  if (error instanceof KeychainUnavailable) return 'shut'
  throw error
}

/** Replaces errors of a missing login with a pointer to the `auth` check, which reports them in detail. */
export async function skipIfSignedOut<Found extends Finding | Finding[]>(
  found: Promise<Found>,
): Promise<Found | Finding> {
  try {
    return await found
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
