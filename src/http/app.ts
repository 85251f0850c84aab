import { H3, type H3Event } from 'h3'
import type { AuditTrail } from '../access/audit-trail.ts'
import type { AccessOf } from '../access/row-access.ts'
import type { AuthContext } from '../access/subject.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { isLoopback } from '../base/loopback.ts'
import { auth } from '../contract/auth.ts'
import type { WbError } from '../contract/errors.ts'
import { type AnyHandler, bindRoute, bindUnknownPath } from './bind-route.ts'
import { BodyMemory, type BodyMemoryLimits } from './body-memory.ts'
import type { DecodeInThread } from './decode-thread.ts'
import type { AppContext, ExchangeObserver } from './exchange.ts'
import { commonHeaders } from './headers.ts'
import type { IncomingRequest, LocalFacts } from './incoming-request.ts'
import {
  createOriginRule,
  hostNameOf,
  type OriginRuleSettings,
  originOfTarget,
  originOfUrl,
} from './origin-rule.ts'
import { isForwarded, ProxyResolver, type TrustedProxies } from './proxy-resolver.ts'
import { MemoryBuckets, RateLimit, type RateLimits } from './rate-limit.ts'
import type { RouteHandlers, RouteTopics } from './route-topics.ts'
import { StreamCounter } from './stream-counter.ts'

export interface AppSettings {
  /** Name of the header that carries the request ID, in requests and responses. */
  readonly requestIdHeader: string
  /** True in a production environment. Responses then tell browsers to use HTTPS only. */
  readonly production: boolean
  /** True in tests: an error code that the route does not declare becomes an internal error. */
  readonly strictErrors: boolean
  readonly origin: OriginRuleSettings
  readonly trustProxyHeaders: TrustedProxies
  /** Folder for uploaded files, which exist until their request ends. */
  readonly uploadDir: string
  /** Limits on requests per client; null for no limit. */
  readonly rateLimits: RateLimits | null
  readonly bodyMemory: BodyMemoryLimits
  /** Maximum number of event streams that one caller may have open. */
  readonly streamsPerCaller: number
  /** Maximum number of files that one caller may upload at the same time. */
  readonly uploadsPerCaller: number
}

export interface AppDependencies<S extends RouteTopics> {
  readonly api: S
  readonly handlers: RouteHandlers<S>
  readonly authenticate: Authenticate
  /** The subject of requests to routes without authentication. */
  readonly anonymous: AuthContext
  /** Returns the caller with the rights that it has in one workspace. */
  readonly scopeToWorkspace: (auth: AuthContext, workspaceId: string) => AuthContext | Promise<AuthContext>
  readonly audit: Pick<AuditTrail, 'draft' | 'note'>
  readonly rowAccess: AccessOf
  /** Observer of all exchanges. */
  readonly observer?: ExchangeObserver
  /** Decodes large bodies in a worker thread. If absent, they are decoded on the event loop. */
  readonly decodeInThread?: DecodeInThread
  readonly log: Log
  readonly clock: Clock
  readonly settings: AppSettings
  /**
   * Returns the error for a path that is not available; undefined for other paths. Called before the rest of the
   * request is checked.
   */
  readonly errorForPath?: (path: string) => WbError | undefined
  /** Returns the `WWW-Authenticate` header of a 401 response for a path; undefined for the default, `Bearer`. */
  readonly challengeFor?: (path: string, hasCredential: boolean) => string | undefined
  /** Additional path of the sign-in callback. */
  readonly callbackPath?: string | undefined
  /** Returns the error for requests that match no route; `not_found` by default. */
  readonly unmatchedError?: () => WbError
}

/** The HTTP application: all routes, ready to handle requests. */
export interface App {
  /** Handles a request from this process, without a connection. */
  fetch(request: Request, localFacts?: LocalFacts): Promise<Response>
  /** Application object for h3's `toNodeHandler`. */
  readonly h3: H3
  readonly settings: AppSettings
  readonly log: Log
  /** Rejects all further requests except the liveness check, and ends the open event streams. */
  drain(): void
  /** Resolves when no request is in progress. */
  idle(): Promise<void>
  readonly inFlight: number
}

const noObserver: ExchangeObserver = { onResponse() {}, onFailure() {} }

/** Origin of the runtime for requests without a `Host` header. */
const defaultOrigin = 'http://localhost'

/**
 * Creates the application with all declared routes. It does not use h3 middleware, because each middleware reduces
 * the throughput by a tenth.
 */
export function createApp<S extends RouteTopics>(deps: AppDependencies<S>): App {
  const inFlight = new RequestCounter()
  let draining = false
  /** Functions that end the open event streams. */
  const drainCallbacks = new Set<() => void>()
  const { settings, clock } = deps
  const { publicOrigin } = settings.origin
  const { rateLimits } = settings
  const proxies = new ProxyResolver(settings.trustProxyHeaders)
  const targetOf = (incoming: IncomingRequest) => proxies.targetOf(incoming)
  const isLocal = (incoming: IncomingRequest) => settings.origin.loopback && !isForwarded(incoming)
  const mayHaveProxy = proxies.trustsAny || Boolean(publicOrigin)
  const context: AppContext = {
    authenticate: deps.authenticate,
    anonymous: deps.anonymous,
    scopeToWorkspace: deps.scopeToWorkspace,
    rowAccess: deps.rowAccess,
    audit: deps.audit,
    observer: deps.observer ?? noObserver,
    log: deps.log,
    clock,
    originRule: createOriginRule(settings.origin, targetOf),
    siteOrigin: publicOrigin
      ? () => originOfUrl(publicOrigin)
      : incoming => originOfTarget(targetOf(incoming)) || defaultOrigin,
    clientAddress: incoming => proxies.clientAddress(incoming),
    isLocal,
    isDirect: incoming => !mayHaveProxy && isLocal(incoming) && hasLoopbackHost(incoming),
    errorForPath: deps.errorForPath,
    challengeFor: deps.challengeFor,
    callbackPath: deps.callbackPath,
    unmatchedError: deps.unmatchedError,
    rateLimit: rateLimits && new RateLimit(rateLimits, new MemoryBuckets({ ...rateLimits, clock })),
    bodyMemory: new BodyMemory(settings.bodyMemory),
    decodeInThread: deps.decodeInThread,
    openStreams: new StreamCounter('streams', settings.streamsPerCaller),
    openUploads: new StreamCounter('uploads', settings.uploadsPerCaller),
    headers: commonHeaders(settings.production),
    requestIdHeader: settings.requestIdHeader.toLowerCase(),
    uploadDir: settings.uploadDir,
    strictErrors: settings.strictErrors,
    isDraining: () => draining,
    onDrain(end) {
      drainCallbacks.add(end)
      return () => drainCallbacks.delete(end)
    },
    requestStarted: () => inFlight.start(),
    requestEnded: () => inFlight.end(),
  }
  // A request that matches no route can still be for the additional path of the sign-in callback.
  const handleUnknownPath = bindUnknownPath(context)
  let callback = handleUnknownPath
  const isCallback = (event: H3Event) =>
    event.req.method === 'GET' && event.url.pathname === deps.callbackPath
  const h3 = new H3({
    silent: true,
    allowMalformedURL: true,
    onError: (_error, event) => (isCallback(event) ? callback : handleUnknownPath)(event),
  })
  for (const [topic, routes] of Object.entries(deps.api))
    for (const [operation, route] of Object.entries(routes)) {
      const handler = (deps.handlers[topic] as Readonly<Record<string, AnyHandler>>)[operation]!
      const serve = bindRoute(context, route, handler, { topic, operation })
      h3.on(route.method, route.path, serve)
      if (route === auth.callback) callback = serve
    }

  return {
    h3,
    settings,
    log: deps.log,
    async fetch(request, localFacts) {
      return h3.request(request, undefined, localFacts && { ...localFacts })
    },
    drain() {
      draining = true
      for (const end of drainCallbacks) end()
    },
    idle: () => inFlight.idle(),
    get inFlight() {
      return inFlight.count
    },
  }
}

/** Returns true for a request to a loopback name or address. Proxies often keep the host that their client used. */
function hasLoopbackHost({ isFromOutside, host }: IncomingRequest): boolean {
  return !isFromOutside || isLoopback(hostNameOf(host ?? ''))
}

/** Counts the requests in progress, and waits until there are none. */
class RequestCounter {
  count = 0
  #waiting: (() => void)[] = []

  start(): void {
    this.count++
  }

  end(): void {
    this.count--
    if (this.count > 0) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  idle(): Promise<void> {
    return this.count === 0 ? Promise.resolve() : new Promise(resolve => this.#waiting.push(resolve))
  }
}
