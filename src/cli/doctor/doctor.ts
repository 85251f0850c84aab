import type { Clock } from '../../base/clock.ts'
import { overNetwork } from '../connection/over-network.ts'
import type { Session } from '../connection/session.ts'
import { type Announcement, findLocalServer, locateConfig } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { type Check, check, type Finding, type Look, skipped } from './check.ts'
import { skewFound, skewTo } from './clock.ts'
import { type CheckedConfig, checkConfig } from './config-problems.ts'
import { dataDirFound, secretsFound } from './files.ts'
import { folderFound } from './folder.ts'
import { configFound, lockFound, nodeFound, portFound } from './here.ts'
import { identityProviderFound } from './identity-provider.ts'
import { keychainFound } from './keychain.ts'
import { chatFound, chatFoundFromHere, embeddingFound, llmFound } from './providers.ts'
import {
  type Answering,
  authFound,
  dateOf,
  runtimeFound,
  runtimeLate,
  unlessSignedOut,
  versionFound,
} from './remote.ts'
import { toolServersFound } from './tool-servers.ts'

export interface DoctorParts {
  readonly profile: Profile
  readonly session: Session
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Result of all checks except those of the store. */
export interface Looked {
  /** In the order in which they are shown. */
  readonly checks: readonly Check[]
  readonly server: Announcement | undefined
  /** True if the server serves requests. */
  readonly isReady: boolean
  readonly configPath: string | null
  readonly config: CheckedConfig
}

type Named = (name: string, look: Look['look'], late?: Finding) => Promise<Check[]>

/** Data that all checks share. */
interface Scene extends DoctorParts {
  readonly named: Named
  readonly config: CheckedConfig
  readonly server: Announcement | undefined
}

/** Runs all checks concurrently. Checks that need a runtime run once it has responded. */
export async function lookAtAll(parts: DoctorParts): Promise<Looked> {
  const { profile, session, clock, signal } = parts
  const [server, { path }, config, runtime] = await Promise.all([
    findLocalServer(profile.dataDir),
    locateConfig(profile),
    checkConfig(profile, session.io),
    session.elsewhere(),
  ])
  const named: Named = (name, look, late) => check({ name, clock, signal, look, late })
  const scene: Scene = { ...parts, named, config, server }
  const isAsked = runtime?.kind === 'server'
  const [here, there, keychain, besides] = await Promise.all([
    hereFound(scene, path),
    runtime ? elsewhereFound(scene, runtime) : inProcessFound(scene),
    named('keychain', () => keychainFound(profile)),
    server && !isAsked ? serverFound(scene, server) : [],
  ])
  const told = isAsked ? there.filter(({ name }) => name === 'runtime') : besides
  const isReady = told.length > 0 && told.every(({ state }) => state === 'ok')
  return { checks: [...here, ...there, ...keychain], server, isReady, configPath: path, config }
}

/** Checks this machine. */
async function hereFound({ profile, session, named, config, server, clock }: Scene, path: string | null) {
  const found = await Promise.all([
    named('node', async () => nodeFound()),
    named('data', async () => dataDirFound(profile)),
    named('secrets', async () => secretsFound(profile)),
    named('config', async () => configFound(config, path)),
    named('mcp', async () => toolServersFound(profile, session.io.env, config)),
    named('folder', () => folderFound(profile, clock)),
    named('lock', async () => lockFound(server, clock.now())),
    named('port', signal => portFound(profile, config, server, signal)),
    named('identity', signal => identityProviderFound(profile, config, clock, signal)),
  ])
  return found.flat()
}

/** Checks a runtime in another process. */
async function elsewhereFound(scene: Scene, runtime: Answering): Promise<Check[]> {
  const { named, session, server, clock } = scene
  const late = runtimeLate(runtime)
  const answer = await named('runtime', signal => runtimeFound(runtime, signal), late)
  if (answer.some(({ state }) => state === 'failed'))
    return [...answer, ...skippedChecks('no runtime to ask')]
  const found = await Promise.all([
    named('version', signal => versionFound(runtime, server, signal)),
    named('auth', signal => authFound(session, runtime, signal)),
    named('clock', async signal =>
      skewFound(await skewTo(clock, () => dateOf(runtime, signal)), 'the runtime'),
    ),
    named('chat', signal => unlessSignedOut(chatFound(session.client, signal))),
    named('embedding', signal => unlessSignedOut(embeddingFound(session.client, signal))),
    named('llm', signal => unlessSignedOut(llmFound(session.client, signal))),
  ])
  return [...answer, ...found.flat()]
}

function skippedChecks(why: string): Check[] {
  return ['version', 'auth', 'clock', 'chat', 'embedding', 'llm'].map(name => ({ name, ...skipped(why) }))
}

/**
 * Checks the runtime that each command starts in its own process. Does not open it, as that would create or
 * change files.
 */
async function inProcessFound({ profile, session, named, config: { local } }: Scene): Promise<Check[]> {
  const inItself = skipped(
    profile.asOperator ? 'the operator has it in each command' : 'each command has it in itself',
    'wb serve',
  )
  const unread = skipped('the configuration cannot be read')
  const found = await Promise.all([
    named('runtime', async () => inItself),
    named('auth', signal => authFound(session, undefined, signal)),
    named('chat', async () => (local ? chatFoundFromHere(local) : unread)),
  ])
  return found.flat()
}

/** Checks the server of the data directory if commands do not use it. */
async function serverFound({ named, session }: Scene, server: Announcement): Promise<Check[]> {
  const { fetch, close } = overNetwork(server, session.io, {})
  try {
    const runtime = { kind: 'server', baseUrl: server.url, fetch } as const
    return await named('server', signal => runtimeFound(runtime, signal))
  } finally {
    await close()
  }
}
