import { H3, type H3Event } from 'h3'
import type { AuditTrail } from '../access/audit-trail.ts'
import type { AuthContext } from '../access/subject.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { auth } from '../contract/auth.ts'
import type { WbError } from '../contract/errors.ts'
import type { Visibility } from '../storage/visibility.ts'
import { type AnyHandler, bindRoute, bindUnknownPath } from './bind-route.ts'
import { BodyMemory, type BodyMemoryLimits } from './body-memory.ts'
import type { DecodeInThread } from './decode-thread.ts'
import type { AppContext, ExchangeObserver } from './exchange.ts'
import { commonHeaders } from './headers.ts'
import type { IncomingRequest, LocalFacts } from './incoming-request.ts'
import { createOriginRule, type OriginRuleSettings, originOfTarget, originOfUrl } from './origin-rule.ts'
import { isForwarded, ProxyResolver, type TrustedProxies } from './proxy-resolver.ts'
import { MemoryBuckets, RateLimit, type RateLimits } from './rate-limit.ts'
import type { RouteHandlers, RouteTopics } from './route-topics.ts'
import { StreamCounter } from './stream-counter.ts'

export interface AppSettings {
  /** Name of the header that carries the request ID, in requests and responses. */
  readonly requestIdHeader: string
  /** True if the runtime serves a production environment. Responses then tell browsers to use HTTPS only. */
  readonly production: boolean
  /** True in tests: an error code that the route does not declare becomes an internal error. */
  readonly strictErrors: boolean
  readonly origin: OriginRuleSettings
  readonly trustProxyHeaders: TrustedProxies
  /** Folder for uploaded files while their request is handled. */
  readonly uploadDir: string
  /** Limits on requests per client; null for no limit. */
  readonly rateLimits: RateLimits | null
  readonly bodyMemory: BodyMemoryLimits
  /** Maximum number of event streams that one caller may have open. */
  readonly streamsPerCaller: number
  /** Maximum number of files that one caller may upload at the same time. */
  readonly uploadsPerCaller: number
}

export interface AppParts<S extends RouteTopics> {
  readonly api: S
  readonly handlers: RouteHandlers<S>
  readonly authenticate: Authenticate
  /** The subject of requests to routes without authentication. */
  readonly anonymous: AuthContext
  /** Returns a caller with the rights that it has in one workspace. */
  readonly scopeToWorkspace: (auth: AuthContext, workspaceId: string) => AuthContext | Promise<AuthContext>
  readonly audit: Pick<AuditTrail, 'draft' | 'note'>
  /** Returns which rows a caller may see. */
  readonly visibility: (auth: AuthContext, request: Request) => Visibility | Promise<Visibility>
  /** Observer of all exchanges. */
  readonly watch?: ExchangeObserver
  /** Decodes large bodies off the event loop. Without it, the event loop decodes them. */
  readonly decodeInThread?: DecodeInThread
  readonly log: Log
  readonly clock: Clock
  readonly settings: AppSettings
  /**
   * Returns the error for a path that is not served, checked before the rest of the request; undefined if the
   * path is served.
   */
  readonly refusalOf?: (path: string) => WbError | undefined
  /** Returns the `WWW-Authenticate` header of a 401 response at a path; undefined for the scheme alone. */
  readonly challengeOf?: (path: string, hasCredential: boolean) => string | undefined
  /** Second path of the login callback, unless another route has that path. */
  readonly callbackPath?: string | undefined
  /** Returns the error for requests that match no route. The default is `not_found`. */
  readonly unmatched?: () => WbError
}

/** All routes as one function from request to response. */
export interface App {
  /** Handles a request made by this process, not over a connection. */
  fetch(request: Request, within?: LocalFacts): Promise<Response>
  /** Router for `toNodeHandler`. */
  readonly h3: H3
  readonly settings: AppSettings
  readonly log: Log
  /** Refuses all further requests except the liveness check. */
  drain(): void
  /** Resolves when no request is in progress. */
  idle(): Promise<void>
  readonly inFlight: number
}

const noObserver: ExchangeObserver = { answered() {}, failed() {} }

/** Origin for a request without a `Host` header. */
const defaultOrigin = 'http://localhost'

/**
 * Creates the application, with one route per declaration. It uses no middleware, because each one costs a
 * tenth of the throughput.
 */
export function createApp<S extends RouteTopics>(parts: AppParts<S>): App {
  const work = new InFlight()
  let draining = false
  /** Functions that end the open endless responses. */
  const streams = new Set<() => void>()
  const { settings, clock } = parts
  const { publicOrigin } = settings.origin
  const { rateLimits } = settings
  const proxies = new ProxyResolver(settings.trustProxyHeaders)
  const reachedBy = (incoming: IncomingRequest) => proxies.reachedBy(incoming)
  const shared: AppContext = {
    authenticate: parts.authenticate,
    anonymous: parts.anonymous,
    scopeToWorkspace: parts.scopeToWorkspace,
    visibility: parts.visibility,
    audit: parts.audit,
    watch: parts.watch ?? noObserver,
    log: parts.log,
    clock,
    originRule: createOriginRule(settings.origin, reachedBy),
    siteOrigin: publicOrigin
      ? () => originOfUrl(publicOrigin)
      : incoming => originOfTarget(reachedBy(incoming)) || defaultOrigin,
    clientOf: incoming => proxies.clientOf(incoming),
    isLocal: incoming => settings.origin.loopback && !isForwarded(incoming),
    refusalOf: parts.refusalOf,
    challengeOf: parts.challengeOf,
    callbackPath: parts.callbackPath,
    unmatched: parts.unmatched,
    rateLimit: rateLimits && new RateLimit(rateLimits, new MemoryBuckets({ ...rateLimits, clock })),
    bodyMemory: new BodyMemory(settings.bodyMemory),
    decodeInThread: parts.decodeInThread,
    openStreams: new StreamCounter('streams', settings.streamsPerCaller),
    openUploads: new StreamCounter('uploads', settings.uploadsPerCaller),
    headers: commonHeaders(settings.production),
    requestIdHeader: settings.requestIdHeader.toLowerCase(),
    uploadDir: settings.uploadDir,
    strictErrors: settings.strictErrors,
    isDraining: () => draining,
    onDrain(end) {
      streams.add(end)
      return () => streams.delete(end)
    },
    began: () => work.began(),
    ended: () => work.ended(),
  }
  const unknown = bindUnknownPath(shared)
  let callback = unknown
  const isCallback = (event: H3Event) =>
    event.req.method === 'GET' && event.url.pathname === parts.callbackPath
  const h3 = new H3({
    silent: true,
    allowMalformedURL: true,
    onError: (_error, event) => (isCallback(event) ? callback : unknown)(event),
  })
  for (const [topic, routes] of Object.entries(parts.api))
    for (const [operation, route] of Object.entries(routes)) {
      const handler = (parts.handlers[topic] as Readonly<Record<string, AnyHandler>>)[operation]!
      const serve = bindRoute(shared, route, handler, { topic, operation })
      h3.on(route.method, route.path, serve)
      if (route === auth.callback) callback = serve
    }

  return {
    h3,
    settings,
    log: parts.log,
    async fetch(request, within) {
      return h3.request(request, undefined, within && { ...within })
    },
    drain() {
      draining = true
      for (const end of streams) end()
    },
    idle: () => work.idle(),
    get inFlight() {
      return work.count
    },
  }
}

class InFlight {
  count = 0
  #waiting: (() => void)[] = []

  began(): void {
    this.count++
  }

  ended(): void {
    this.count--
    if (this.count > 0) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  idle(): Promise<void> {
    return this.count === 0 ? Promise.resolve() : new Promise(resolve => this.#waiting.push(resolve))
  }
}
