import type { Fetch, Outgoing } from '../../client/fetch.ts'
import type { Io } from '../io.ts'
import {
  type Announcement,
  type ConfigFile,
  findLocalServer,
  hasNoStore,
  type LocalConfig,
  openLocal,
  type Runtime,
  readConfig,
  type Store,
  type Voice,
} from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import type { Progress } from '../terminal/progress.ts'
import { trustCreatedDataDir } from '../trust/created-data-dir.ts'
import { untrustedFileMessage } from '../trust/trust-lines.ts'
import { connectOverNetwork, type NetworkObserver } from './over-network.ts'

/** The runtime of a command. */
export interface ResolvedRuntime {
  readonly kind: 'named' | 'server' | 'process'
  readonly baseUrl: string
  /** Announcement of a `server`. */
  readonly announcement?: Announcement
  readonly fetch: Fetch
  /** Finishes background work that the command caused. */
  settle(options: { signal: AbortSignal; progress: Progress }): Promise<void>
  /** Returns the number of remaining tasks. */
  pending(): Promise<number>
  close(): Promise<void>
}

/** Origin of requests in this process, which every runtime accepts as its own. */
const inProcessUrl = 'http://localhost'

const noBackgroundWork = { settle: async () => {}, pending: async () => 0 }

/** Receives messages about the runtime and the connection. */
export interface RuntimeReporter extends NetworkObserver {
  note(text: string): void
  voice: Voice
}

/**
 * Returns the runtime of a profile if it is in another process: the one at its address, else the `wb serve`
 * of the data directory. The operator always works in this process.
 *
 * @returns undefined if it is in this process
 * @see docs/security.md#rule-5, docs/security.md#rule-6, docs/security.md#rule-8
 */
export async function findRemoteRuntime(
  profile: Profile,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  observer: NetworkObserver,
): Promise<ResolvedRuntime | undefined> {
  const { url } = profile
  if (url)
    return { kind: 'named', baseUrl: url, ...noBackgroundWork, ...connectOverNetwork({ url }, io, observer) }
  const server = profile.asOperator ? undefined : await findLocalServer(profile.dataDir)
  if (!server) return undefined
  const network = connectOverNetwork(server, io, observer)
  return { kind: 'server', baseUrl: server.url, announcement: server, ...noBackgroundWork, ...network }
}

/** Returns false if the profile resolves to another runtime now, because a `wb serve` started, ended or restarted. */
export async function isCurrentRuntime(
  profile: Profile,
  { kind, announcement }: ResolvedRuntime,
): Promise<boolean> {
  if (kind === 'named' || profile.asOperator) return true
  const found = await findLocalServer(profile.dataDir)
  return JSON.stringify(found) === JSON.stringify(announcement)
}

/**
 * Runs the runtime in this process, without an open port. If there is no store yet, requests that only read use an empty
 * store in memory, and the first request that may change something creates the data directory.
 */
export async function openInProcessRuntime(
  profile: Profile,
  io: Pick<Io, 'env' | 'signals'>,
  { note, voice }: RuntimeReporter,
): Promise<ResolvedRuntime> {
  const config = await readConfig(profile, io)
  for (const line of untrustedConfigNotes(config.found)) note(line)
  const opened: Partial<Record<Store, Promise<Runtime>>> = {}
  const open = (store: Store) => {
    opened[store] ??= openStore(profile, config, { voice, store }).catch(error => {
      delete opened[store]
      throw error
    })
    return opened[store]
  }
  const isNew = () => hasNoStore(profile, config)
  if (!(await isNew())) await open('kept')
  return {
    kind: 'process',
    baseUrl: inProcessUrl,
    async fetch(url, request) {
      // Another process may have created the store in the meantime.
      const runtime = await (opened.kept ?? open(isRead(request) && (await isNew()) ? 'empty' : 'kept'))
      const webRequest = new Request(url, { ...request, duplex: 'half' } as RequestInit)
      const answer = await runtime.fetch(webRequest, profile.asOperator ? 'operator' : undefined)
      // A request that was called off is answered as the fault that it became on the way.
      request.signal?.throwIfAborted()
      return answer
    },
    settle: async ({ signal, progress }) =>
      (await opened.kept)?.settle({ signal, onProgress: step => progress.step(step) }),
    pending: async () => (await opened.kept)?.pending() ?? 0,
    async close() {
      for (const runtime of Object.values(opened)) await (await runtime).close()
    },
  }
}

async function openStore(
  profile: Profile,
  config: LocalConfig,
  options: { voice: Voice; store: Store },
): Promise<Runtime> {
  if (options.store === 'empty') return openLocal(profile, config, options)
  const trustDataDir = trustCreatedDataDir(profile)
  const runtime = await openLocal(profile, config, options)
  await trustDataDir()
  return runtime
}

function isRead({ method }: Outgoing): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Returns notes about configuration files in this folder that are not read. @see docs/security.md#rule-6 */
export function untrustedConfigNotes({ untrusted }: ConfigFile): string[] {
  return untrusted ? [`  ${untrustedFileMessage(untrusted)}:`, `    --config ${untrusted}`] : []
}
