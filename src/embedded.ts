import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PolicyExplanation } from './access/policy/explain.ts'
import type { Manifest } from './backup/backup-file.ts'
import type { DataDirBackup } from './backup/create-backup.ts'
import type { RestoredDataDir } from './backup/restore-backup.ts'
import { type Clock, systemClock, timestamp } from './base/clock.ts'
import { isProcessRunning } from './base/is-process-running.ts'
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
import type { AccessCases } from './config/read-access-cases.ts'
import type { Config } from './config/schema.ts'
import { defaultLocation, storeLocation } from './config/store-location.ts'
import { WbError } from './contract/errors.ts'
import type { Probe } from './contract/runtime-routes.ts'
import type { DrillDependencies } from './drill/drill.ts'
import type { DrillReport } from './drill/drill-report.ts'
import type { ListenOptions, RunningServer } from './http/listen.ts'
import type { ChunkerSettings } from './knowledge/chunk/index.ts'
import type { StructuredIngest } from './knowledge/ingest/structured-ingest.ts'
import type { Outbound } from './models/outbound.ts'
import type { ServerRuntime } from './rescue.ts'
import type { Runtime, RuntimeOverrides } from './runtime.ts'
import { checkStore, copyStore, isEmptyStore, isNewStore } from './storage/open.ts'
import type { ReadableTable, StoreCheck } from './storage/storage-driver.ts'

/*
 * Functions for the command line: they use the configuration and the runtime of a data directory on this machine.
 * Modules that only some commands need are loaded on first use, because loading the runtime takes 250 ms.
 */

export { readProjectFile, surveyFolder } from './config/survey-folder.ts'

/** A text, and how an ingest would read its structure. */
export type LocalText = Pick<StructuredIngest, 'text' | 'layout' | 'sourceFilename' | 'fileType'> & {
  readonly title: string | null
}

/** Reads the text of files on this machine, as a runtime does with uploaded files. */
export interface LocalFileReader {
  /**
   * @param content  path or bytes of the file
   * @throws unsupported_file_type, extraction_failed
   */
  read(content: string | Uint8Array, name: string, signal: AbortSignal): Promise<LocalText>
  close(): Promise<void>
}

/** Opens a reader of files. Each file is read on a thread with limits. */
export async function openFileReader(): Promise<LocalFileReader> {
  const { FileReader } = await import('./formats/file-reader.ts')
  const reader = new FileReader()
  return {
    async read(content, name, signal) {
      const turn = { workspaceId: '', member: '', signal }
      const read = async (path: string): Promise<LocalText> => {
        const file = await reader.read(
          { path, name, type: '' },
          { canBeText: true, withProperties: false },
          turn,
        )
        const { text, title = null, places = [] } = file
        const layout = file.format === 'text' ? undefined : { isMarkdown: true, places }
        return { text, title, layout, sourceFilename: name, fileType: null }
      }
      if (typeof content === 'string') return read(content)
      const folder = mkdtempSync(join(tmpdir(), `wb-read-${process.pid}-`))
      try {
        const path = join(folder, 'file')
        writeFileSync(path, content)
        return await read(path)
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
    close: () => reader.close(),
  }
}

/**
 * Loads the chunkers, and returns a function that splits a text as an ingest would. It returns the texts that embedding models get,
 * and throws invalid_chunker.
 */
export async function openChunker(service: ChunkerSettings): Promise<(text: LocalText) => string[]> {
  const [{ chunkText, passagesOf }, { layoutOf }, { toModelText }] = await Promise.all([
    import('./knowledge/chunk-text.ts'),
    import('./knowledge/ingest/structured-ingest.ts'),
    import('./knowledge/vector-space.ts'),
  ])
  return ({ title, ...source }) => {
    const { text } = source
    const { chunks } = chunkText({ text, service, override: undefined, layout: layoutOf(source) })
    return passagesOf(title, chunks).map(toModelText)
  }
}

/**
 * Copies the store of a data directory to a temporary folder, opens a runtime without network access on the copy, and runs a
 * drill in it. The copy is deleted afterwards.
 *
 * @throws validation_error  the store is in memory, or row-level access is off
 */
export async function drillAccess(
  { dataDir }: LocalRuntimeOptions,
  local: LocalConfig,
  options: DrillOptions,
): Promise<DrillReport> {
  const [{ openRuntime }, { runDrill }, { echoModel }, { packageVersion }] = await Promise.all([
    import('./runtime.ts'),
    import('./drill/drill.ts'),
    import('./drill/echo-model.ts'),
    import('./base/package.ts'),
  ])
  const { environment, overrides } = local
  const location = storeLocation(local.config, dataDir)
  if (location.path === ':memory:')
    throw new WbError('validation_error', 'the store is in memory, so it cannot be copied')
  removeAbandonedCopies()
  const folder = mkdtempSync(join(tmpdir(), `wb-drill-${process.pid}-`))
  try {
    await copyStore(location, join(folder, 'workbase.db'))
    const config = drillConfig(local.config)
    const log = createLog(options.logSettings)
    const settings = {
      config,
      environment,
      dataDir: folder,
      threads: false,
      server: false,
      loopback: true,
      log,
    }
    const runtime = await openRuntime(settings, { ...overrides, outbound: echoModel })
    try {
      return await runDrill({
        ...options,
        clock: systemClock,
        version: packageVersion(),
        send: async (request, as) => {
          options.signal.throwIfAborted()
          const response = await runtime.fetch(request, as)
          // The response may be an error that the interruption caused.
          options.signal.throwIfAborted()
          return response
        },
        settle: () => runtime.settle({ signal: options.signal, onProgress() {} }),
      })
    } finally {
      await runtime.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Deletes copies of drills whose process was killed. */
function removeAbandonedCopies(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = /^wb-drill-(\d{1,10})-/.exec(name) ?? []
    if (pid === undefined || isProcessRunning(Number(pid))) continue
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true })
    } catch {
      // It belongs to another user.
    }
  }
}

/** A drill of one workspace. */
interface DrillOptions
  extends Pick<DrillDependencies, 'workspaceId' | 'workspaceName' | 'signal' | 'onProgress'> {
  readonly logSettings: LogSettings
}

/** Returns the configuration of a drill: it accepts only API keys, and starts no other programs. */
function drillConfig(config: Config): Config {
  return {
    ...config,
    runtime: {
      ...config.runtime,
      rateLimit: { ...config.runtime.rateLimit, enabled: false },
      allowedEndpoints: ['127.0.0.1'],
      secretRefs: { allow: [] },
    },
    controlPlane: { driver: 'sqlite', path: null, jobsResume: config.controlPlane.jobsResume },
    auth: {
      mode: 'apiKey',
      anonymousPolicy: 'reject',
      bootstrapTokenRef: null,
      acknowledgeOpenAccess: null,
      oidc: null,
    },
    seedWorkspaces: [],
    chat: { ...config.chat, enabled: true, retrievalK: 64, systemPrompt: null },
    mcp: { enabled: true, exposeChat: true, stdioServers: [] },
  }
}

/** Test cases of access, with the results of those whose documents are in the file. */
export interface AccessCaseReport extends AccessCases {
  readonly results: readonly (PolicyExplanation | undefined)[]
}

/**
 * Reads test cases of access from a file, and evaluates those whose documents are in the file.
 *
 * @throws validation_error  the file or the policy is invalid
 */
export async function testAccessCases(path: string): Promise<AccessCaseReport> {
  const [{ readAccessCases }, { runAccessCases }] = await Promise.all([
    import('./config/read-access-cases.ts'),
    import('./access/policy/run-access-cases.ts'),
  ])
  const cases = readAccessCases(path)
  return { ...cases, results: runAccessCases(cases) }
}

/** The data directory of a runtime on this machine, and the possible sources of its configuration file. */
interface LocalRuntimeOptions {
  readonly dataDir: string
  readonly config: { readonly flag?: string; readonly variable?: string; readonly trusted?: string }
  /** Working directory of the command. */
  readonly cwd: string
}

/** The configuration that applies to a data directory. */
export interface LocalConfig {
  readonly file: ConfigFile
  readonly config: Config
  readonly environment: ConfigEnvironment
  /** All values with their sources. */
  readonly values: readonly ConfigValue[]
  readonly warnings: readonly string[]
  /** Valid settings that this version does not support yet. */
  readonly unsupported: readonly { readonly key: string; readonly message: string }[]
  readonly overrides: RuntimeOverrides
  /** True to run the long work of a server in worker threads. */
  readonly serverThreads: boolean
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
  options: LocalRuntimeOptions,
  { env, signals, keyCost, serverThreads = true }: Pick<Io, 'env' | 'signals' | 'keyCost' | 'serverThreads'>,
  flags: { host?: string; port?: number } = {},
): LocalConfig {
  const file = locateConfig(options)
  const environment = signals.withDefaults(() => createEnvironment(env, readManagedEnv(options.dataDir)))
  const { config, sources, warnings } = signals.withDefaults(() => loadConfig(file, environment, flags))
  const values = describeConfig(config, sources)
  const unsupported = missingDriverProblems(config)
  return { file, config, environment, values, warnings, unsupported, overrides: { keyCost }, serverThreads }
}

/** Log settings for a runtime in this process. */
export interface LogSettings {
  level: LogLevel
  stream: { write(line: string): unknown }
}

/** Returns true if a data directory has never contained a store. */
export function hasNoStore({ dataDir }: LocalRuntimeOptions, { config }: LocalConfig): Promise<boolean> {
  return isNewStore(storeLocation(config, dataDir))
}

/** `persistent`: the store of the data directory. `empty`: an empty store in memory, which creates no file. */
export type StoreChoice = 'persistent' | 'empty'

/** Opens a runtime in this process for a command. */
export async function openLocal(
  { dataDir }: LocalRuntimeOptions,
  { config, environment, overrides }: LocalConfig,
  { logSettings, store }: { logSettings: LogSettings; store: StoreChoice },
): Promise<Runtime> {
  const { openRuntime } = await import('./runtime.ts')
  const { jobsResume } = config.controlPlane
  const settings = {
    config:
      store === 'persistent'
        ? config
        : { ...config, controlPlane: { driver: 'memory', jobsResume } as const },
    environment,
    dataDir,
    threads: false,
    server: false,
    loopback: true,
    log: createLog(logSettings),
  }
  return openRuntime(settings, overrides)
}

/**
 * Opens the runtime of a server. The caller must hold the server lock.
 *
 * @param options.isRestart  true if the server is already running; in this case, any failure starts rescue mode
 * @param options.restart  reopens the runtime
 */
export async function openServed(
  { dataDir }: LocalRuntimeOptions,
  { config, environment, overrides, serverThreads }: LocalConfig,
  options: { loopback: boolean; logSettings: LogSettings; isRestart: boolean; restart: () => void },
): Promise<ServerRuntime> {
  const rescue = await import('./rescue.ts')
  const { loopback, logSettings, isRestart, restart } = options
  const log = createLog(logSettings)
  return rescue.openServerRuntime(
    { config, environment, dataDir, threads: serverThreads, server: true, loopback, restart, log },
    isRestart,
    overrides,
  )
}

/**
 * Returns true if the store of a data directory is missing, or has no rows because commands have only read from
 * it.
 */
export function isStoreEmpty(dataDir: string): Promise<boolean> {
  return isEmptyStore(defaultLocation(dataDir))
}

/** Returns problems with secrets that are missing or too short, by configuration key. Does not use the network. */
export function secretProblems({ config, environment }: LocalConfig): LocalConfig['unsupported'] {
  try {
    readAuthSecrets(config, environment)
    return []
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return error.facts.problems as LocalConfig['unsupported']
  }
}

/** Starts a server that handles requests to a runtime over the network. */
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

/**
 * Writes a backup of a data directory, see `createBackup`.
 *
 * @param path  absolute path of the backup
 */
export async function backUpDataDir(
  { dataDir }: LocalRuntimeOptions,
  { config }: LocalConfig,
  { path, clock, signal }: { path: string; clock: Clock; signal: AbortSignal },
): Promise<DataDirBackup> {
  const [{ createBackup }, { packageVersion }] = await Promise.all([
    import('./backup/create-backup.ts'),
    import('./base/package.ts'),
  ])
  const location = storeLocation(config, dataDir)
  const [createdAt, workbase] = [timestamp(clock), packageVersion()]
  return createBackup({ dataDir, location, path, createdAt, workbase, signal })
}

/**
 * Restores a backup to a data directory, see `restoreBackup`.
 *
 * @param path  absolute path of the backup
 */
export async function restoreDataDir(
  options: LocalRuntimeOptions,
  { env, signals, keyCost }: Pick<Io, 'env' | 'signals' | 'keyCost'>,
  {
    path,
    clock,
    ...rest
  }: { path: string; clock: Clock; signal: AbortSignal; confirm: (manifest: Manifest) => Promise<void> },
): Promise<RestoredDataDir> {
  const { restoreBackup } = await import('./backup/restore-backup.ts')
  const { dataDir } = options
  const locate = (folder: string) =>
    storeLocation(readConfig({ ...options, dataDir: folder }, { env, signals, keyCost }).config, dataDir)
  return restoreBackup({ dataDir, path, locate, restoredAt: timestamp(clock), ...rest })
}

/** Results of the checks of a data directory. */
export interface DataDirReport {
  /** Path of the store; undefined for a store in memory. */
  readonly path?: string
  /** Schema version of the store (`found`), and the newest one that this version of Workbase supports (`known`). */
  readonly schema?: { readonly found: number; readonly known: number }
  readonly checks: readonly (StoreCheck & { readonly fix?: string })[]
  /** Rows that can be recovered, if the store is damaged. */
  readonly readable?: readonly ReadableTable[]
}

/**
 * Checks the store of a data directory and its other files, without opening a runtime. Does not change them.
 *
 * @throws control_plane_unavailable  the store cannot be read
 */
export async function checkDataDir(
  { dataDir }: LocalRuntimeOptions,
  { config }: LocalConfig,
): Promise<DataDirReport> {
  const staleFiles = listScratchLeftovers(join(dataDir, uploadsFolder), { atStart: false })
  const uploads = {
    check: 'unfinished uploads of a killed process',
    count: staleFiles.length,
    examples: staleFiles.slice(0, 3),
    fix: 'wb serve',
  }
  if (config.controlPlane.driver === 'memory') return { checks: [uploads] }
  const location = storeLocation(config, dataDir)
  const { path } = location
  const report = await checkStore(location)
  if (!report) return { path, checks: [uploads] }
  const { schema: found, known, checks, readable } = report
  return { path, schema: { found, known }, checks: [...checks, uploads], ...(readable && { readable }) }
}

/** Runs a function that sends requests from this process. Applies the same endpoint guard as the runtime. */
async function withOutbound<T>(
  { config, environment }: LocalConfig,
  send: (outbound: Outbound) => Promise<T>,
): Promise<T> {
  const [{ openOutboundNetwork }, { openEndpointGuard }] = await Promise.all([
    import('./models/outbound.ts'),
    import('./models/endpoint-guard.ts'),
  ])
  const network = openOutboundNetwork({ guard: openEndpointGuard(config, environment) })
  try {
    return await send(network.send)
  } finally {
    await network.close()
  }
}

/** Checks whether the configured chat provider responds. Returns undefined if no provider is configured. */
export async function probeConfiguredChat(local: LocalConfig): Promise<Probe | undefined> {
  const [{ hasChatProvider }, { probeChatProvider, probe }] = await Promise.all([
    import('./models/chat/chat-provider.ts'),
    import('./operation/probes.ts'),
  ])
  const { config, environment } = local
  if (!hasChatProvider(config, environment)) return undefined
  return withOutbound(local, outbound =>
    probe(systemClock, signal => probeChatProvider({ chat: config.chat, environment, outbound }, signal)),
  )
}

/** The configured identity provider. */
export interface ConfiguredIdentityProvider {
  readonly issuer: string
  /** URL of the discovery document. */
  readonly url: URL
  /**
   * Requests the discovery document, and returns the `Date` header of the response.
   *
   * @throws the error of the request
   */
  date(signal: AbortSignal): Promise<string | null>
}

/** Returns the identity provider; undefined if no provider is configured. */
export async function configuredIdentityProvider(
  local: LocalConfig,
): Promise<ConfiguredIdentityProvider | undefined> {
  const { discoveryUrl } = await import('./auth/oidc/transport.ts')
  const { auth } = local.config
  if (!usesOidc(auth) || !auth.oidc) return undefined
  const { issuer } = auth.oidc
  const url = discoveryUrl(issuer)
  const headers = { accept: 'application/json' }
  return {
    issuer,
    url,
    date: signal =>
      withOutbound(local, async send =>
        (await send(url, { method: 'GET', headers, body: null, signal })).headers.get('date'),
      ),
  }
}
