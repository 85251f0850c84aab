import { join } from 'node:path'
import { systemClock } from './base/clock.ts'
import { createLog, type LogLevel } from './base/log.ts'
import { listScratchLeftovers, uploadsFolder } from './base/scratch-file.ts'
import type { Io } from './cli/io.ts'
import { readAuthSecrets } from './config/auth-secrets.ts'
import { allowsAnonymous, missingDriverProblems, usesOidc } from './config/config-checks.ts'
import { type ConfigEnvironment, createEnvironment } from './config/config-environment.ts'
import { type ConfigValue, describeConfig } from './config/describe-config.ts'
import { type ConfigFile, findConfig } from './config/find-config.ts'
import { loadConfig } from './config/load-config.ts'
import { readManagedEnv } from './config/managed-env.ts'
import type { Config } from './config/schema.ts'
import { storePath } from './config/store-path.ts'
import { WbError } from './contract/errors.ts'
import type { Probe } from './contract/operational.ts'
import type { ListenOptions, RunningServer } from './http/listen.ts'
import type { Outbound } from './models/outbound.ts'
import type { ServerRuntime } from './rescue.ts'
import type { Runtime, RuntimeOverrides } from './runtime.ts'
import type { ReadableTable, StoreCheck } from './storage/sqlite/check.ts'
import { isEmptyStore as hasNoRows, isNewStore } from './storage/sqlite/empty-store.ts'

/*
 * The configuration and the runtime of a data directory on this machine, as the command line uses them. Modules that
 * few commands need are loaded when they are used: the runtime alone takes 250 ms.
 */

export { readProjectFile, surveyFolder } from './config/survey-folder.ts'

/** Data directory of a runtime on this machine, and the sources of its configuration file. */
interface LocalRuntimeOptions {
  readonly dataDir: string
  readonly config: { readonly flag?: string; readonly variable?: string; readonly trusted?: string }
  /** Working directory of the command. */
  readonly cwd: string
}

/** Configuration that applies to a data directory. */
export interface LocalConfig {
  readonly found: ConfigFile
  readonly config: Config
  readonly environment: ConfigEnvironment
  readonly described: readonly ConfigValue[]
  readonly warnings: readonly string[]
  /** Valid settings that this version does not support yet. */
  readonly unsupported: readonly { readonly key: string; readonly message: string }[]
  readonly overrides: RuntimeOverrides
}

/** Returns the configuration file that applies. */
export function locateConfig({ dataDir, config, cwd }: LocalRuntimeOptions): ConfigFile {
  const { flag, variable, trusted } = config
  return findConfig({ flag, env: variable, trusted, cwd, dataDir })
}

/**
 * Reads and checks the configuration that applies.
 *
 * @throws validation_error  see `loadConfig`
 */
export function readConfig(
  place: LocalRuntimeOptions,
  { env, signals, keyCost }: Pick<Io, 'env' | 'signals' | 'keyCost'>,
  flags: { host?: string; port?: number } = {},
): LocalConfig {
  const found = locateConfig(place)
  const environment = signals.withDefaults(() => createEnvironment(env, readManagedEnv(place.dataDir)))
  const { config, sources, warnings } = signals.withDefaults(() => loadConfig(found, environment, flags))
  const described = describeConfig(config, sources)
  const unsupported = missingDriverProblems(config)
  return { found, config, environment, described, warnings, unsupported, overrides: { keyCost } }
}

/** Log of a runtime in this process. */
export interface LogSettings {
  level: LogLevel
  stream: { write(line: string): unknown }
}

/** Returns true if a data directory has never had a store. */
export function hasNoStore({ dataDir }: LocalRuntimeOptions, { config }: LocalConfig): boolean {
  return isNewStore(storePath(config, dataDir), dataDir)
}

/** `kept`: the store of the data directory. `empty`: an empty store in memory, which creates no file. */
export type StoreChoice = 'kept' | 'empty'

/** Opens a runtime for one command. */
export async function openLocal(
  { dataDir }: LocalRuntimeOptions,
  { config, environment, overrides }: LocalConfig,
  { voice, store }: { voice: LogSettings; store: StoreChoice },
): Promise<Runtime> {
  const { openRuntime } = await import('./runtime.ts')
  const { jobsResume } = config.controlPlane
  const settings = {
    config:
      store === 'kept' ? config : { ...config, controlPlane: { driver: 'memory', jobsResume } as const },
    environment,
    dataDir,
    threads: false,
    server: false,
    loopback: true,
    log: createLog(voice),
  }
  return openRuntime(settings, overrides)
}

/**
 * Opens the runtime of a server. This process holds the server lock.
 *
 * @param options.isAgain  the server is running already; any failure then starts rescue mode
 * @param options.restart  reopens the runtime
 */
export async function openServed(
  { dataDir }: LocalRuntimeOptions,
  { config, environment, overrides }: LocalConfig,
  options: { loopback: boolean; voice: LogSettings; isAgain: boolean; restart: () => void },
): Promise<ServerRuntime> {
  const rescue = await import('./rescue.ts')
  const { loopback, voice, isAgain, restart } = options
  const log = createLog(voice)
  return rescue.openServerRuntime(
    { config, environment, dataDir, threads: true, server: true, loopback, restart, log },
    isAgain,
    overrides,
  )
}

/** Returns true if the store of a data directory is missing or has no rows, as after commands that only read. */
export function isStoreEmpty(dataDir: string): boolean {
  return hasNoRows(join(dataDir, 'workbase.db'))
}

/** Returns problems of secrets that are missing or too short, by key. Uses no network. */
export function secretProblems({ config, environment }: LocalConfig): LocalConfig['unsupported'] {
  try {
    readAuthSecrets(config, environment)
    return []
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return error.facts.problems as LocalConfig['unsupported']
  }
}

/** Answers requests to a runtime over the network. */
export async function serveRuntime(
  runtime: Pick<Runtime, 'app'>,
  options: ListenOptions,
): Promise<RunningServer> {
  const { listen } = await import('./http/listen.ts')
  return listen(runtime.app, options)
}

/** Returns true if callers without a credential are accepted. */
export function acceptsAnonymous({ config }: LocalConfig): boolean {
  return allowsAnonymous(config)
}

/** Findings about a data directory. */
export interface DataDirReport {
  /** Path of the store; undefined for a store in memory. */
  readonly path?: string
  readonly schema?: { readonly found: number; readonly known: number }
  readonly checks: readonly (StoreCheck & { readonly mend?: string })[]
  /** Rows that can be recovered, if the store is damaged. */
  readonly readable?: readonly ReadableTable[]
}

/**
 * Checks the store of a data directory and the other files there, without a runtime. Changes nothing.
 *
 * @throws control_plane_unavailable  the store cannot be read
 */
export async function checkDataDir(
  { dataDir }: LocalRuntimeOptions,
  { config }: LocalConfig,
): Promise<DataDirReport> {
  const { checkStore } = await import('./storage/sqlite/check.ts')
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

/** Sends requests from this process, through the guard for outbound calls of the runtime. */
async function withOutbound<T>(
  { config, environment }: LocalConfig,
  ask: (outbound: Outbound) => Promise<T>,
): Promise<T> {
  const [{ openOutboundNetwork: openNetwork }, { openEndpointGuard: openGuard }] = await Promise.all([
    import('./models/outbound.ts'),
    import('./models/endpoint-guard.ts'),
  ])
  const network = openNetwork({ guard: openGuard(config, environment) })
  try {
    return await ask(network.send)
  } finally {
    await network.close()
  }
}

/** Calls the configured chat provider. Returns undefined if none is configured. */
export async function probeConfiguredChat(local: LocalConfig): Promise<Probe | undefined> {
  const [{ hasChatProvider }, { probeChatProvider: chatFound, probe }] = await Promise.all([
    import('./models/chat/chat-provider.ts'),
    import('./operation/probes.ts'),
  ])
  const { config, environment } = local
  if (!hasChatProvider(config, environment)) return undefined
  return withOutbound(local, outbound =>
    probe(systemClock, signal => chatFound({ chat: config.chat, environment, outbound }, signal)),
  )
}

/** Configured identity provider. */
export interface ConfiguredIdentityProvider {
  readonly issuer: string
  /** URL of its metadata. */
  readonly url: URL
  /** Returns the `Date` header of its response. @throws the error of the request */
  date(signal: AbortSignal): Promise<string | null>
}

/** @returns undefined if none is configured */
export async function configuredIdentityProvider(
  local: LocalConfig,
): Promise<ConfiguredIdentityProvider | undefined> {
  const { discoveryUrl: wellKnown } = await import('./auth/oidc/transport.ts')
  const { auth } = local.config
  if (!usesOidc(auth) || !auth.oidc) return undefined
  const { issuer } = auth.oidc
  const url = wellKnown(issuer)
  const headers = { accept: 'application/json' }
  return {
    issuer,
    url,
    date: signal =>
      withOutbound(local, async ask =>
        (await ask(url, { method: 'GET', headers, body: null, signal })).headers.get('date'),
      ),
  }
}
