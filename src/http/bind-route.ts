import { type AccessRequest, authorize, decideAccess } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import type { AuthContext } from '../access/subject.ts'
import type { RequestCredentials } from '../auth/authenticate.ts'
import { once } from '../base/once.ts'
import type { Access } from '../contract/access.ts'
import type { AuditDetails } from '../contract/audit-record.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ProtocolResponse, Route, ServerEvent } from '../contract/route.ts'
import { admitRequest, clientAddress } from './admit.ts'
import type { BodyReservation } from './body-memory.ts'
import { confirmAfterMs, withConfirmedBody } from './confirmed-body.ts'
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

/** Result of a handler; the contract has already checked its types. */
interface HandlerResult {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly ignored?: readonly string[]
  readonly audit?: AuditDetails
  readonly events?: AsyncIterable<ServerEvent>
  readonly own?: ProtocolResponse
}

export type AnyHandler = (input: never, caller: Caller) => HandlerResult | Promise<HandlerResult>

/**
 * Connects a route declaration with its handler: the steps between request and handler input, and between
 * handler result and response, in the order of docs/http.md#bodies.
 */
export function bindRoute(
  shared: AppContext,
  route: Route,
  handler: AnyHandler,
  name: RouteName,
): ServeRequest {
  const { uploadDir, clock, decodeInThread: decodeElsewhere } = shared
  const decodeRoute = decodeElsewhere && ((bytes: Buffer) => decodeElsewhere(name, bytes))
  // A short CLI command uses only two of many routes.
  const readerOf = once(() => createInputReader(route, { uploadDir, clock, decodeElsewhere: decodeRoute }))
  const encoderOf = once(() => createReplyEncoder(route.replies))
  const bodyLimitBytes = route.body?.limitBytes ?? limits.jsonBodyBytes

  const { access, audit } = route
  const rateLimitClass = rateLimitClassOf(route.path)
  const raisingFields = access.kind === 'needs' ? (access.raise?.when.fields ?? []) : []

  return handleExchange(shared, route, async current => {
    const { incoming } = current
    admitRequest(shared, current, rateLimitClass, bodyLimitBytes)
    if (access.kind !== 'open') current.auth = await identify(shared, current)
    if (hasEmptyEnd(incoming.path) && incoming.path !== shared.callbackPath) throw routeNotFound(incoming)
    const rawParams = decodeParams(incoming.params)
    const auth = await inWorkspace(shared, current, rawParams.workspaceId)
    authorize(accessRequestOf(shared, current, access), { auth })
    const hold = reserveBody(shared, current)
    try {
      return await respond(current, rawParams, auth, hold)
    } finally {
      // Lines are read while the response is sent; the line reader releases its memory itself.
      if (route.body?.kind !== 'ndjson' && !current.isBodyInUse) hold.release()
    }
  })

  async function respond(
    current: Exchange,
    rawParams: Record<string, string>,
    firstAuth: AuthContext,
    reservation: BodyReservation,
  ): Promise<HttpReply> {
    const { incoming } = current
    const confirm = () => authorizeAgain(shared, current, route)
    const can = (rule: Access) => wouldAuthorize(shared, current, rule)
    const startedAt = clock.now()
    const { input, ignored } = await readerOf()(incoming, rawParams, reservation)
    const isLate = clock.now() - startedAt >= confirmAfterMs
    const auth = isLate ? await confirm() : firstAuth
    const visibility = await shared.visibility(auth, incoming.request)
    const { params } = input
    const caller = new RequestCaller({
      shared,
      route,
      current,
      params,
      auth,
      visibility,
      reauthorize: confirm,
      can,
    })
    const releaseUpload = countUpload(shared, current, route)
    const checkedInput = withConfirmedBody(shared, route, input, confirm) as never
    let result: HandlerResult
    try {
      result = await handler(checkedInput, caller)
    } finally {
      releaseUpload()
    }
    if (!caller.isChangeChecked && raisingFields.some(field => hasField(input.body, field)))
      throw new Error(`the handler did not check a change of ${raisingFields.join(' or ')}`)
    if (access.kind === 'own' && !caller.isCreatorChecked)
      throw new Error('the handler did not check who created the record')
    if (audit) caller.completeAudit(result.audit)

    const ignoredFields = result.ignored ? [...ignored, ...result.ignored] : ignored
    if (ignoredFields.length > 0)
      current.headers.push(['x-workbase-ignored', formatIgnoredHeader(ignoredFields)])
    if (result.events) {
      const reply = createEventStream(shared, current, {
        events: result.events,
        schemas: route.events!,
        dialect: route.dialect,
        stillAllowed: confirm,
        ended: reservation.release,
      })
      // A turn uses the images of its question until its last event.
      current.isBodyInUse = reservation.isLarge
      return reply
    }
    if (result.own) return createProtocolReply(shared, current, { ...result.own, stillAllowed: confirm })
    const { mediaType, content } = encoderOf()(result.status, result.body)
    let pairs = replyHeaders(shared, current, mediaType)
    if (result.headers) pairs = replaceHeaders(pairs, result.headers)
    if (mediaType === 'application/x-ndjson')
      return new HttpReply(result.status, pairs, await toLineStream(shared, current.trace, result.body))
    if (content) reserveReply(shared, current, content)
    return new HttpReply(result.status, pairs, content)
  }
}

/** Authenticates the caller of a request. */
function identify(shared: AppContext, current: Exchange): AuthContext | Promise<AuthContext> {
  const { incoming, trace } = current
  const { authorization, cookie, operator } = incoming
  if (operator) return operator
  const presented: RequestCredentials = {
    authorization,
    cookie,
    client: clientAddress(shared, current),
    requestId: trace.requestId,
    siteOrigin: () => shared.siteOrigin(incoming),
  }
  return shared.authenticate(presented)
}

/** Returns the input of the access gate for a request. */
function accessRequestOf(
  shared: AppContext,
  { incoming, workspaceId }: Exchange,
  rule: Access,
): AccessRequest {
  if (rule.kind !== 'setup') return { rule, workspaceId }
  const origin = { hasCredential: incoming.authorization !== null, isLocal: shared.isLocal(incoming) }
  return { rule, workspaceId, origin: origin }
}

/** Returns the caller with its rights in the workspace that the path names. */
async function inWorkspace(
  shared: AppContext,
  current: Exchange,
  workspaceId: string | undefined,
): Promise<AuthContext> {
  const auth = current.auth ?? shared.anonymous
  current.workspaceId = workspaceId
  if (workspaceId === undefined) return auth
  current.auth = await shared.scopeToWorkspace(auth, workspaceId)
  return current.auth
}

/**
 * Authenticates and authorizes a caller again, because its rights may have changed during a long upload, wait
 * or response.
 *
 * @throws unauthorized, forbidden  when the same request would now be refused
 */
async function authorizeAgain(
  shared: AppContext,
  current: Exchange,
  { access }: Route,
): Promise<AuthContext> {
  const known = current.auth ?? shared.anonymous
  // The bootstrap token is valid for the lifetime of the process, and each use is audited.
  if (access.kind === 'open' || known.subject?.type === 'bootstrap') return known
  current.auth = await identify(shared, current)
  const auth = await inWorkspace(shared, current, current.workspaceId)
  authorize(accessRequestOf(shared, current, access), { auth })
  return auth
}

/** Returns true if the caller of a request would pass a rule. */
async function wouldAuthorize(shared: AppContext, current: Exchange, rule: Access): Promise<boolean> {
  try {
    const auth = current.auth ?? (await identify(shared, current))
    return decideAccess(accessRequestOf(shared, current, rule), { auth }).allow
  } catch (error) {
    if (error instanceof WbError) return false
    throw error
  }
}

/**
 * Counts an upload of a caller, and returns a function that releases it.
 *
 * @throws rate_limited  when the caller has too many uploads open
 */
function countUpload(shared: AppContext, current: Exchange, { body }: Route): () => void {
  const isUpload = body?.kind === 'multipart' && current.incoming.isFromOutside
  return isUpload ? shared.openUploads.open(callerKey(shared, current)) : () => {}
}

function hasField(body: unknown, field: string): boolean {
  return typeof body === 'object' && body !== null && (body as Record<string, unknown>)[field] !== undefined
}

/** Answers requests that match no route with `not_found`, after the checks that apply to every request. */
export function bindUnknownPath(shared: AppContext): ServeRequest {
  return handleExchange(shared, { path: '<unmatched>', errors: ['not_configured'] }, async current => {
    const { incoming } = current
    admitRequest(shared, current, rateLimitClassOf(incoming.path), limits.jsonBodyBytes)
    if (shared.unmatched) throw shared.unmatched()
    if (incoming.path.startsWith('/api/v1/')) current.auth = await identify(shared, current)
    checkPath(incoming.path)
    throw routeNotFound(incoming)
  })
}

function routeNotFound({ method, path }: IncomingRequest): WbError {
  return new WbError('not_found', `no route answers ${method} ${path}`)
}

/**
 * Returns true for a path that ends with a slash. The router treats `/a/` as `/a`, and clients normalize
 * `/a/b/..` to `/a/`: deleting a record named `..` would delete its knowledge base.
 */
function hasEmptyEnd(path: string): boolean {
  return path.length > 1 && path.endsWith('/')
}

/**
 * Returns a stream of NDJSON lines. It waits for the first line so that an earlier failure still sets the
 * status; a later failure becomes a line.
 */
async function toLineStream(
  shared: AppContext,
  trace: Trace,
  body: unknown,
): Promise<ReadableStream<Uint8Array>> {
  const objects = (body as AsyncIterable<object>)[Symbol.asyncIterator]()
  const first = await objects.next()
  const lastLine = (error: unknown) => {
    const { status, envelope } = toErrorReply(error, trace.requestId)
    if (status >= 500) shared.log.error({ requestId: trace.requestId, error }, 'a stream broke')
    return envelope
  }
  shared.began()
  return writeLines(objects, first, lastLine, shared.ended)
}
