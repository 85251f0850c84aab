import type { H3Event } from 'h3'
import type { AuditEvent, AuditTrail } from '../access/audit-trail.ts'
import type { AccessOf } from '../access/row-access.ts'
import type { AuthContext } from '../access/subject.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import { isBearer } from '../auth/bearer-token.ts'
import { type Clock, stopwatch } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { presentableMessage } from '../base/redact.ts'
import type { ErrorCode, WbError } from '../contract/errors.ts'
import type { Route } from '../contract/route.ts'
import { type BodyMemory, type BodyReservation, unlimitedReservation } from './body-memory.ts'
import type { DecodeInThread } from './decode-thread.ts'
import { type ErrorReply, toErrorReply, toWbError } from './error-reply.ts'
import { type HeaderPairs, replaceHeaders } from './headers.ts'
import { checkDeclared, HttpReply } from './http-reply.ts'
import { IncomingRequest } from './incoming-request.ts'
import { openAiError } from './openai-dialect.ts'
import type { OriginRule } from './origin-rule.ts'
import type { RateLimit } from './rate-limit.ts'
import type { StreamCounter } from './stream-counter.ts'
import { createTrace, type Trace } from './trace.ts'

/** Summary of a finished exchange, for logs and metrics. */
export interface ExchangeResult {
  readonly requestId: string
  readonly method: string
  /** Pattern of the route, or `<unmatched>`. */
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

/** Observer of all exchanges, which records metrics and recent errors. */
export interface ExchangeObserver {
  /** Called for every exchange, including failed ones. */
  onResponse(result: ExchangeResult): void
  /** Called for a failed exchange, before `onResponse`. */
  onFailure(result: ExchangeResult, code: ErrorCode, credential: CredentialKind): void
}

/** Kind of credential in a request. */
export type CredentialKind = 'bearer' | 'other' | 'session' | 'none'

/** Dependencies that all routes of an application share. */
export interface AppContext {
  readonly authenticate: Authenticate
  /** The subject of requests to routes without authentication. */
  readonly anonymous: AuthContext
  readonly scopeToWorkspace: (auth: AuthContext, workspaceId: string) => AuthContext | Promise<AuthContext>
  readonly rowAccess: AccessOf
  readonly audit: Pick<AuditTrail, 'draft' | 'note'>
  readonly observer: ExchangeObserver
  readonly log: Log
  readonly clock: Clock
  readonly originRule: OriginRule<IncomingRequest>
  /** Returns the origin at which browsers reach the runtime. */
  readonly siteOrigin: (incoming: IncomingRequest) => string
  /**
   * Returns the address of the client, as reported by trusted proxies. Empty for requests from this process.
   */
  readonly clientAddress: (incoming: IncomingRequest) => string
  /** Returns true for a request that can only come from this machine. */
  readonly isLocal: (incoming: IncomingRequest) => boolean
  /** Like `isLocal`, but returns false if the request may have passed through a proxy on this machine. */
  readonly isDirect: (incoming: IncomingRequest) => boolean
  /**
   * Returns the error for a path that is not available; undefined for other paths. Called before the rest of the
   * request is checked.
   */
  readonly errorForPath: ((path: string) => WbError | undefined) | undefined
  /** Returns the `WWW-Authenticate` header of a 401 response for a path; undefined for the default, `Bearer`. */
  readonly challengeFor: ((path: string, hasCredential: boolean) => string | undefined) | undefined
  /** Additional path of the sign-in callback. */
  readonly callbackPath: string | undefined
  /** Returns the error for requests that match no route; `not_found` by default. */
  readonly unmatchedError: (() => WbError) | undefined
  readonly rateLimit: RateLimit | null
  readonly bodyMemory: BodyMemory
  /** Decodes large bodies in a worker thread. If absent, they are decoded on the event loop. */
  readonly decodeInThread: DecodeInThread | undefined
  readonly openStreams: StreamCounter
  readonly openUploads: StreamCounter
  /** Headers of every response. */
  readonly headers: HeaderPairs
  /** Folder for uploaded files, which exist until their request ends. */
  readonly uploadDir: string
  /** Name of the request ID header, in lower case. */
  readonly requestIdHeader: string
  /** True in tests: an error code that the route does not declare becomes an internal error. */
  readonly strictErrors: boolean
  readonly isDraining: () => boolean
  /** Registers a function to call when the shutdown starts. Returns a function that removes it. */
  readonly onDrain: (end: () => void) => () => void
  readonly requestStarted: () => void
  readonly requestEnded: () => void
}

/** Properties of a route for logs and error responses. `path` is the pattern, such as `/jobs/:jobId`. */
export interface MatchedRoute {
  readonly path: string
  readonly errors: readonly ErrorCode[]
  readonly dialect?: Route['dialect']
}

export type ServeRequest = (event: H3Event) => Promise<HttpReply>

/** A request in progress, with its response headers and what is known about its caller. */
export interface Exchange {
  readonly incoming: IncomingRequest
  readonly trace: Trace
  /** Response headers of this exchange, in addition to the common headers. */
  readonly headers: HeaderPairs
  /** Address of the client, computed on first use. */
  client?: string
  /** The caller, once authenticated. */
  auth?: AuthContext
  workspaceId?: string | undefined
  /** True if the response is an event stream that uses the request body. It releases the body's memory when it ends. */
  isBodyInUse?: boolean
}

/**
 * Wraps the function that responds to a request with what all routes need: trace IDs, error responses, logging,
 * auditing, metrics, and the count of requests in progress.
 */
export function handleExchange(
  context: AppContext,
  route: MatchedRoute,
  respond: (exchange: Exchange) => Promise<HttpReply>,
): ServeRequest {
  return async event => {
    const incoming = new IncomingRequest(event)
    const trace = createTrace(incoming.header(context.requestIdHeader), incoming.header('traceparent'))
    const exchange: Exchange = { incoming, trace, headers: [] }
    // Caches must not store responses below these paths.
    if (hasPrefix(uncachedPrefixes, incoming.path) || hasPrefix(uncachedPrefixes, route.path))
      exchange.headers.push(['cache-control', 'no-store'])
    const elapsedMs = stopwatch()
    const toResult = (status: number) => ({
      requestId: trace.requestId,
      method: incoming.method,
      route: route.path,
      status,
      durationMs: elapsedMs(),
    })
    context.requestStarted()
    try {
      const reply = await respond(exchange)
      const result = toResult(reply.status)
      context.log.debug(result, 'request')
      context.observer.onResponse(result)
      return reply
    } catch (thrown) {
      const error = context.strictErrors ? checkDeclared(thrown, route.errors) : thrown
      const wbError = toWbError(error)
      const result = toResult(wbError.status)
      logFailure(context.log, error, result, incoming.isAbandoned)
      auditRejection(context, exchange, wbError)
      context.observer.onFailure(
        result,
        wbError.code,
        credentialKind(incoming.authorization, incoming.cookie),
      )
      context.observer.onResponse(result)
      return createErrorReply(context, exchange, error, route)
    } finally {
      context.requestEnded()
    }
  }
}

/** Returns the key that identifies the caller: its subject, or its address if anonymous. */
export function callerKey(context: AppContext, { auth, incoming }: Exchange): string {
  const subject = auth?.subject
  return subject ? `${subject.type} ${subject.id}` : `anonymous ${context.clientAddress(incoming)}`
}

/** Opens a memory reservation for the caller, or for the address of the client if there is no verified caller. */
export function reserveBody(context: AppContext, exchange: Exchange): BodyReservation {
  if (!exchange.incoming.isFromOutside) return unlimitedReservation
  const isVerified = exchange.auth?.authenticated ?? false
  return context.bodyMemory.reserve({ caller: callerKey(context, exchange), isVerified })
}

/**
 * Maximum length of a response for which no memory is reserved, in UTF-16 code units or bytes. Such a response fits
 * into the buffers of the operating system.
 */
const smallReplyLength = 16_384

/**
 * Reserves memory for a large response until the client has read it.
 *
 * @throws overloaded  when the caller's unread responses use up its budget. Only for `GET` requests: other requests
 *   may have changed data, so their responses are always sent.
 */
export function reserveReply(context: AppContext, exchange: Exchange, content: string | Uint8Array): void {
  if (content.length <= smallReplyLength) return
  const reservation = reserveBody(context, exchange)
  const { incoming } = exchange
  if (incoming.method === 'GET') reservation.resize(content.length)
  else reservation.force(content.length)
  incoming.onceSent(reservation.release)
}

/** Returns the headers of a response with a body of this media type. */
export function replyHeaders(
  context: AppContext,
  { trace, headers }: Exchange,
  mediaType: string | null,
): HeaderPairs {
  const pairs: HeaderPairs = [...context.headers, ...headers]
  pairs.push([context.requestIdHeader, trace.requestId], ['traceparent', trace.traceparent])
  if (mediaType) pairs.push(['content-type', mediaType])
  return pairs
}

function createErrorReply(
  context: AppContext,
  exchange: Exchange,
  error: unknown,
  { dialect }: MatchedRoute,
): HttpReply {
  const { status, headers, envelope } = toErrorReply(error, exchange.trace.requestId)
  const { path, authorization } = exchange.incoming
  const challenge = status === 401 ? context.challengeFor?.(path, authorization !== null) : undefined
  const errorHeaders = challenge === undefined ? headers : { ...headers, 'www-authenticate': challenge }
  const pairs = replaceHeaders(replyHeaders(context, exchange, 'application/json'), errorHeaders)
  const body = dialect === 'openai' ? openAiError(status, envelope) : envelope
  return new HttpReply(status, pairs, JSON.stringify(body))
}

/**
 * Returns a function for errors that occur after the response has started. The function returns the error response,
 * and logs the error if the client did not cause it.
 */
export function createFailureReporter(log: Log): (thrown: unknown, requestId: string) => ErrorReply {
  return (thrown, requestId) => {
    const failure = toErrorReply(thrown, requestId)
    if (failure.status >= 500) logFailure(log, thrown, { requestId, status: failure.status }, false)
    return failure
  }
}

/** Logs client errors as info, failures of a dependency as warnings, and bugs as errors. */
function logFailure(log: Log, thrown: unknown, result: object, isAbandoned: boolean): void {
  const error = toWbError(thrown)
  const { headers: _headers, hint: _hint, ...facts } = error.facts
  const fields = { ...facts, ...result, code: error.code }
  if (isAbandoned) log.info({ ...fields, abandoned: true }, 'request')
  else if (error.status < 500) log.info(fields, 'request')
  else if (error.code === 'internal_error') log.error({ ...fields, error: error.cause ?? error }, 'request')
  else log.warn({ ...fields, reason: error.message, error: error.cause }, 'request')
}

const apiPrefix = '/api/v1/'
const authPrefix = '/auth/'
const uncachedPrefixes = [authPrefix, '/setup']
/** Prefixes of the paths for which denied requests are audited. */
const auditedPrefixes = [apiPrefix, '/setup/']

function hasPrefix(prefixes: readonly string[], path: string): boolean {
  return prefixes.some(prefix => path.startsWith(prefix))
}

/**
 * Records a rejected request in the audit trail, if it was denied or came from another origin.
 *
 * @see docs/requirements.md#S6-04, docs/security.md#rule-3
 */
function auditRejection(context: AppContext, exchange: Exchange, error: WbError): void {
  const { incoming, trace, auth = context.anonymous, workspaceId } = exchange
  const event = denialEvent(incoming, error) ?? rejectionEvent(incoming, error)
  if (!event) return
  const { auditWorkspaceId = workspaceId } = error.facts as { auditWorkspaceId?: string }
  context.audit.note({ auth, requestId: trace.requestId }, { ...event, workspaceId: auditWorkspaceId })
}

/**
 * Returns the audit event for a missing or invalid credential, or for missing rights. The event contains the ID
 * of a revoked or expired key.
 */
function denialEvent(
  { path, authorization, cookie }: IncomingRequest,
  error: WbError,
): AuditEvent | undefined {
  const { code, message, facts } = error
  if (code !== 'unauthorized' && code !== 'forbidden') return undefined
  if (!hasPrefix(auditedPrefixes, path)) return undefined
  const scope = facts.requiredScope
  return {
    action: 'auth.api_denied',
    outcome: 'denied',
    details: {
      ...(typeof scope === 'string' && { requiredScope: scope }),
      ...(code === 'unauthorized' && { scheme: credentialKind(authorization, cookie) }),
      ...(typeof facts.keyId === 'string' && { keyId: facts.keyId }),
      reason: presentableMessage(message),
    },
  }
}

/** Returns the audit event for a state-changing request from another origin. */
function rejectionEvent({ method, path }: IncomingRequest, { facts }: WbError): AuditEvent | undefined {
  const crossOrigin = facts.crossOrigin
  if (typeof crossOrigin !== 'string') return undefined
  if (!hasPrefix([...auditedPrefixes, authPrefix], path)) return undefined
  return {
    action: 'auth.csrf_rejected',
    outcome: 'failure',
    details: { reason: presentableMessage(`${method} ${path}: ${crossOrigin}`) },
  }
}

/** Returns the kind of credential in a request. */
function credentialKind(authorization: string | null, cookie: string | null): CredentialKind {
  if (authorization !== null) return isBearer(authorization) ? 'bearer' : 'other'
  return cookie === null ? 'none' : 'session'
}
