import { hostname } from 'node:os'
import { join } from 'node:path'
import { openAccess } from './access/open.ts'
import { anonymousContext, operatorContext } from './access/subject.ts'
import { openAgents } from './agents/open.ts'
import type { ListRemoteTools } from './agents/tools/remote-tools.ts'
import { type KeyCost, productionCost } from './auth/keys/token.ts'
import { openProtectedResources, protectedResourceHandlers } from './auth/oidc/protected-resource.ts'
import { openAuth } from './auth/open.ts'
import { apiKeyHandlers, authHandlers } from './auth/routes.ts'
import { Sealer } from './auth/session/sealer.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { randomHex } from './base/id.ts'
import type { Log } from './base/log.ts'
import { sweepScratch, uploadsFolder } from './base/scratch-file.ts'
import { readAuthSecrets, readUsableAuthSecrets } from './config/auth-secrets.ts'
import type { ConfigEnvironment } from './config/config-environment.ts'
import { createReleasePolicy } from './config/release-policy.ts'
import type { Config } from './config/schema.ts'
import { storeLocation } from './config/store-location.ts'
import { api } from './contract/index.ts'
import type { IngestLoad } from './contract/runtime-routes.ts'
import { type App, createApp } from './http/app.ts'
import { createAppSettings } from './http/app-settings.ts'
import { openDecodeThread } from './http/decode-thread.ts'
import { createFailureReporter } from './http/exchange.ts'
import { runningBuild, runtimeHandlers } from './http/runtime-handlers.ts'
import type { JobClaim } from './jobs/job-claim.ts'
import { openJobs } from './jobs/open.ts'
import type { FitProgress } from './knowledge/fitting.ts'
import { openKnowledge } from './knowledge/open.ts'
import { openMcp } from './mcp/open.ts'
import { openModels } from './models/open.ts'
import type { Outbound, ResolveHost } from './models/outbound.ts'
import { openOperation } from './operation/open.ts'
import { setupHandlers } from './operation/setup.ts'
import { SentenceModel } from './sentence-model/sentence-model.ts'
import type { ContentStore } from './storage/content.ts'
import { openCursors, Pager } from './storage/cursor.ts'
import type { Disk } from './storage/disk-space.ts'
import { openMemoryContent, openStore } from './storage/open.ts'
import type { RowStore } from './storage/rows.ts'
import { getOrCreateSecret } from './storage/store-secret.ts'
import { tables } from './storage/tables.ts'
import { withValidatedRows } from './storage/validated-rows.ts'
import type { ContentStores } from './workspaces/content-stores.ts'
import { McpSignIns } from './workspaces/mcp-sign-ins.ts'
import { openWorkspaces } from './workspaces/open.ts'
import { SecretReleases } from './workspaces/secret-releases.ts'

/** Settings of a runtime. */
export interface RuntimeSettings {
  readonly config: Config
  readonly environment: ConfigEnvironment
  /** Absolute path of the data directory, which is created if it is missing. */
  readonly dataDir: string
  /**
   * True to run long work in worker threads, so that the event loop stays responsive. False in commands, which run only
   * for a short time.
   */
  readonly threads: boolean
  /** True if no other machine can connect, because the runtime listens on a loopback address or does not listen. */
  readonly loopback: boolean
  /**
   * True if this process holds the server lock. Only such a runtime deletes ephemeral workspaces and continues
   * unfinished work.
   */
  readonly server: boolean
  /**
   * Replaces this runtime with a new one after its current requests have ended; undefined if it cannot be restarted.
   */
  readonly restart?: () => void
  readonly log: Log
}

/** Dependencies that tests can replace. */
export interface RuntimeOverrides {
  readonly clock?: Clock
  readonly keyCost?: KeyCost
  readonly outbound?: Outbound
  /** Resolves a host name to addresses, before the guard checks them. */
  readonly resolve?: ResolveHost
  /** Sends requests to the identity provider. */
  readonly fetch?: typeof fetch
  /** Lists the tools of MCP servers. */
  readonly listTools?: ListRemoteTools
  /** Called with the tools of agents. */
  readonly tools?: (tools: Pick<ReturnType<typeof openAgents>, 'toolbox' | 'gate'>) => void
  /** Free space on the disk of the store. */
  readonly disk?: Disk
  /** Wraps the store of control rows, to make it slow or failing. */
  readonly rows?: (store: RowStore) => RowStore
  /** Wraps the store of content, to make it slow, failing or less capable. */
  readonly content?: (store: ContentStore) => ContentStore
  /** Additional content stores by workspace kind, which override built-in ones. */
  readonly drivers?: ContentStores
  /** Sentence model instead of the built-in one; null for none. */
  readonly sentenceModel?: Pick<SentenceModel, 'embed' | 'close'> | null
  /** Folder of onnxruntime-node, instead of the one that is installed for this package. */
  readonly nativeRuntime?: string
  /** True to report an error code that a route does not declare as an internal error. */
  readonly strictErrors?: boolean
}

/** An open runtime. */
export interface Runtime {
  readonly app: App
  /**
   * Handles a request.
   *
   * @param as  `operator` for a request from the owner of the data directory; other requests are authenticated
   */
  fetch(request: Request, as?: 'operator'): Promise<Response>
  /** Returns the number of jobs that are due, and of knowledge bases with work on vectors that is due. */
  pending(): Promise<number>
  /** Runs the jobs and the work on vectors that are due, and waits for them. */
  settle(options: { signal: AbortSignal; onProgress(step: FitProgress): void }): Promise<void>
  close(): Promise<void>
}

/**
 * Opens the runtime. If a module cannot be opened, closes those that are already open.
 *
 * @throws control_plane_unavailable  the store cannot be opened
 * @throws driver_unavailable         this version does not support the configured control plane
 * @throws validation_error           a configured secret is missing, or the identity provider is unreachable
 */
export async function openRuntime(
  settings: RuntimeSettings,
  overrides: RuntimeOverrides = {},
): Promise<Runtime> {
  const openModules: { close(): Promise<void> }[] = []
  try {
    return await buildRuntime(settings, overrides, openModules)
  } catch (error) {
    for (const openModule of openModules.reverse()) await openModule.close()
    throw error
  }
}

/**
 * Opens the modules of the runtime, and connects them.
 *
 * @param openModules  list to which modules with files, threads or connections are added, so that they can be closed
 *   if a later module cannot be opened
 */
async function buildRuntime(
  settings: RuntimeSettings,
  overrides: RuntimeOverrides,
  openModules: { close(): Promise<void> }[],
): Promise<Runtime> {
  const { config, environment, dataDir, log } = settings
  const clock = overrides.clock ?? systemClock
  const secrets = (settings.server ? readAuthSecrets : readUsableAuthSecrets)(config, environment)
  const location = storeLocation(config, dataDir)
  const uploadDir = join(dataDir, uploadsFolder)
  const host = hostname()
  const processNonce = randomHex(4)
  const thisBuild = runningBuild(environment, clock)
  const replicaId = config.runtime.replicaId ?? `${host || 'wb'}-${processNonce}`

  const store = await openStore(location, { threads: settings.threads, clock, disk: overrides.disk })
  openModules.push(store)
  const rows = withValidatedRows((overrides.rows ?? (unwrapped => unwrapped))(store.rows))
  const wrapContent = overrides.content ?? (unwrapped => unwrapped)
  const content = wrapContent(store.content)
  const stores = { local: content, mock: wrapContent(openMemoryContent(rows)), ...overrides.drivers }
  const cursors = await openCursors(rows)
  const pager = new Pager(rows, cursors)
  const deps = { rows, pager, cursors, clock, log, config, environment }

  const access = openAccess({ ...deps, replicaId })
  const { audit } = access
  const releases = new SecretReleases({
    ...deps,
    policy: createReleasePolicy(config, dataDir, settings.loopback),
  })
  const models = openModels({
    ...deps,
    dataDir,
    isReleased: (...args) => releases.covers(...args),
    outbound: overrides.outbound,
    resolve: overrides.resolve,
    nativeRuntime: overrides.nativeRuntime,
  })
  openModules.push(models)
  const auth = openAuth({
    ...deps,
    config: config.auth,
    secrets,
    tokenKey: await getOrCreateSecret(rows, 'token-key'),
    keyCost: overrides.keyCost ?? productionCost,
    audit,
    fetch: overrides.fetch ?? models.fetch,
  })
  if (settings.server) await auth.discover()

  const signIns = new McpSignIns({
    ...deps,
    seal: new Sealer([...secrets.sessionSecrets, await getOrCreateSecret(rows, 'sign-in-key')]),
    authorization: models.authorization,
    isSingleUser: config.auth.mode === 'disabled' && settings.loopback,
    publicOrigin: config.runtime.publicOrigin,
  })
  const listTools: ListRemoteTools = overrides.listTools ?? models.listTools
  const workspaces = openWorkspaces({
    ...deps,
    stores,
    releases,
    models,
    listTools,
    signIns,
    listExposedTools: (...args) => mcp.listTools(...args),
    purge: [
      (workspace, authorize) => knowledge.bases.purge(workspace, authorize),
      ({ workspaceId }) => access.purgeDecisions(workspaceId),
    ],
    publish: (...args) => knowledge.publish(...args),
    refitAfter: (...args) => knowledge.refitAfter(...args),
  })
  const onNativeFailure = (reason: string) =>
    log.warn(
      { reason },
      'onnxruntime-node is installed but cannot be used; the sentence model runs without it',
    )
  const { sentenceModel = config.runtime.semanticSearch ? new SentenceModel({ onNativeFailure }) : null } =
    overrides
  if (sentenceModel) openModules.push(sentenceModel)
  const knowledge = openKnowledge({
    ...deps,
    stores,
    content,
    accessOf: access.rowAccess,
    learnableRows: access.learnableRows,
    threadLocation: settings.threads ? store.threadLocation : undefined,
    chunking: workspaces.chunking,
    embedding: workspaces.embedding,
    reranking: workspaces.reranking,
    queryLog: config.runtime.queryLog,
    trash: config.runtime.trash,
    openEmbedder: models.openEmbedder,
    openReranker: models.openReranker,
    fetch: models.fetch,
    docling: environment.docling,
    owner: `${host}:${process.pid}:${processNonce}`,
    indexesAutomatically: settings.server,
    sentenceModel: sentenceModel ?? undefined,
    ingestQueue: config.runtime.ingestQueue,
    onEnqueued: () => {
      if (settings.server) jobs.wake()
    },
    // Without a server, no other process may be running the jobs that the caller waits for.
    onEnqueueRejected: () => jobs.wake(),
    reportFailure: createFailureReporter(log),
    measureSearch: search => operation.metrics.measureSearch(search),
  })
  openModules.push(knowledge)

  const countWorkspaces = () => rows.count(tables.workspaces, 'byCreation', [])
  const ingestLoad = (): Promise<IngestLoad> => jobs.load()
  const operation = openOperation({
    ...deps,
    build: thisBuild,
    outbound: models.outbound,
    chat: config.chat,
    countWorkspaces,
    requireSpace: store.requireSpace,
    ingestLoad,
    countLostDecisions: access.countLostDecisions,
  })
  const ingest = operation.withIngestCount((claim: JobClaim) => knowledge.ingestJob.perform(claim))
  const jobs = openJobs({
    ...deps,
    audit,
    host,
    processNonce,
    perform: claim => (claim.job.kind === 'reindex' ? knowledge.reindexJob.perform(claim) : ingest(claim)),
  })
  const agents = openAgents({
    ...deps,
    audit,
    settings: config.chat,
    listTools,
    signIns,
    declared: config.mcp.stdioServers,
    models,
    reads: knowledge,
    uploads: knowledge.uploads,
    sentenceModel: sentenceModel ?? undefined,
    onTurnEnd: (provider, outcome) => operation.metrics.countChat(provider, outcome),
  })
  overrides.tools?.(agents)

  const resources = openProtectedResources(config)
  const mcp = openMcp({
    ...deps,
    requestScope: (workspaceId, scope) => resources?.insufficientScopeChallenge(workspaceId, scope),
    audit,
    traffic: workspaces.traffic,
    reportFailure: createFailureReporter(log),
    settings: config.mcp,
    version: thisBuild.version,
    routes: { ...workspaces.handlers, ...knowledge.handlers, ...agents.handlers },
    conversations: agents.conversations,
    replies: agents.turns,
  })

  const decoding = settings.threads ? openDecodeThread() : undefined
  const app = createApp({
    api,
    handlers: {
      operational: runtimeHandlers({
        build: thisBuild,
        api,
        clock,
        mcpEnabled: config.mcp.enabled,
        countWorkspaces,
        requireSpace: store.requireSpace,
        ingestLoad,
      }),
      operation: operation.handlers,
      setup: setupHandlers({ ...settings, controlPlane: { countWorkspaces }, restart: settings.restart }),
      auth: authHandlers(auth.signIn),
      protectedResources: protectedResourceHandlers(resources),
      apiKeys: apiKeyHandlers(auth.keys),
      ...access.handlers,
      ...workspaces.handlers,
      ...knowledge.handlers,
      mcp: mcp.handlers,
      jobs: jobs.handlers,
      ...agents.handlers,
    },
    authenticate: auth.authenticate,
    anonymous: anonymousContext(config.auth.mode),
    scopeToWorkspace: access.inWorkspace,
    audit,
    rowAccess: access.rowAccess,
    challengeFor: (path, hasCredential) => resources?.unauthorizedChallenge(path, hasCredential),
    callbackPath: auth.signIn.callbackPath,
    errorForPath: path => auth.signIn.errorForPath(path),
    observer: operation.observer,
    decodeInThread: decoding?.decode,
    log,
    clock,
    settings: createAppSettings(config, {
      loopback: settings.loopback,
      uploadDir,
      strictErrors: overrides.strictErrors ?? false,
    }),
  })

  if (settings.server) {
    await operation.metrics.start()
    sweepScratch(uploadDir)
    await workspaces.deleteEphemeral()
    await knowledge.resume()
    jobs.start()
    access.start()
  }

  const operator = operatorContext(config.auth.mode, replicaId)
  return {
    app,
    fetch: (request, as) => app.fetch(request, as === 'operator' ? { operator } : undefined),
    pending: async () => (await jobs.countDue()) + (await knowledge.countDue()),
    async settle({ signal, onProgress }) {
      await jobs.settle(signal, onProgress)
      await knowledge.settle(signal, onProgress)
    },
    async close() {
      app.drain()
      await app.idle()
      await agents.turns.close()
      await agents.close()
      await jobs.close()
      await knowledge.close()
      await sentenceModel?.close()
      await signIns.close()
      await auth.close()
      await access.close()
      await models.close()
      await decoding?.close()
      await store.close()
    },
  }
}
