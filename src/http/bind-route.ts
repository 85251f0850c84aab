import { type AccessRequest, authorize, decideAccess } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import type { AuthContext } from '../access/subject.ts'
import type { RequestCredentials } from '../auth/authenticate.ts'
import { once } from '../base/once.ts'
import type { Access, RootAccess } from '../contract/access.ts'
import type { AuditDetails } from '../contract/audit-record.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ProtocolResponse, Route, ServerEvent } from '../contract/route.ts'
import { admitRequest, clientAddress } from './admit.ts'
import type { BodyReservation } from './body-memory.ts'
import type { RouteName } from './decode-thread.ts'
import { toErrorReply } from './error-reply.ts'
import { createEventStream } from './event-stream.ts'
import {
  type AppContext,
  callerKey,
  type Exchange,
  handleExchange,
  replyHeaders,
  reserveBody,
  reserveReply,
  type ServeRequest,
} from './exchange.ts'
import { replaceHeaders } from './headers.ts'
import { createReplyEncoder, HttpReply } from './http-reply.ts'
import { formatIgnoredHeader } from './ignored-fields.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { createInputReader } from './input-reader.ts'
import { writeLines } from './ndjson.ts'
import { createProtocolReply } from './protocol-reply.ts'
import { checkPath, decodeParams } from './query.ts'
import { rateLimitClassOf } from './rate-limit.ts'
import { RequestCaller } from './request-caller.ts'
import type { Trace } from './trace.ts'
import { withViewedPrincipal } from './view-as.ts'
import { reauthorizeAfterMs, withReauthorization } from './with-reauthorization.ts'

/** Untyped result of a handler. The compiler has checked the handler against the declaration of its route. */
interface HandlerResult {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly ignored?: readonly string[]
  readonly audit?: AuditDetails
  readonly events?: AsyncIterable<ServerEvent>
  readonly protocol?: ProtocolResponse
}

export type AnyHandler = (input: never, caller: Caller) => HandlerResult | Promise<HandlerResult>

/**
 * Creates the function that serves a route: it checks the request, calls the handler with the validated input,
 * and encodes the result, in the order that docs/http.md#bodies describes.
 */
export function bindRoute(
  context: AppContext,
  route: Route,
  handler: AnyHandler,
  name: RouteName,
): ServeRequest {
  const { uploadDir, clock, decodeInThread } = context
  const decodeRoute = decodeInThread && ((bytes: Buffer) => decodeInThread(name, bytes))
  // Created on first use, because a CLI command calls only a few of the routes.
  const getReader = once(() => createInputReader(route, { uploadDir, clock, decodeInThread: decodeRoute }))
  const getEncoder = once(() => createReplyEncoder(route.replies))
  const bodyLimitBytes = route.body?.limitBytes ?? limits.jsonBodyBytes

  const { access, audit } = route
  const rateLimitClass = rateLimitClassOf(route.path)
  const fieldsWithExtraScope = access.kind === 'needs' ? (access.extraScope?.condition.fields ?? []) : []

  return handleExchange(context, route, async exchange => {
    const { incoming } = exchange
    admitRequest(context, exchange, rateLimitClass, bodyLimitBytes)
    if (access.kind !== 'open') exchange.auth = await authenticateCaller(context, exchange)
    if (hasTrailingSlash(incoming.path) && incoming.path !== context.callbackPath)
      throw routeNotFound(incoming)
    const rawParams = decodeParams(incoming.params)
    const auth = await withWorkspaceRights(context, exchange, rawParams.workspaceId)
    authorize(accessRequestOf(context, exchange, access), { auth })
    const reservation = reserveBody(context, exchange)
    try {
      return await respond(exchange, rawParams, auth, reservation)
    } finally {
      // NDJSON lines are read while the response is sent, so the line reader releases the memory.
      if (route.body?.kind !== 'ndjson' && !exchange.isBodyInUse) reservation.release()
    }
  })

  async function respond(
    exchange: Exchange,
    rawParams: Record<string, string>,
    initialAuth: AuthContext,
    reservation: BodyReservation,
  ): Promise<HttpReply> {
    const { incoming } = exchange
    const reauthorize = () => authorizeAgain(context, exchange, route)
    const can = (rule: RootAccess) => isAllowed(context, exchange, rule)
    const startedAt = clock.now()
    const { input, ignored } = await getReader()(incoming, rawParams, reservation)
    const isSlow = clock.now() - startedAt >= reauthorizeAfterMs
    const auth = isSlow ? await reauthorize() : initialAuth
    const { params } = input
    const caller = new RequestCaller({
      context,
      route,
      exchange,
      params,
      auth,
      reauthorize,
      can,
    })
    const releaseUpload = countUpload(context, exchange, route)
    const checkedInput = withReauthorization(context, route, input, reauthorize) as never
    let result: HandlerResult
    try {
      result = await handler(checkedInput, caller)
    } finally {
      releaseUpload()
    }
    if (!caller.isChangeChecked && fieldsWithExtraScope.some(field => hasField(input.body, field)))
      throw new Error(`the handler did not check a change to ${fieldsWithExtraScope.join(' or ')}`)
    if (access.kind === 'ownRecords' && !caller.isCreatorChecked)
      throw new Error('the handler did not check who created the record')
    if (audit) caller.completeAudit(result.audit)

    const ignoredFields = result.ignored ? [...ignored, ...result.ignored] : ignored
    if (ignoredFields.length > 0)
      exchange.headers.push(['x-workbase-ignored', formatIgnoredHeader(ignoredFields)])
    if (result.events) {
      const reply = createEventStream(context, exchange, {
        events: result.events,
        schemas: route.events!,
        dialect: route.dialect,
        confirmAccess: reauthorize,
        onEnd: reservation.release,
      })
      // A chat turn uses the images of its message until its last event.
      exchange.isBodyInUse = reservation.isLarge
      return reply
    }
    if (result.protocol)
      return createProtocolReply(context, exchange, { ...result.protocol, confirmAccess: reauthorize })
    const { mediaType, content } = getEncoder()(result.status, result.body)
    let pairs = replyHeaders(context, exchange, mediaType)
    if (result.headers) pairs = replaceHeaders(pairs, result.headers)
    if (mediaType === 'application/x-ndjson')
      return new HttpReply(result.status, pairs, await toLineStream(context, exchange.trace, result.body))
    if (content) reserveReply(context, exchange, content)
    return new HttpReply(result.status, pairs, content)
  }
}

/** Authenticates the caller of a request. */
function authenticateCaller(context: AppContext, exchange: Exchange): AuthContext | Promise<AuthContext> {
  const { incoming, trace } = exchange
  const { authorization, cookie, operator } = incoming
  if (operator) return operator
  const credentials: RequestCredentials = {
    authorization,
    cookie,
    client: clientAddress(context, exchange),
    requestId: trace.requestId,
    siteOrigin: () => context.siteOrigin(incoming),
  }
  return context.authenticate(credentials)
}

/** Returns the access request that `authorize` decides on. */
function accessRequestOf(
  context: AppContext,
  { incoming, workspaceId }: Exchange,
  rule: Access,
): AccessRequest {
  if (rule.kind !== 'setup') return { rule, workspaceId }
  const source = { hasCredential: incoming.authorization !== null, isLocal: context.isLocal(incoming) }
  return { rule, workspaceId, source }
}

/** Returns the caller with its rights in a workspace. Stores the caller and the workspace ID in the exchange. */
async function withWorkspaceRights(
  context: AppContext,
  exchange: Exchange,
  workspaceId: string | undefined,
): Promise<AuthContext> {
  const auth = exchange.auth ?? context.anonymous
  exchange.workspaceId = workspaceId
  if (workspaceId === undefined) return auth
  const scoped = await context.scopeToWorkspace(auth, workspaceId)
  exchange.auth = withViewedPrincipal(context, exchange.incoming, scoped)
  return exchange.auth
}

/**
 * Authenticates and authorizes the caller again, because its rights may have changed during a long request.
 *
 * @throws unauthorized, forbidden  when the caller no longer has access
 */
async function authorizeAgain(
  context: AppContext,
  exchange: Exchange,
  { access }: Route,
): Promise<AuthContext> {
  const previous = exchange.auth ?? context.anonymous
  // The bootstrap token cannot be revoked while the process runs, and each check would write an audit record.
  if (access.kind === 'open' || previous.subject?.type === 'bootstrap') return previous
  exchange.auth = await authenticateCaller(context, exchange)
  const auth = await withWorkspaceRights(context, exchange, exchange.workspaceId)
  authorize(accessRequestOf(context, exchange, access), { auth })
  return auth
}

/** Returns true if an access rule outside workspaces would allow the caller of the request. */
async function isAllowed(context: AppContext, exchange: Exchange, rule: RootAccess): Promise<boolean> {
  try {
    const auth = exchange.auth ?? (await authenticateCaller(context, exchange))
    const request = { ...accessRequestOf(context, exchange, rule), workspaceId: undefined }
    return decideAccess(request, { auth }).allow
  } catch (error) {
    if (error instanceof WbError) return false
    throw error
  }
}

/**
 * Counts the request as an open upload of its caller, if it has a multipart body. Returns a function to call when the
 * upload ends.
 *
 * @throws rate_limited  when the caller has too many uploads open
 */
function countUpload(context: AppContext, exchange: Exchange, { body }: Route): () => void {
  const isUpload = body?.kind === 'multipart' && exchange.incoming.isFromOutside
  return isUpload ? context.openUploads.open(callerKey(context, exchange)) : () => {}
}

function hasField(body: unknown, field: string): boolean {
  return typeof body === 'object' && body !== null && (body as Record<string, unknown>)[field] !== undefined
}

/** Creates the function that rejects requests for unknown paths with `not_found`, after the common checks. */
export function bindUnknownPath(context: AppContext): ServeRequest {
  return handleExchange(context, { path: '<unmatched>', errors: ['not_configured'] }, async exchange => {
    const { incoming } = exchange
    admitRequest(context, exchange, rateLimitClassOf(incoming.path), limits.jsonBodyBytes)
    if (context.unmatchedError) throw context.unmatchedError()
    if (incoming.path.startsWith('/api/v1/')) exchange.auth = await authenticateCaller(context, exchange)
    checkPath(incoming.path)
    throw routeNotFound(incoming)
  })
}

function routeNotFound({ method, path }: IncomingRequest): WbError {
  return new WbError('not_found', `there is no route ${method} ${path}`)
}

/**
 * Returns true for a path with a trailing slash. Such paths are rejected: the router treats `/a/` as `/a`, and
 * clients normalize `/a/b/..` to `/a/`, so deleting a record named `..` would delete the whole knowledge base.
 */
function hasTrailingSlash(path: string): boolean {
  return path.length > 1 && path.endsWith('/')
}

/**
 * Returns a stream of NDJSON lines, after waiting for the first one. If the first line fails, the promise rejects, and
 * the response can still have an error status. A later failure is sent as the last line.
 */
async function toLineStream(
  context: AppContext,
  trace: Trace,
  body: unknown,
): Promise<ReadableStream<Uint8Array>> {
  const objects = (body as AsyncIterable<object>)[Symbol.asyncIterator]()
  const first = await objects.next()
  const lastLine = (error: unknown) => {
    const { status, envelope } = toErrorReply(error, trace.requestId)
    if (status >= 500) context.log.error({ requestId: trace.requestId, error }, 'a stream failed')
    return envelope
  }
  context.requestStarted()
  return writeLines(objects, first, lastLine, context.requestEnded)
}
