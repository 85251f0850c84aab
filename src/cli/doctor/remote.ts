import { packageVersion } from '../../base/package.ts'
import { connect } from '../../client/client.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { auth } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { operational } from '../../contract/operational.ts'
import { workspaces } from '../../contract/workspaces.ts'
import type { Announcement } from '../local.ts'
import { counted } from '../output.ts'
import { isCi } from '../profile.ts'
import { reportOf } from '../report.ts'
import type { ResolvedRuntime } from '../resolve-runtime.ts'
import type { Session } from '../session.ts'
import { nameOf } from '../sign-in/identity.ts'
import { credentialWords } from '../sign-in/notes.ts'
import { serveLine, signingIn } from '../signing-in.ts'
import { plainLine } from '../terminal-text.ts'
import { type Finding, failed, failedWith, faultFound, ok, skipped, warning } from './check.ts'

/** Where a runtime answers. */
export type Answering = Pick<ResolvedRuntime, 'kind' | 'baseUrl' | 'fetch'>

/** Whether a runtime serves requests. */
export async function runtimeFound(runtime: Answering, signal: AbortSignal): Promise<Finding> {
  const { baseUrl } = runtime
  try {
    const ready = await connect(runtime).call(operational.ready, {}, { signal })
    return ok(`${baseUrl} serves ${counted(ready.workspaces, 'workspace')}`)
  } catch (error) {
    if (error instanceof Unreachable) return failed(error.message, startLine(runtime))
    if (!(error instanceof WbError) || error.code === 'draining') return faultFound(error)
    const { code, message } = reportOf(error)
    return failed(`${message} (${code}); mend the cause first`, 'wb api POST /setup/restart')
  }
}

/** The same of one that says nothing. */
export function runtimeLate(runtime: Answering): Finding {
  return failed(`${runtime.baseUrl} does not answer in time`, startLine(runtime))
}

/** What to type where nothing answers. */
function startLine({ kind, baseUrl }: Answering): string {
  if (kind === 'server') return 'wb serve'
  return serveLine(baseUrl) ?? 'wb doctor --url URL'
}

/** Whether runtime and wb are of one version. */
export async function versionFound(
  runtime: Answering,
  server: Announcement | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  const { version } = await connect(runtime).call(operational.version, {}, { signal })
  const own = packageVersion()
  if (version === own) return ok(`${own}, here and at the runtime`)
  const detail = `wb is ${own}, and the runtime ${plainLine(version)}`
  if (runtime.kind === 'server' && server) return warning(detail, `kill ${server.pid}; wb serve`)
  return warning(detail, isVersion(version) ? `npm install --global workbase@${version}` : undefined)
}

/** What is typed into a shell is no text of somebody else's. */
function isVersion(text: string): boolean {
  return /^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(text)
}

/** The time of a runtime. */
export async function dateOf({ baseUrl, fetch }: Answering, signal: AbortSignal): Promise<string | null> {
  const answer = await fetch(`${baseUrl}/healthz`, { method: 'GET', headers: {}, signal })
  await answer.text()
  return answer.headers.get('date')
}

/** Whether the runtime takes the credential that is sent; of a runtime in each command, only which one that is. */
export async function authFound(
  session: Session,
  runtime: Answering | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  const { used } = session.credential
  const sent = used ? credentialWords(used) : 'no credential'
  if (!runtime) return skipped(`${sent}; no server runs that could be asked`, 'wb whoami')
  try {
    const me = await session.client.call(auth.me, {}, { signal })
    return ok(`${sent}; you are ${nameOf(me)}`)
  } catch (error) {
    if (!(error instanceof WbError) || error.facts.wireStatus !== 401) throw error
    if (!used && (await strangersPass(session, signal))) return ok('no credential, and none is needed')
    const ways = await session.ways()
    const lines = signingIn(session.profile, used, {
      ...runtime,
      ways,
      isCi: isCi(),
      message: error.message,
    })
    if (used && ways && !ways.modes.apiKey && !ways.modes.oidc)
      return failed(
        `${lines[0]}, and needs none`,
        used.from === 'wb login' ? 'wb logout' : 'unset WB_API_KEY',
      )
    return failedWith(used ? lines[0]! : `${sent}; the runtime asks for one`, lines.at(-1))
  }
}

async function strangersPass({ stranger }: Session, signal: AbortSignal): Promise<boolean> {
  try {
    await stranger.call(workspaces.list, { query: { limit: 1 } }, { signal })
    return true
  } catch (error) {
    if (error instanceof WbError) return false
    throw error
  }
}
