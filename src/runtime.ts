import { hostname } from 'node:os'
import { join } from 'node:path'
import { AuditTrail } from './access/audit.ts'
import { AuditRecords } from './access/audit-records.ts'
import { AuditRetention } from './access/audit-retention.ts'
import { inWorkspace, type PrincipalRoles } from './access/in-workspace.ts'
import { Principals } from './access/principals.ts'
import { auditHandlers, policyHandlers, principalHandlers } from './access/routes.ts'
import { anonymousIn, operatorOf } from './access/subject.ts'
import { everything } from './access/visibility.ts'
import { openAgents } from './agents/open.ts'
import type { ListRemoteTools } from './agents/tools/remote.ts'
import { openAuth } from './auth/open.ts'
import { apiKeyHandlers, authHandlers } from './auth/routes.ts'
import { type Clock, systemClock, timestamp } from './base/clock.ts'
import { randomHex } from './base/id.ts'
import type { Log } from './base/log.ts'
import { packageVersion } from './base/package.ts'
import { sweepScratch, uploadsFolder } from './base/scratch.ts'
import { authSecrets, secretsAtHand } from './config/auth-secrets.ts'
import { isOpen, usesOidc } from './config/checks.ts'
import type { Environment } from './config/environment.ts'
import { releasePolicy } from './config/release.ts'
import type { Config } from './config/schema.ts'
import { storePath } from './config/store-path.ts'
import { api } from './contract/index.ts'
import type { IngestLoad } from './contract/operational.ts'
import { type App, type AppSettings, createApp } from './http/app.ts'
import { failureTeller } from './http/exchange.ts'
import { operationalHandlers } from './http/routes.ts'
import { openJobs } from './jobs/open.ts'
import { type BaseContext, KnowledgeBases } from './knowledge/bases.ts'
import { Documents } from './knowledge/documents.ts'
import { KnowledgeFilters } from './knowledge/filters.ts'
import { type FitProgress, Fitting } from './knowledge/fitting.ts'
import { openHosts } from './knowledge/hosts.ts'
import { IngestJob } from './knowledge/ingest/job.ts'
import { Ingestion } from './knowledge/ingest.ts'
import { Docling } from './knowledge/parse/docling.ts'
import { Records } from './knowledge/records.ts'
import {
  chunkerHandlers,
  documentHandlers,
  filterHandlers,
  kbHandlers,
  recordHandlers,
} from './knowledge/routes.ts'
import { Searcher } from './knowledge/search.ts'
import { ManySearcher } from './knowledge/search-many.ts'
import { Space } from './knowledge/space.ts'
import { Uploads } from './knowledge/uploads.ts'
import { Catalogue } from './models/catalogue.ts'
import { openGuard } from './models/guard.ts'
import { listMcpTools } from './models/mcp.ts'
import { openEmbedder } from './models/open.ts'
import { type Outbound, openNetwork, type Resolve } from './models/outbound.ts'
import { probeModel } from './models/probe.ts'
import { openOperation } from './operation/open.ts'
import { setupHandlers } from './operation/setup.ts'
import type { ContentStore } from './storage/content.ts'
import { openCursors, Pager } from './storage/cursor.ts'
import { openMemoryContent } from './storage/memory/content.ts'
import { openEmbedded } from './storage/open.ts'
import type { RowStore } from './storage/rows.ts'
import { storeSecret } from './storage/secret.ts'
import { tables } from './storage/tables.ts'
import { Connections } from './workspaces/connect.ts'
import { Traffic } from './workspaces/connect-traffic.ts'
import type { ContentStores } from './workspaces/kinds.ts'
import { McpServers, mcpServerHandlers } from './workspaces/mcp-servers.ts'
import { llmModelHandlers } from './workspaces/model-routes.ts'
import { Releases, releaseHandlers } from './workspaces/releases.ts'
import { connectHandlers, playgroundHandlers, workspaceHandlers } from './workspaces/routes.ts'
import { openServices } from './workspaces/service-routes.ts'
import { Workspaces } from './workspaces/workspaces.ts'

export interface RuntimeSettings {
  readonly config: Config
  readonly environment: Environment
  /** Absolute path; made when missing. */
  readonly dataDir: string
  /** Long work in worker threads, so that the event loop stays free; short commands work on the spot. */
  readonly threads: boolean
  /** No other machine can connect: a loopback bind, or no port at all. */
  readonly loopback: boolean
  /** This process holds the server lock: it clears what is ephemeral and takes up what others left. */
  readonly server: boolean
  /** Opens the runtime anew once its requests are answered; left out where nobody would. */
  readonly restart?: () => void
  readonly log: Log
}

/** What a test owns. */
export interface Seams {
  readonly clock?: Clock
  readonly outbound?: Outbound
  /** The addresses of a name, before the guard checks them. */
  readonly resolve?: Resolve
  /** How the identity provider is reached. */
  readonly fetch?: typeof fetch
  /** How MCP servers are asked for their tools. */
  readonly listTools?: ListRemoteTools
  /** Stands before the store of control rows, to make it slow or failing. */
  readonly rows?: (store: RowStore) => RowStore
  /** Stands before the store of content, to make it slow, failing or less able. */
  readonly content?: (store: ContentStore) => ContentStore
  /** Stores of kinds that have none in this version, or instead of those that have. */
  readonly drivers?: ContentStores
  /** A code that a route answers without declaring it becomes an internal error. */
  readonly strictErrors?: boolean
}

export interface Runtime {
  readonly app: App
  /** @param as  `operator` is whoever owns the data directory; else the request says who it is from */
  fetch(request: Request, as?: 'operator'): Promise<Response>
  /** How many jobs and fits are due. */
  pending(): Promise<number>
  /** Finish the work that is due. */
  settle(options: { signal: AbortSignal; onProgress(step: FitProgress): void }): Promise<void>
  close(): Promise<void>
}

/**
 * Build every room once, in order.
 *
 * @throws control_plane_unavailable  the store cannot be opened
 * @throws driver_unavailable         the control plane of the configuration is not in this version
 * @throws validation_error           a secret of the configuration leads to nothing, or the identity provider cannot be found
 */
export async function openRuntime(settings: RuntimeSettings, seams: Seams = {}): Promise<Runtime> {
  const opened: { close(): Promise<void> }[] = []
  try {
    return await build(settings, seams, opened)
  } catch (error) {
    for (const part of opened.reverse()) await part.close()
    throw error
  }
}

/** @param opened  is given what holds on to something outside of this process's memory, for when the rest fails */
async function build(
  settings: RuntimeSettings,
  seams: Seams,
  opened: { close(): Promise<void> }[],
): Promise<Runtime> {
  const { config, environment, dataDir, log } = settings
  const clock = seams.clock ?? systemClock
  const secrets = (settings.server ? authSecrets : secretsAtHand)(config, environment)
  const path = storePath(config, dataDir)
  const uploadDir = join(dataDir, uploadsFolder)
  const threads = settings.threads && path !== ':memory:'
  const store = await openEmbedded({ path, threads, clock })
  opened.push(store)
  const rows = (seams.rows ?? (own => own))(store.rows)
  const before = seams.content ?? (content => content)
  const content = before(store.content)
  const cursors = await openCursors(rows)
  const pager = new Pager(rows, cursors)
  const parts = { rows, pager, cursors, clock, log }

  const replicaId = config.runtime.replicaId ?? `${hostname() || 'wb'}-${randomHex(4)}`
  const audit = new AuditTrail({ ...parts, replicaId })
  const guard = openGuard(config, environment)
  const network = openNetwork({ guard, resolve: seams.resolve })
  opened.push(network)
  const auth = openAuth({
    ...parts,
    config: config.auth,
    secrets,
    tokenKey: await storeSecret(rows, 'token-key'),
    audit,
    fetch: seams.fetch ?? network.fetch,
  })
  if (settings.server) await auth.discover()
  const hosts = openHosts({ path, threads, content })
  opened.push(hosts)
  const fitting = new Fitting({
    store: content,
    host: hosts.fit,
    clock,
    log,
    owner: `${hostname()}:${process.pid}:${randomHex(4)}`,
  })

  const releases = new Releases({ ...parts, policy: releasePolicy(config, dataDir, settings.loopback) })
  const outbound = seams.outbound ?? network.send
  const models = {
    environment,
    isReleased: (ref: string, host: string, workspaceId: string) => releases.covers(ref, host, workspaceId),
    outbound,
  }
  const checkUrl = (field: string, url: string) => guard.checkUrl(field, url)
  const { chunking, embedding, ...services } = openServices({
    ...parts,
    checkUrl,
    probe: (service, sent, signal) => probeModel(service, sent, signal, { ...models, chat: config.chat }),
  })
  const stores = { local: content, mock: before(openMemoryContent(rows)), ...seams.drivers }
  const bases = new KnowledgeBases({
    ...parts,
    stores,
    chunking,
    embedding,
    fitting: key => fitting.isRunning(key),
  })
  const space = new Space({
    query: hosts.query,
    openEmbedder: service => openEmbedder(service, models),
  })
  const filters = new KnowledgeFilters({ ...parts, bases })
  const documents = new Documents({ ...parts, bases, space })
  const ingestParts = {
    ...parts,
    bases,
    chunking,
    space,
    index: hosts.index,
    ingested: (context: BaseContext) => {
      if (settings.server && context.fitted) fitting.grew(context.key)
    },
  }
  const ingestJob = new IngestJob(ingestParts)
  const countWorkspaces = () => rows.count(tables.workspaces, 'byCreation', [])
  const ingestLoad = (): Promise<IngestLoad> => jobs.load()
  const operation = openOperation({ ...models, chat: config.chat, clock, countWorkspaces, ingestLoad })
  const jobs = openJobs({
    ...parts,
    config,
    audit,
    host: hostname(),
    mark: randomHex(4),
    perform: operation.ofIngest(claim => ingestJob.perform(claim)),
  })
  const ingestion = new Ingestion({
    ...ingestParts,
    enqueued: () => {
      if (settings.server) jobs.wake()
    },
  })
  const docling = new Docling(environment.docling, network.fetch)
  const uploads = new Uploads({ docling, index: hosts.index })
  const workspaces = new Workspaces({ ...parts, purge: [workspace => bases.purge(workspace)] })

  const listTools: ListRemoteTools =
    seams.listTools ?? ((server, signal) => listMcpTools(server, { ...models, fetch: network.fetch }, signal))
  const mcpServers = new McpServers({ ...parts, checkUrl, listTools })
  const agents = openAgents({
    ...parts,
    settings: config.chat.tools,
    listTools,
  })

  const principals = new Principals(parts)
  const roleOf: PrincipalRoles = (workspaceId, principalId) => principals.roleOf(workspaceId, principalId)

  const app = createApp({
    api,
    handlers: {
      operational: operationalHandlers({
        build: buildOf(environment, clock),
        api,
        clock,
        countWorkspaces,
        ingestLoad,
      }),
      operation: operation.handlers,
      setup: setupHandlers({ ...settings, controlPlane: { countWorkspaces }, restart: settings.restart }),
      auth: authHandlers(auth.signIn),
      workspaces: workspaceHandlers(workspaces, stores),
      connect: connectHandlers(
        new Connections({ rows, traffic: new Traffic(clock), mcpWanted: config.mcp.enabled }),
      ),
      playground: playgroundHandlers(workspaces, { stores, clock }),
      apiKeys: apiKeyHandlers(auth.keys),
      audit: auditHandlers(new AuditRecords({ ...parts, trail: audit })),
      principals: principalHandlers(principals),
      policy: policyHandlers(rows, principals),
      chunkers: chunkerHandlers(),
      ...services.handlers,
      secretReleases: releaseHandlers(releases),
      mcpServers: mcpServerHandlers(mcpServers),
      llmModels: llmModelHandlers(new Catalogue(models), config.chat.provider, checkUrl),
      kb: operation.metrics.ofSearches(
        kbHandlers(bases, new Searcher(space, filters), new ManySearcher({ bases, space, filters })),
      ),
      filters: filterHandlers(filters),
      jobs: jobs.handlers,
      documents: documentHandlers({ bases, documents, ingestion, uploads }, failureTeller(log)),
      records: recordHandlers(new Records(bases, space)),
      ...agents,
    },
    authenticate: auth.authenticate,
    stranger: anonymousIn(config.auth.mode),
    inWorkspace: (caller, workspaceId) => inWorkspace(caller, workspaceId, roleOf),
    audit,
    visibility: everything,
    watch: operation.watch,
    log,
    clock,
    settings: appSettings(settings, uploadDir, seams.strictErrors ?? false),
  })

  const operator = operatorOf(config.auth.mode, replicaId)
  const retention = new AuditRetention({ ...parts, trail: audit, ...config.runtime.audit })
  if (settings.server) {
    await operation.metrics.start()
    sweepScratch(uploadDir)
    await workspaces.deleteEphemeral()
    await fitting.resume()
    jobs.start()
    retention.start()
  }

  return {
    app,
    fetch: (request, as) => app.fetch(request, as === 'operator' ? { operator } : undefined),
    pending: async () => (await jobs.due()) + (await fitting.due()).length,
    async settle({ signal, onProgress }) {
      await jobs.settle(signal, onProgress)
      await fitting.settle(signal, onProgress)
    },
    async close() {
      app.drain()
      await app.idle()
      await jobs.close()
      await fitting.close()
      await auth.close()
      await retention.close()
      await audit.close()
      await network.close()
      await hosts.close()
      await store.close()
    },
  }
}

/** What `/version` tells. */
export function buildOf({ app }: Environment, clock: Clock) {
  return {
    version: app.version ?? packageVersion(),
    commit: app.commit ?? 'unknown',
    buildTime: app.buildTime ?? timestamp(clock),
  }
}

/** What an application takes from the configuration. */
export function appSettings(
  { config, loopback }: RuntimeSettings,
  uploadDir: string,
  strictErrors: boolean,
): AppSettings {
  const { runtime, auth } = config
  const { enabled, capacity, authCapacity, windowMs } = runtime.rateLimit
  return {
    requestIdHeader: runtime.requestIdHeader,
    production: runtime.environment === 'production',
    strictErrors,
    origin: {
      loopback,
      anonymousPasses: isOpen(config),
      publicOrigin: runtime.publicOrigin,
      allowedHosts: runtime.allowedHosts,
      allowedOrigins: runtime.allowedOrigins,
      machineName: hostname(),
      csrfOriginCheck: runtime.csrfOriginCheck,
      browserLogin: usesOidc(auth) && !!auth.oidc?.client,
    },
    trustProxyHeaders: runtime.trustProxyHeaders,
    uploadDir,
    rateLimits: enabled
      ? {
          windowMs,
          capacity: capacity ?? requestsPerWindow,
          directCapacity: capacity ?? (loopback ? ownRequestsPerWindow : requestsPerWindow),
          authCapacity,
        }
      : null,
  }
}

/** Of one client, and of the people of this machine. @see contract: rate limits */
const requestsPerWindow = 600
const ownRequestsPerWindow = 60_000
