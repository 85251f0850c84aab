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
import { type BodyHold, type BodyMemory, unlimitedHold } from './body-memory.ts'
import type { DecodeElsewhere } from './decoding.ts'
import { asWbError, type Failure, failureOf } from './envelope.ts'
import { type HeaderPairs, withHeaders } from './headers.ts'
import { Incoming } from './incoming.ts'
import type { OpenStreams } from './open-streams.ts'
import { openAiError } from './openai-dialect.ts'
import type { OriginRule } from './origin.ts'
import type { RateLimit } from './rate-limit.ts'
import { checkDeclared, Reply } from './reply.ts'
import { type Trace, traceOf } from './trace.ts'

/** Facts about an exchange once its status is known. */
export interface Answered {
  readonly requestId: string
  readonly method: string
  /** Pattern of the route, or `<unmatched>`. */
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

/** Observer of all exchanges, for metrics and for the operator. */
export interface Watch {
  answered(exchange: Answered): void
  /** Called for a failed exchange before its response is sent. */
  failed(exchange: Answered, code: ErrorCode, credential: Credential): void
}

/** Kind of credential in a request. */
export type Credential = 'bearer' | 'other' | 'session' | 'none'

/** Dependencies that all routes of an application share. */
export interface Shared {
  readonly authenticate: Authenticate
  /** The subject of requests to routes without authentication. */
  readonly stranger: AuthContext
  readonly inWorkspace: (auth: AuthContext, workspaceId: string) => AuthContext | Promise<AuthContext>
  readonly visibility: (auth: AuthContext, request: Request) => Visibility | Promise<Visibility>
  readonly audit: Pick<AuditTrail, 'draft' | 'note'>
  readonly watch: Watch
  readonly log: Log
  readonly clock: Clock
  readonly originRule: OriginRule<Incoming>
  /** Returns the origin at which a browser reaches the runtime. */
  readonly siteOrigin: (incoming: Incoming) => string
  /**
   * Returns the address of the client, looking behind trusted proxies; empty for requests of this process.
   */
  readonly clientOf: (incoming: Incoming) => string
  /** Returns true for a request that can only come from this machine. */
  readonly isLocal: (incoming: Incoming) => boolean
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
  readonly decodeElsewhere: DecodeElsewhere | undefined
  readonly openStreams: OpenStreams
  readonly openUploads: OpenStreams
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
export interface Matched {
  readonly path: string
  readonly errors: readonly ErrorCode[]
  readonly dialect?: Route['dialect']
}

export type Serve = (event: H3Event) => Promise<Reply>

/** One request in progress, and the facts collected about it. */
export interface Exchange {
  readonly incoming: Incoming
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
export function exchange(
  shared: Shared,
  route: Matched,
  answer: (current: Exchange) => Promise<Reply>,
): Serve {
  return async event => {
    const incoming = new Incoming(event)
    const trace = traceOf(incoming.header(shared.requestIdHeader), incoming.header('traceparent'))
    const current: Exchange = { incoming, trace, headers: [] }
    // Responses below these paths must not be cached.
    if (isBelow(uncachedPaths, incoming.path) || isBelow(uncachedPaths, route.path))
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
      const known = asWbError(error)
      const facts = factsOf(known.status)
      logFailure(shared.log, error, facts, incoming.isAbandoned)
      auditRefusal(shared, current, known)
      shared.watch.failed(facts, known.code, schemeOf(incoming.authorization, incoming.cookie))
      shared.watch.answered(facts)
      return refusal(shared, current, error, route)
    } finally {
      shared.ended()
    }
  }
}

/** Returns the key that identifies the caller: its subject, or its address if anonymous. */
export function callerOf(shared: Shared, { auth, incoming }: Exchange): string {
  const subject = auth?.subject
  return subject ? `${subject.type} ${subject.id}` : `anonymous ${shared.clientOf(incoming)}`
}

/** Opens a memory reservation for bodies of the caller, identified as far as known at this point. */
export function holdBody(shared: Shared, current: Exchange): BodyHold {
  if (!current.incoming.isFromOutside) return unlimitedHold
  const isVerified = current.auth?.authenticated ?? false
  return shared.bodyMemory.hold({ caller: callerOf(shared, current), isVerified })
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
export function holdReply(shared: Shared, current: Exchange, content: string | Uint8Array): void {
  if (content.length <= smallReplyLength) return
  const hold = holdBody(shared, current)
  const { incoming } = current
  if (incoming.method === 'GET') hold.resize(content.length)
  else hold.force(content.length)
  incoming.onceSent(hold.release)
}

/** Returns the headers of a response with a body of this media type. */
export function headersOf(
  shared: Shared,
  { trace, headers }: Exchange,
  mediaType: string | null,
): HeaderPairs {
  const pairs: HeaderPairs = [...shared.headers, ...headers]
  pairs.push([shared.requestIdHeader, trace.requestId], ['traceparent', trace.traceparent])
  if (mediaType) pairs.push(['content-type', mediaType])
  return pairs
}

function refusal(shared: Shared, current: Exchange, error: unknown, { dialect }: Matched): Reply {
  const { status, headers, envelope } = failureOf(error, current.trace.requestId)
  const { path, authorization } = current.incoming
  const challenge = status === 401 ? shared.challengeOf?.(path, authorization !== null) : undefined
  const more = challenge === undefined ? headers : { ...headers, 'www-authenticate': challenge }
  const pairs = withHeaders(headersOf(shared, current, 'application/json'), more)
  const body = dialect === 'openai' ? openAiError(status, envelope) : envelope
  return new Reply(status, pairs, JSON.stringify(body))
}

/**
 * Returns a function that converts an error after the response has started, and logs it if the client did not
 * cause it.
 */
export function failureTeller(log: Log): (thrown: unknown, requestId: string) => Failure {
  return (thrown, requestId) => {
    const failure = failureOf(thrown, requestId)
    if (failure.status >= 500) logFailure(log, thrown, { requestId, status: failure.status }, false)
    return failure
  }
}

/** Logs errors of the client as info, errors of a dependency as a warning, and defects as an error. */
function logFailure(log: Log, thrown: unknown, facts: object, isAbandoned: boolean): void {
  const error = asWbError(thrown)
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

function isBelow(prefixes: readonly string[], path: string): boolean {
  return prefixes.some(prefix => path.startsWith(prefix))
}

/**
 * Records a refused request in the audit trail.
 *
 * @see docs/requirements.md#S6-04, docs/security.md#rule-3
 */
function auditRefusal(shared: Shared, current: Exchange, error: WbError): void {
  const { incoming, trace, auth = shared.stranger, workspaceId } = current
  const event = denialOf(incoming, error) ?? rejectionOf(incoming, error)
  if (!event) return
  const { ofWorkspace = workspaceId } = error.facts as { ofWorkspace?: string }
  shared.audit.note({ auth, requestId: trace.requestId }, { ...event, workspaceId: ofWorkspace })
}

/**
 * Returns the audit event for a missing or invalid credential, or a missing right. It names a key that is no
 * longer valid.
 */
function denialOf({ path, authorization, cookie }: Incoming, error: WbError): AuditEvent | undefined {
  const { code, message, facts } = error
  if (code !== 'unauthorized' && code !== 'forbidden') return undefined
  if (!isBelow(auditedPaths, path)) return undefined
  const scope = facts.requiredScope
  return {
    action: 'auth.api_denied',
    outcome: 'denied',
    details: {
      ...(typeof scope === 'string' && { requiredScope: scope }),
      ...(code === 'unauthorized' && { scheme: schemeOf(authorization, cookie) }),
      ...(typeof facts.keyId === 'string' && { keyId: facts.keyId }),
      reason: presentableMessage(message),
    },
  }
}

/** Returns the audit event for a state-changing request from a page of another origin. */
function rejectionOf({ method, path }: Incoming, { facts }: WbError): AuditEvent | undefined {
  const why = facts.crossOrigin
  if (typeof why !== 'string') return undefined
  if (!isBelow([...auditedPaths, authPaths], path)) return undefined
  return {
    action: 'auth.csrf_rejected',
    outcome: 'failure',
    details: { reason: presentableMessage(`${method} ${path}: ${why}`) },
  }
}

/** Returns the kind of credential, without any of its characters. */
function schemeOf(authorization: string | null, cookie: string | null): Credential {
  if (authorization !== null) return isBearer(authorization) ? 'bearer' : 'other'
  return cookie === null ? 'none' : 'session'
}
