import type { H3Event } from 'h3'
import type { AuditTrail, Event } from '../access/audit.ts'
import type { AuthContext } from '../access/subject.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import { isBearer } from '../auth/bearer.ts'
import { type Clock, stopwatch } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { presentable } from '../base/redact.ts'
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

/** What is known of an exchange once its response is. */
export interface Answered {
  readonly requestId: string
  readonly method: string
  /** Pattern of the route, or `<unmatched>`. */
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

/** Is told of every exchange, for numbers and for the operator. */
export interface Watch {
  answered(exchange: Answered): void
  /** Of one that failed, before it is answered. */
  failed(exchange: Answered, code: ErrorCode, credential: Credential): void
}

/** How a credential was presented. */
export type Credential = 'bearer' | 'other' | 'session' | 'none'

/** What all routes of an application share. */
export interface Shared {
  readonly authenticate: Authenticate
  /** Who asks where nobody is asked who they are. */
  readonly stranger: AuthContext
  readonly inWorkspace: (auth: AuthContext, workspaceId: string) => AuthContext | Promise<AuthContext>
  readonly visibility: (auth: AuthContext, request: Request) => Visibility | Promise<Visibility>
  readonly audit: Pick<AuditTrail, 'draft' | 'note'>
  readonly watch: Watch
  readonly log: Log
  readonly clock: Clock
  readonly originRule: OriginRule<Incoming>
  /** Scheme, host and port under which a browser sees the runtime. */
  readonly siteOrigin: (incoming: Incoming) => string
  /** Address of the client, behind whatever proxies are trusted; empty within this process. */
  readonly clientOf: (incoming: Incoming) => string
  /** Nobody but this machine can have sent it. */
  readonly isLocal: (incoming: Incoming) => boolean
  /** Returns the refusal of a path, before the rest of the request is checked; undefined if the path is served. */
  readonly refusalOf: ((path: string) => WbError | undefined) | undefined
  /** Returns `WWW-Authenticate` of a 401 at a path; undefined for the scheme alone. */
  readonly challengeOf: ((path: string, hasCredential: boolean) => string | undefined) | undefined
  /** Second path of the login callback. */
  readonly callbackPath: string | undefined
  /** Why what no route answers is refused, where that is not because there is no such route. */
  readonly unmatched: (() => WbError) | undefined
  readonly rateLimit: RateLimit | null
  readonly bodyMemory: BodyMemory
  /** Left out where bodies are decoded on the event loop. */
  readonly decodeElsewhere: DecodeElsewhere | undefined
  readonly openStreams: OpenStreams
  readonly openUploads: OpenStreams
  /** Headers of every response. */
  readonly headers: HeaderPairs
  /** Where files lie that came with a request, while it is answered. */
  readonly uploadDir: string
  /** In lower case. */
  readonly requestIdHeader: string
  /** A code that its route does not declare is a defect. */
  readonly strictErrors: boolean
  readonly isDraining: () => boolean
  /** Call back when the runtime begins to drain. Returns a function that calls it off. */
  readonly onDrain: (end: () => void) => () => void
  readonly began: () => void
  readonly ended: () => void
}

/** What is said of an exchange in the log, and what it may fail with. */
export interface Matched {
  readonly path: string
  readonly errors: readonly ErrorCode[]
  readonly dialect?: Route['dialect']
}

export type Serve = (event: H3Event) => Promise<Reply>

/** One request on its way to a response, and what becomes known of it. */
export interface Exchange {
  readonly incoming: Incoming
  readonly trace: Trace
  /** Headers that its response carries beside those of every response. */
  readonly headers: HeaderPairs
  /** Address of the client, once somebody asked for it. */
  client?: string
  /** Who asks, once that is known. */
  auth?: AuthContext
  workspaceId?: string | undefined
  /** Set if the event stream of the response releases the memory of the body. */
  isBodyInUse?: boolean
}

/** One request and its response: the trace, the envelope of whatever is thrown, the log, and the count of the work. */
export function exchange(
  shared: Shared,
  route: Matched,
  answer: (current: Exchange) => Promise<Reply>,
): Serve {
  return async event => {
    const incoming = new Incoming(event)
    const trace = traceOf(incoming.header(shared.requestIdHeader), incoming.header('traceparent'))
    const current: Exchange = { incoming, trace, headers: [] }
    // Answers there hold what no cache may keep.
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

/** Whose request it is: a subject's, else an address's. */
export function callerOf(shared: Shared, { auth, incoming }: Exchange): string {
  const subject = auth?.subject
  return subject ? `${subject.type} ${subject.id}` : `anonymous ${shared.clientOf(incoming)}`
}

/** Opens a hold on the memory for bodies for the caller, as far as it is known yet. */
export function holdBody(shared: Shared, current: Exchange): BodyHold {
  if (!current.incoming.isFromOutside) return unlimitedHold
  const isVerified = current.auth?.authenticated ?? false
  return shared.bodyMemory.hold({ caller: callerOf(shared, current), isVerified })
}

/** Responses up to this size fit into the buffers of the operating system, and are not counted. UTF-16 code units or bytes. */
const smallReplyLength = 16_384

/**
 * Counts a large response as held until its reader has taken it.
 *
 * @throws overloaded  the caller reads too slowly, and the request changed nothing
 */
export function holdReply(shared: Shared, current: Exchange, content: string | Uint8Array): void {
  if (content.length <= smallReplyLength) return
  const hold = holdBody(shared, current)
  const { incoming } = current
  if (incoming.method === 'GET') hold.resize(content.length)
  else hold.force(content.length)
  incoming.onceSent(hold.release)
}

/** Headers of a response with a body of this media type. */
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

/** What a client is told of a failure inside a response that has begun; what it did not cause is in the log too. */
export function failureTeller(log: Log): (thrown: unknown, requestId: string) => Failure {
  return (thrown, requestId) => {
    const failure = failureOf(thrown, requestId)
    if (failure.status >= 500) logFailure(log, thrown, { requestId, status: failure.status }, false)
    return failure
  }
}

/** What a client did wrong is information, what a dependency did a warning, and what we did an error. */
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
/** Where a refusal is on record. */
const auditedPaths = [apiPaths, '/setup/']

function isBelow(prefixes: readonly string[], path: string): boolean {
  return prefixes.some(prefix => path.startsWith(prefix))
}

/** Records a refused request in the audit trail. @see docs/requirements.md#S6-04, docs/security.md#rule-3 */
function auditRefusal(shared: Shared, current: Exchange, error: WbError): void {
  const { incoming, trace, auth = shared.stranger, workspaceId } = current
  const event = denialOf(incoming, error) ?? rejectionOf(incoming, error)
  if (!event) return
  const { ofWorkspace = workspaceId } = error.facts as { ofWorkspace?: string }
  shared.audit.note({ auth, requestId: trace.requestId }, { ...event, workspaceId: ofWorkspace })
}

/** A credential that was missing or not good, or a right that was not held. A key that holds no more is named. */
function denialOf({ path, authorization, cookie }: Incoming, error: WbError): Event | undefined {
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
      reason: presentable(message),
    },
  }
}

/** A change that a page of another origin asked for. */
function rejectionOf({ method, path }: Incoming, { facts }: WbError): Event | undefined {
  const why = facts.crossOrigin
  if (typeof why !== 'string') return undefined
  if (!isBelow([...auditedPaths, authPaths], path)) return undefined
  return {
    action: 'auth.csrf_rejected',
    outcome: 'failure',
    details: { reason: presentable(`${method} ${path}: ${why}`) },
  }
}

/** How a credential was presented, without a letter of it. */
function schemeOf(authorization: string | null, cookie: string | null): Credential {
  if (authorization !== null) return isBearer(authorization) ? 'bearer' : 'other'
  return cookie === null ? 'none' : 'session'
}
