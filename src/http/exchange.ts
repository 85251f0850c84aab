import type { H3Event } from 'h3'
import type { AuditEvent, AuditTrail } from '../access/audit-trail.ts'
import type { AuthContext } from '../access/subject.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import { isBearer } from '../auth/bearer-token.ts'
import { type Clock, stopwatch } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { presentableMessage } from '../base/redact.ts'
import type { ErrorCode, WbError } from '../contract/errors.ts'
import type { Route } from '../contract/route.ts'
import type { Visibility } from '../storage/visibility.ts'
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

/** Facts about an exchange once its status is known. */
export interface ExchangeResult {
  readonly requestId: string
  readonly method: string
  /** Pattern of the route, or `<unmatched>`. */
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

/** Observer of all exchanges, for metrics and for the operator. */
export interface ExchangeObserver {
  answered(exchange: ExchangeResult): void
  /** Called for a failed exchange before its response is sent. */
  failed(exchange: ExchangeResult, code: ErrorCode, credential: CredentialKind): void
}

/** Kind of credential in a request. */
export type CredentialKind = 'bearer' | 'other' | 'session' | 'none'

/** Dependencies that all routes of an application share. */
export interface AppContext {
  readonly authenticate: Authenticate
  /** The subject of requests to routes without authentication. */
  readonly anonymous: AuthContext
  readonly scopeToWorkspace: (auth: AuthContext, workspaceId: string) => AuthContext | Promise<AuthContext>
  readonly visibility: (auth: AuthContext, request: Request) => Visibility | Promise<Visibility>
  readonly audit: Pick<AuditTrail, 'draft' | 'note'>
  readonly watch: ExchangeObserver
  readonly log: Log
  readonly clock: Clock
  readonly originRule: OriginRule<IncomingRequest>
  /** Returns the origin at which a browser reaches the runtime. */
  readonly siteOrigin: (incoming: IncomingRequest) => string
  /**
   * Returns the address of the client, looking behind trusted proxies; empty for requests of this process.
   */
  readonly clientOf: (incoming: IncomingRequest) => string
  /** Returns true for a request that can only come from this machine. */
  readonly isLocal: (incoming: IncomingRequest) => boolean
  /**
   * Returns the error for a path that is not served, checked before the rest of the request; undefined if the
   * path is served.
   */
  readonly refusalOf: ((path: string) => WbError | undefined) | undefined
  /** Returns the `WWW-Authenticate` header of a 401 response at a path; undefined for the scheme alone. */
  readonly challengeOf: ((path: string, hasCredential: boolean) => string | undefined) | undefined
  /** Second path of the login callback. */
  readonly callbackPath: string | undefined
  /** Returns the error for requests that match no route. The default is `not_found`. */
  readonly unmatched: (() => WbError) | undefined
  readonly rateLimit: RateLimit | null
  readonly bodyMemory: BodyMemory
  /** Decodes large bodies off the event loop. Without it, the event loop decodes them. */
  readonly decodeInThread: DecodeInThread | undefined
  readonly openStreams: StreamCounter
  readonly openUploads: StreamCounter
  /** Headers of every response. */
  readonly headers: HeaderPairs
  /** Folder for uploaded files while their request is handled. */
  readonly uploadDir: string
  /** Header name in lower case. */
  readonly requestIdHeader: string
  /** True if an error code that its route does not declare is a defect. */
  readonly strictErrors: boolean
  readonly isDraining: () => boolean
  /** Registers a function to call when the runtime starts to drain. Returns a function that removes it. */
  readonly onDrain: (end: () => void) => () => void
  readonly began: () => void
  readonly ended: () => void
}

/** Parts of a route that logs and error responses need. `path` is the pattern. */
export interface MatchedRoute {
  readonly path: string
  readonly errors: readonly ErrorCode[]
  readonly dialect?: Route['dialect']
}

export type ServeRequest = (event: H3Event) => Promise<HttpReply>

/** One request in progress, and the facts collected about it. */
export interface Exchange {
  readonly incoming: IncomingRequest
  readonly trace: Trace
  /** Response headers in addition to those of every response. */
  readonly headers: HeaderPairs
  /** Address of the client, computed on first use. */
  client?: string
  /** The caller, once authenticated. */
  auth?: AuthContext
  workspaceId?: string | undefined
  /** Set if the event stream of the response releases the memory of the body. */
  isBodyInUse?: boolean
}

/**
 * Handles one request and its response: trace, error envelope, log, audit, and count of requests in progress.
 */
export function handleExchange(
  shared: AppContext,
  route: MatchedRoute,
  answer: (current: Exchange) => Promise<HttpReply>,
): ServeRequest {
  return async event => {
    const incoming = new IncomingRequest(event)
    const trace = createTrace(incoming.header(shared.requestIdHeader), incoming.header('traceparent'))
    const current: Exchange = { incoming, trace, headers: [] }
    // Responses below these paths must not be cached.
    if (isUnderPrefix(uncachedPaths, incoming.path) || isUnderPrefix(uncachedPaths, route.path))
      current.headers.push(['cache-control', 'no-store'])
    const elapsedMs = stopwatch()
    const factsOf = (status: number) => ({
      requestId: trace.requestId,
      method: incoming.method,
      route: route.path,
      status,
      durationMs: elapsedMs(),
    })
    shared.began()
    try {
      const reply = await answer(current)
      const facts = factsOf(reply.status)
      shared.log.debug(facts, 'request')
      shared.watch.answered(facts)
      return reply
    } catch (thrown) {
      const error = shared.strictErrors ? checkDeclared(thrown, route.errors) : thrown
      const known = toWbError(error)
      const facts = factsOf(known.status)
      logFailure(shared.log, error, facts, incoming.isAbandoned)
      auditRefusal(shared, current, known)
      shared.watch.failed(facts, known.code, credentialKind(incoming.authorization, incoming.cookie))
      shared.watch.answered(facts)
      return createErrorReply(shared, current, error, route)
    } finally {
      shared.ended()
    }
  }
}

/** Returns the key that identifies the caller: its subject, or its address if anonymous. */
export function callerKey(shared: AppContext, { auth, incoming }: Exchange): string {
  const subject = auth?.subject
  return subject ? `${subject.type} ${subject.id}` : `anonymous ${shared.clientOf(incoming)}`
}

/** Opens a memory reservation for bodies of the caller, identified as far as known at this point. */
export function reserveBody(shared: AppContext, current: Exchange): BodyReservation {
  if (!current.incoming.isFromOutside) return unlimitedReservation
  const isVerified = current.auth?.authenticated ?? false
  return shared.bodyMemory.reserve({ caller: callerKey(shared, current), isVerified })
}

/**
 * Maximum size of a response that is not counted, because it fits into the buffers of the operating system.
 * In UTF-16 code units or bytes.
 */
const smallReplyLength = 16_384

/**
 * Reserves memory for a large response until its reader has taken it.
 *
 * @throws overloaded  when the caller reads too slowly, for `GET` only, because other requests may have
 *   changed data
 */
export function reserveReply(shared: AppContext, current: Exchange, content: string | Uint8Array): void {
  if (content.length <= smallReplyLength) return
  const hold = reserveBody(shared, current)
  const { incoming } = current
  if (incoming.method === 'GET') hold.resize(content.length)
  else hold.force(content.length)
  incoming.onceSent(hold.release)
}

/** Returns the headers of a response with a body of this media type. */
export function replyHeaders(
  shared: AppContext,
  { trace, headers }: Exchange,
  mediaType: string | null,
): HeaderPairs {
  const pairs: HeaderPairs = [...shared.headers, ...headers]
  pairs.push([shared.requestIdHeader, trace.requestId], ['traceparent', trace.traceparent])
  if (mediaType) pairs.push(['content-type', mediaType])
  return pairs
}

function createErrorReply(
  shared: AppContext,
  current: Exchange,
  error: unknown,
  { dialect }: MatchedRoute,
): HttpReply {
  const { status, headers, envelope } = toErrorReply(error, current.trace.requestId)
  const { path, authorization } = current.incoming
  const challenge = status === 401 ? shared.challengeOf?.(path, authorization !== null) : undefined
  const more = challenge === undefined ? headers : { ...headers, 'www-authenticate': challenge }
  const pairs = replaceHeaders(replyHeaders(shared, current, 'application/json'), more)
  const body = dialect === 'openai' ? openAiError(status, envelope) : envelope
  return new HttpReply(status, pairs, JSON.stringify(body))
}

/**
 * Returns a function that converts an error after the response has started, and logs it if the client did not
 * cause it.
 */
export function createFailureReporter(log: Log): (thrown: unknown, requestId: string) => ErrorReply {
  return (thrown, requestId) => {
    const failure = toErrorReply(thrown, requestId)
    if (failure.status >= 500) logFailure(log, thrown, { requestId, status: failure.status }, false)
    return failure
  }
}

/** Logs errors of the client as info, errors of a dependency as a warning, and defects as an error. */
function logFailure(log: Log, thrown: unknown, facts: object, isAbandoned: boolean): void {
  const error = toWbError(thrown)
  const { headers: _headers, hint: _hint, ...known } = error.facts
  const failure = { ...known, ...facts, code: error.code }
  if (isAbandoned) log.info({ ...failure, abandoned: true }, 'request')
  else if (error.status < 500) log.info(failure, 'request')
  else if (error.code === 'internal_error') log.error({ ...failure, error: error.cause ?? error }, 'request')
  else log.warn({ ...failure, reason: error.message, error: error.cause }, 'request')
}

const apiPaths = '/api/v1/'
const authPaths = '/auth/'
const uncachedPaths = [authPaths, '/setup']
/** Paths where refusals are audited. */
const auditedPaths = [apiPaths, '/setup/']

function isUnderPrefix(prefixes: readonly string[], path: string): boolean {
  return prefixes.some(prefix => path.startsWith(prefix))
}

/**
 * Records a refused request in the audit trail.
 *
 * @see docs/requirements.md#S6-04, docs/security.md#rule-3
 */
function auditRefusal(shared: AppContext, current: Exchange, error: WbError): void {
  const { incoming, trace, auth = shared.anonymous, workspaceId } = current
  const event = denialEvent(incoming, error) ?? rejectionEvent(incoming, error)
  if (!event) return
  const { ofWorkspace = workspaceId } = error.facts as { ofWorkspace?: string }
  shared.audit.note({ auth, requestId: trace.requestId }, { ...event, workspaceId: ofWorkspace })
}

/**
 * Returns the audit event for a missing or invalid credential, or a missing right. It names a key that is no
 * longer valid.
 */
function denialEvent(
  { path, authorization, cookie }: IncomingRequest,
  error: WbError,
): AuditEvent | undefined {
  const { code, message, facts } = error
  if (code !== 'unauthorized' && code !== 'forbidden') return undefined
  if (!isUnderPrefix(auditedPaths, path)) return undefined
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

/** Returns the audit event for a state-changing request from a page of another origin. */
function rejectionEvent({ method, path }: IncomingRequest, { facts }: WbError): AuditEvent | undefined {
  const why = facts.crossOrigin
  if (typeof why !== 'string') return undefined
  if (!isUnderPrefix([...auditedPaths, authPaths], path)) return undefined
  return {
    action: 'auth.csrf_rejected',
    outcome: 'failure',
    details: { reason: presentableMessage(`${method} ${path}: ${why}`) },
  }
}

/** Returns the kind of credential, without any of its characters. */
function credentialKind(authorization: string | null, cookie: string | null): CredentialKind {
  if (authorization !== null) return isBearer(authorization) ? 'bearer' : 'other'
  return cookie === null ? 'none' : 'session'
}
