import type { Fetch, OutgoingRequest } from '../../client/fetch.ts'
import type { Io } from '../io.ts'
import {
  type Announcement,
  type ConfigFile,
  findLocalServer,
  hasNoStore,
  type LocalConfig,
  type LogSettings,
  openLocal,
  type Runtime,
  readConfig,
  type StoreChoice,
} from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import type { Progress } from '../terminal/progress.ts'
import { trustCreatedDataDir } from '../trust/created-data-dir.ts'
import { untrustedFileMessage } from '../trust/trust-lines.ts'
import { connectOverNetwork, type NetworkObserver } from './connect-over-network.ts'

/** The runtime that a command uses. */
export interface ResolvedRuntime {
  /** `url`: selected by its address; `server`: a `wb serve` of the data directory; `process`: in this process. */
  readonly kind: 'url' | 'server' | 'process'
  readonly baseUrl: string
  /** Only for a `server`. */
  readonly announcement?: Announcement
  readonly fetch: Fetch
  /** Waits for background work that the command started. */
  settle(options: { signal: AbortSignal; progress: Progress }): Promise<void>
  /** Returns the number of remaining tasks. */
  pending(): Promise<number>
  close(): Promise<void>
}

/** Origin of requests to the runtime in this process. Runtimes accept it regardless of their configuration. */
const inProcessUrl = 'http://localhost'

const noBackgroundWork = { settle: async () => {}, pending: async () => 0 }

/** Receives messages about the runtime and the connection. */
export interface RuntimeReporter extends NetworkObserver {
  note(text: string): void
  logSettings: LogSettings
}

/**
 * Returns the runtime of a profile if it is in another process: the runtime at the profile's address, else the
 * `wb serve` of the data directory. With `--as-operator`, the runtime is always in this process.
 *
 * @returns undefined if the runtime is in this process
 * @see docs/security.md#rule-5, docs/security.md#rule-6, docs/security.md#rule-8
 */
export async function findRemoteRuntime(
  profile: Profile,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  observer: NetworkObserver,
): Promise<ResolvedRuntime | undefined> {
  const { url } = profile
  if (url)
    return { kind: 'url', baseUrl: url, ...noBackgroundWork, ...connectOverNetwork({ url }, io, observer) }
  const server = profile.asOperator ? undefined : await findLocalServer(profile.dataDir)
  if (!server) return undefined
  const network = connectOverNetwork(server, io, observer)
  return { kind: 'server', baseUrl: server.url, announcement: server, ...noBackgroundWork, ...network }
}

/** Returns false if the profile now resolves to another runtime, because a `wb serve` started, ended or restarted. */
export async function isCurrentRuntime(
  profile: Profile,
  { kind, announcement }: ResolvedRuntime,
): Promise<boolean> {
  if (kind === 'url' || profile.asOperator) return true
  const server = await findLocalServer(profile.dataDir)
  return JSON.stringify(server) === JSON.stringify(announcement)
}

/**
 * Opens the runtime in this process, without a port. If there is no store yet, GET and HEAD requests use an empty
 * store in memory, and the first other request creates the data directory.
 */
export async function openInProcessRuntime(
  profile: Profile,
  io: Pick<Io, 'env' | 'signals'>,
  { note, logSettings }: RuntimeReporter,
): Promise<ResolvedRuntime> {
  const config = await readConfig(profile, io)
  for (const line of untrustedConfigNotes(config.file)) note(line)
  const runtimes: Partial<Record<StoreChoice, Promise<Runtime>>> = {}
  const openRuntime = (store: StoreChoice) => {
    runtimes[store] ??= openStore(profile, config, { logSettings, store }).catch(error => {
      delete runtimes[store]
      throw error
    })
    return runtimes[store]
  }
  const isStoreMissing = () => hasNoStore(profile, config)
  if (!(await isStoreMissing())) await openRuntime('persistent')
  return {
    kind: 'process',
    baseUrl: inProcessUrl,
    async fetch(url, request) {
      // Another process may have created the store in the meantime.
      const runtime = await (runtimes.persistent ??
        openRuntime(isRead(request) && (await isStoreMissing()) ? 'empty' : 'persistent'))
      const webRequest = new Request(url, { ...request, duplex: 'half' } as RequestInit)
      const response = await runtime.fetch(webRequest, profile.asOperator ? 'operator' : undefined)
      // The runtime responds to an aborted request with an error, but the caller expects the abort reason.
      request.signal?.throwIfAborted()
      return response
    },
    settle: async ({ signal, progress }) =>
      (await runtimes.persistent)?.settle({ signal, onProgress: step => progress.step(step) }),
    pending: async () => (await runtimes.persistent)?.pending() ?? 0,
    async close() {
      for (const runtime of Object.values(runtimes)) await (await runtime).close()
    },
  }
}

async function openStore(
  profile: Profile,
  config: LocalConfig,
  options: { logSettings: LogSettings; store: StoreChoice },
): Promise<Runtime> {
  if (options.store === 'empty') return openLocal(profile, config, options)
  const trustDataDir = trustCreatedDataDir(profile)
  const runtime = await openLocal(profile, config, options)
  await trustDataDir()
  return runtime
}

function isRead({ method }: OutgoingRequest): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Returns notes about configuration files that are ignored because their folder is not trusted. @see docs/security.md#rule-6 */
export function untrustedConfigNotes({ untrusted }: ConfigFile): string[] {
  return untrusted ? [`  ${untrustedFileMessage(untrusted)}:`, `    --config ${untrusted}`] : []
}
