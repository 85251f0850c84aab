import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import type { LogLevel } from '../base/log.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import type { ConfigValue } from '../config/describe-config.ts'
import type { ConfigFile } from '../config/find-config.ts'
import type { Config } from '../config/schema.ts'
import type { FolderFiles, FolderSurvey, ProjectFile } from '../config/survey-folder.ts'
import { WbError } from '../contract/errors.ts'
import type { Probe } from '../contract/operational.ts'
import type { ListenOptions, RunningServer } from '../http/listen.ts'
import type { Outbound } from '../models/outbound.ts'
import type { ServerRuntime } from '../rescue.ts'
import type { Runtime } from '../runtime.ts'
import type { ReadableTable, StoreCheck } from '../storage/sqlite/check.ts'
import type { ServerAnnouncement, ServerLockResult } from '../storage/sqlite/server-lock.ts'
import type { Io } from './io.ts'

/*
 * The one bridge from the command line to the server's half. Everything here is loaded when it is called, so that a
 * command that needs no runtime of its own loads neither h3 nor SQLite.
 */

export type {
  ConfigFile,
  FolderFiles,
  FolderSurvey,
  ProjectFile,
  ReadableTable,
  RunningServer,
  Runtime,
  ServerAnnouncement,
  ServerRuntime,
}

/** Where a runtime on this machine has its data, and what names its configuration. */
interface Place {
  readonly dataDir: string
  readonly config: { readonly flag?: string; readonly variable?: string; readonly trusted?: string }
  /** Working directory of the command. */
  readonly cwd: string
}

/** The configuration of a data directory, as it is in force. */
export interface LocalConfig {
  readonly found: ConfigFile
  readonly config: Config
  readonly environment: ConfigEnvironment
  readonly described: readonly ConfigValue[]
  readonly warnings: readonly string[]
  /** Keys that are right, and that no runtime of this version starts with. */
  readonly notBuilt: readonly { readonly key: string; readonly message: string }[]
}

/** Which configuration file is in force. */
export async function locateConfig({ dataDir, config, cwd }: Place): Promise<ConfigFile> {
  const { findConfig } = await import('../config/find-config.ts')
  const { flag, variable, trusted } = config
  return findConfig({ flag, env: variable, trusted, cwd, dataDir })
}

/** What the files of a folder say that could send or run something. */
export async function surveyFolder(folder: string): Promise<FolderSurvey> {
  const room = await import('../config/survey-folder.ts')
  return room.surveyFolder(folder)
}

/**
 * What a `.wb.yaml` says.
 *
 * @throws validation_error  see `readProjectFile`
 */
export async function readProjectFile(path: string): Promise<ProjectFile> {
  const room = await import('../config/survey-folder.ts')
  return room.readProjectFile(path)
}

/**
 * Read and check the configuration that is in force.
 *
 * @throws validation_error  see `loadConfig`
 */
export async function readConfig(
  place: Place,
  { env, signals }: Pick<Io, 'env' | 'signals'>,
  flags: { host?: string; port?: number } = {},
): Promise<LocalConfig> {
  const [
    { createEnvironment },
    { readManagedEnv },
    { loadConfig },
    { describeConfig },
    { missingDriverProblems },
  ] = await Promise.all([
    import('../config/config-environment.ts'),
    import('../config/managed-env.ts'),
    import('../config/load-config.ts'),
    import('../config/describe-config.ts'),
    import('../config/config-checks.ts'),
  ])
  const found = await locateConfig(place)
  const environment = signals.withDefaults(() => createEnvironment(env, readManagedEnv(place.dataDir)))
  const { config, sources, warnings } = signals.withDefaults(() => loadConfig(found, environment, flags))
  const described = describeConfig(config, sources)
  return { found, config, environment, described, warnings, notBuilt: missingDriverProblems(config) }
}

/** How a runtime in this process says what happens. */
export interface Voice {
  level: LogLevel
  stream: { write(line: string): unknown }
}

/** Returns true if a data directory has never had a store. */
export async function hasNoStore({ dataDir }: Place, { config }: LocalConfig): Promise<boolean> {
  const [{ storePath }, { isNewStore }] = await Promise.all([
    import('../config/store-path.ts'),
    import('../storage/sqlite/empty-store.ts'),
  ])
  return isNewStore(storePath(config, dataDir), dataDir)
}

/** `kept`: the store of the data directory. `empty`: an empty store in memory, which creates no file. */
export type Store = 'kept' | 'empty'

/** Boot a runtime for one command. */
export async function openLocal(
  { dataDir }: Place,
  { config, environment }: LocalConfig,
  { voice, store }: { voice: Voice; store: Store },
): Promise<Runtime> {
  const [{ openRuntime }, { createLog }] = await Promise.all([
    import('../runtime.ts'),
    import('../base/log.ts'),
  ])
  const { jobsResume } = config.controlPlane
  return openRuntime({
    config: store === 'kept' ? config : { ...config, controlPlane: { driver: 'memory', jobsResume } },
    environment,
    dataDir,
    threads: false,
    server: false,
    loopback: true,
    log: createLog(voice),
  })
}

/**
 * Boot a runtime that a server answers with; this process holds the server lock.
 *
 * @param options.isAgain   the server answers already, and goes on in rescue mode where nothing else is left
 * @param options.restart   opens the runtime anew
 */
export async function openServed(
  { dataDir }: Place,
  { config, environment }: LocalConfig,
  options: { loopback: boolean; voice: Voice; isAgain: boolean; restart: () => void },
): Promise<ServerRuntime> {
  const [rescue, { createLog }] = await Promise.all([import('../rescue.ts'), import('../base/log.ts')])
  const { loopback, voice, isAgain, restart } = options
  const log = createLog(voice)
  return rescue.openServerRuntime(
    { config, environment, dataDir, threads: true, server: true, loopback, restart, log },
    isAgain,
  )
}

/** The `wb serve` of a data directory. */
export async function findLocalServer(dataDir: string): Promise<ServerAnnouncement | undefined> {
  const { findServer } = await import('../storage/sqlite/server-lock.ts')
  return findServer(dataDir)
}

/** Whether the store of a data directory is empty, as a command leaves it that only asked something. */
export async function holdsNothing(dataDir: string): Promise<boolean> {
  const store = await import('../storage/sqlite/empty-store.ts')
  return store.isEmptyStore(join(dataDir, 'workbase.db'))
}

/** Do some work alone among all processes that use the same lock file. */
export async function alone<T>(lockPath: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const exclusive = await import('../storage/sqlite/exclusive.ts')
  return exclusive.runExclusively(lockPath, signal, work)
}

/** Become the server of a data directory. */
export async function lockDataDir(dataDir: string): Promise<ServerLockResult> {
  const { takeServerLock } = await import('../storage/sqlite/server-lock.ts')
  return takeServerLock(dataDir)
}

/** Secrets of the configuration that lead to nothing or are too short, by key. Reads them, and asks no network. */
export async function secretProblems({ config, environment }: LocalConfig): Promise<LocalConfig['notBuilt']> {
  const { readAuthSecrets } = await import('../config/auth-secrets.ts')
  try {
    readAuthSecrets(config, environment)
    return []
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return error.facts.problems as LocalConfig['notBuilt']
  }
}

/** Answer requests to a runtime over the network. */
export async function openPort(
  runtime: Pick<Runtime, 'app'>,
  options: ListenOptions,
): Promise<RunningServer> {
  const { listen } = await import('../http/listen.ts')
  return listen(runtime.app, options)
}

/** Whether callers without a credential pass. */
export async function anonymousPass({ config }: LocalConfig): Promise<boolean> {
  const { allowsAnonymous } = await import('../config/config-checks.ts')
  return allowsAnonymous(config)
}

/** What lies in a data directory, as it was found there. */
export interface Examined {
  /** Of the store; undefined where it is held in memory, or no runtime of this version opens it. */
  readonly path?: string
  readonly schema?: { readonly found: number; readonly known: number }
  readonly checks: readonly (StoreCheck & { readonly mend?: string })[]
  /** Rows that can be recovered, if the store is damaged. */
  readonly readable?: readonly ReadableTable[]
}

/**
 * Look through the store of a data directory and the files beside it, without a runtime and without changing anything.
 *
 * @throws control_plane_unavailable  the store cannot be read
 */
export async function examine({ dataDir }: Place, { config }: LocalConfig): Promise<Examined> {
  const [{ storePath }, { checkStore }, { listScratchLeftovers, uploadsFolder }] = await Promise.all([
    import('../config/store-path.ts'),
    import('../storage/sqlite/check.ts'),
    import('../base/scratch-file.ts'),
  ])
  const left = listScratchLeftovers(join(dataDir, uploadsFolder), { atStart: false })
  const uploads = {
    check: 'uploads that a killed process left',
    count: left.length,
    examples: left.slice(0, 3),
    mend: 'wb serve',
  }
  const path = storePath(config, dataDir)
  if (path === ':memory:') return { checks: [uploads] }
  const report = checkStore(path, dataDir)
  if (!report) return { path, checks: [uploads] }
  const { schema: found, known, checks, readable } = report
  return { path, schema: { found, known }, checks: [...checks, uploads], ...(readable && { readable }) }
}

/** Ask from this process, past the guard that the runtime's own calls pass. */
async function outward<T>(
  { config, environment }: LocalConfig,
  ask: (outbound: Outbound) => Promise<T>,
): Promise<T> {
  const [{ openOutboundNetwork: openNetwork }, { openEndpointGuard: openGuard }] = await Promise.all([
    import('../models/outbound.ts'),
    import('../models/endpoint-guard.ts'),
  ])
  const network = openNetwork({ guard: openGuard(config, environment) })
  try {
    return await ask(network.send)
  } finally {
    await network.close()
  }
}

/** How the chat provider of a configuration answers; undefined where none could be called. */
export async function chatProviderProbed(local: LocalConfig): Promise<Probe | undefined> {
  const [{ hasChatProvider }, { probeChatProvider, probe }] = await Promise.all([
    import('../models/chat/chat-provider.ts'),
    import('../operation/probes.ts'),
  ])
  const { config, environment } = local
  if (!hasChatProvider(config, environment)) return undefined
  return outward(local, outbound =>
    probe(systemClock, signal => probeChatProvider({ chat: config.chat, environment, outbound }, signal)),
  )
}

/** Who signs people in, by a configuration. */
export interface IdentityProvider {
  readonly issuer: string
  /** Where it describes itself. */
  readonly url: URL
  /** The `Date` of its answer. @throws whatever keeps it from answering */
  date(signal: AbortSignal): Promise<string | null>
}

/** @returns undefined where nobody does */
export async function identityProvider(local: LocalConfig): Promise<IdentityProvider | undefined> {
  const [{ usesOidc }, { discoveryUrl }] = await Promise.all([
    import('../config/config-checks.ts'),
    import('../auth/oidc/transport.ts'),
  ])
  const { auth } = local.config
  if (!usesOidc(auth) || !auth.oidc) return undefined
  const { issuer } = auth.oidc
  const url = discoveryUrl(issuer)
  const headers = { accept: 'application/json' }
  return {
    issuer,
    url,
    date: signal =>
      outward(local, async ask =>
        (await ask(url, { method: 'GET', headers, body: null, signal })).headers.get('date'),
      ),
  }
}
