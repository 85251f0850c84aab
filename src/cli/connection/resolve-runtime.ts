import type { Fetch } from '../../client/transport.ts'
import { watchMaking } from '../folder/made.ts'
import { notCounting } from '../folder/shown.ts'
import { type Found, findLocalServer, openLocal, readConfig, type Voice } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import type { Progress } from '../terminal/progress.ts'
import { type Overheard, overNetwork } from './over-network.ts'

/** The runtime that a command talks to. */
export interface ResolvedRuntime {
  readonly kind: 'named' | 'server' | 'process'
  readonly baseUrl: string
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
 * @see design/security 5, 6, 8
 */
export async function runtimeElsewhere(
  profile: Profile,
  overheard: Overheard,
): Promise<ResolvedRuntime | undefined> {
  const { url } = profile
  if (url) return { kind: 'named', baseUrl: url, ...nothingDue, ...overNetwork({ url }, overheard) }
  const server = profile.asOperator ? undefined : await findLocalServer(profile.dataDir)
  return server && { kind: 'server', baseUrl: server.url, ...nothingDue, ...overNetwork(server, overheard) }
}

/** The same runtime in this process, with no port open. */
export async function runtimeHere(profile: Profile, { note, voice }: Telling): Promise<ResolvedRuntime> {
  const config = await readConfig(profile)
  for (const line of strangers(config.found)) note(line)
  const made = watchMaking(profile)
  const runtime = await openLocal(profile, config, voice)
  await made()
  return {
    kind: 'process',
    baseUrl: inProcessUrl,
    async fetch(url, request) {
      const asked = new Request(url, { ...request, duplex: 'half' } as RequestInit)
      const answer = await runtime.fetch(asked, profile.asOperator ? 'operator' : undefined)
      // A request that was called off is answered as the fault that it became on the way.
      request.signal?.throwIfAborted()
      return answer
    },
    settle: ({ signal, progress }) => runtime.settle({ signal, onProgress: step => progress.step(step) }),
    pending: () => runtime.pending(),
    close: () => runtime.close(),
  }
}

/** What to say of a configuration file that lies here and is not read. @see design/security 6 */
export function strangers({ untrusted }: Found): string[] {
  return untrusted ? [`  ${notCounting(untrusted)}:`, `    --config ${untrusted}`] : []
}
