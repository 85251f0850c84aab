import type { Fetch, Outgoing } from '../../client/fetch.ts'
import { watchMaking } from '../folder/made.ts'
import { notCounting } from '../folder/shown.ts'
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
import { type Overheard, overNetwork } from './over-network.ts'

/** The runtime that a command talks to. */
export interface ResolvedRuntime {
  readonly kind: 'named' | 'server' | 'process'
  readonly baseUrl: string
  /** Announcement of a `server`. */
  readonly announcement?: Announcement
  readonly fetch: Fetch
  /** Finish work that the command made due. */
  settle(options: { signal: AbortSignal; progress: Progress }): Promise<void>
  /** How much of it is left. */
  pending(): Promise<number>
  close(): Promise<void>
}

/** Requests inside this process carry a host that every runtime takes for its own. */
const inProcessUrl = 'http://localhost'

const nothingDue = { settle: async () => {}, pending: async () => 0 }

/** What a runtime and the way to it tell a person. */
export interface Telling extends Overheard {
  note(text: string): void
  voice: Voice
}

/**
 * The runtime of a profile where it is another process: the one that is named, else the `wb serve` of the data
 * directory. Its operator always works in this process.
 *
 * @returns undefined where it would be this process
 * @see docs/security.md#rule-5, docs/security.md#rule-6, docs/security.md#rule-8
 */
export async function runtimeElsewhere(
  profile: Profile,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  overheard: Overheard,
): Promise<ResolvedRuntime | undefined> {
  const { url } = profile
  if (url) return { kind: 'named', baseUrl: url, ...nothingDue, ...overNetwork({ url }, io, overheard) }
  const server = profile.asOperator ? undefined : await findLocalServer(profile.dataDir)
  if (!server) return undefined
  const reached = overNetwork(server, io, overheard)
  return { kind: 'server', baseUrl: server.url, announcement: server, ...nothingDue, ...reached }
}

/** Returns false if the profile resolves to another runtime now, because a `wb serve` started, ended or restarted. */
export async function isCurrent(profile: Profile, { kind, announcement }: ResolvedRuntime): Promise<boolean> {
  if (kind === 'named' || profile.asOperator) return true
  const found = await findLocalServer(profile.dataDir)
  return JSON.stringify(found) === JSON.stringify(announcement)
}

/**
 * Runs the runtime in this process, without an open port. If there is no store yet, requests that only read use an empty
 * store in memory, and the first request that may change something creates the data directory.
 */
export async function runtimeHere(
  profile: Profile,
  io: Pick<Io, 'env' | 'signals'>,
  { note, voice }: Telling,
): Promise<ResolvedRuntime> {
  const config = await readConfig(profile, io)
  for (const line of strangers(config.found)) note(line)
  const opened: Partial<Record<Store, Promise<Runtime>>> = {}
  const open = (store: Store) => {
    opened[store] ??= openHere(profile, config, { voice, store }).catch(error => {
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
      const asked = new Request(url, { ...request, duplex: 'half' } as RequestInit)
      const answer = await runtime.fetch(asked, profile.asOperator ? 'operator' : undefined)
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

async function openHere(
  profile: Profile,
  config: LocalConfig,
  options: { voice: Voice; store: Store },
): Promise<Runtime> {
  if (options.store === 'empty') return openLocal(profile, config, options)
  const made = watchMaking(profile)
  const runtime = await openLocal(profile, config, options)
  await made()
  return runtime
}

function isRead({ method }: Outgoing): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Returns notes about configuration files in this folder that are not read. @see docs/security.md#rule-6 */
export function strangers({ untrusted }: ConfigFile): string[] {
  return untrusted ? [`  ${notCounting(untrusted)}:`, `    --config ${untrusted}`] : []
}
