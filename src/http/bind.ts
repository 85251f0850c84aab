import type { Caller } from '../access/caller.ts'
import { authorize, type Demand, decide } from '../access/gate.ts'
import type { AuthContext } from '../access/subject.ts'
import type { Presented } from '../auth/authenticate.ts'
import { once } from '../base/once.ts'
import type { Access } from '../contract/access.ts'
import type { AuditDetails } from '../contract/audit-record.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { OwnResponse, Route, ServerEvent } from '../contract/route.ts'
import { admit, clientOf } from './admit.ts'
import type { BodyHold } from './body-memory.ts'
import { RequestCaller } from './caller.ts'
import { confirmAfterMs, withConfirmedBody } from './confirmed-body.ts'
import type { RouteName } from './decoding.ts'
import { failureOf } from './envelope.ts'
import { eventStream } from './events.ts'
import {
  callerOf,
  type Exchange,
  exchange,
  headersOf,
  holdBody,
  holdReply,
  type Serve,
  type Shared,
} from './exchange.ts'
import { withHeaders } from './headers.ts'
import { ignoredHeader } from './ignored.ts'
import type { Incoming } from './incoming.ts'
import { inputReader } from './input.ts'
import { writeLines } from './ndjson.ts'
import { ownReply } from './own-reply.ts'
import { checkPath, decodeParams } from './query.ts'
import { rateLimitClassOf } from './rate-limit.ts'
import { Reply, replyEncoder } from './reply.ts'
import type { Trace } from './trace.ts'

/** Result of a handler; the contract has already checked its types. */
interface Answered {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly ignored?: readonly string[]
  readonly audit?: AuditDetails
  readonly events?: AsyncIterable<ServerEvent>
  readonly own?: OwnResponse
}

export type AnyHandler = (input: never, caller: Caller) => Answered | Promise<Answered>

/**
 * Connects a route declaration with its handler: the steps between request and handler input, and between
 * handler result and response, in the order of docs/http.md#bodies.
 */
export function bind(shared: Shared, route: Route, handler: AnyHandler, name: RouteName): Serve {
  const { uploadDir, clock, decodeElsewhere } = shared
  const decodeRoute = decodeElsewhere && ((bytes: Buffer) => decodeElsewhere(name, bytes))
  // A short CLI command uses only two of many routes.
  const readerOf = once(() => inputReader(route, { uploadDir, clock, decodeElsewhere: decodeRoute }))
  const encoderOf = once(() => replyEncoder(route.replies))
  const bodyLimitBytes = route.body?.limitBytes ?? limits.jsonBodyBytes

  const { access, audit } = route
  const rateLimitClass = rateLimitClassOf(route.path)
  const raisedBy = access.kind === 'needs' ? (access.raise?.when.fields ?? []) : []

  return exchange(shared, route, async current => {
    const { incoming } = current
    admit(shared, current, rateLimitClass, bodyLimitBytes)
    if (access.kind !== 'open') current.auth = await identify(shared, current)
    if (hasEmptyEnd(incoming.path) && incoming.path !== shared.callbackPath) throw noRoute(incoming)
    const rawParams = decodeParams(incoming.params)
    const auth = await inWorkspace(shared, current, rawParams.workspaceId)
    authorize(demandOf(shared, current, access), { auth })
    const hold = holdBody(shared, current)
    try {
      return await answer(current, rawParams, auth, hold)
    } finally {
      // Lines are read while the response is sent; the line reader releases its memory itself.
      if (route.body?.kind !== 'ndjson' && !current.isBodyInUse) hold.release()
    }
  })

  async function answer(
    current: Exchange,
    rawParams: Record<string, string>,
    firstAuth: AuthContext,
    hold: BodyHold,
  ): Promise<Reply> {
    const { incoming } = current
    const confirm = () => authorizeAgain(shared, current, route)
    const can = (rule: Access) => wouldAuthorize(shared, current, rule)
    const askedAt = clock.now()
    const { input, ignored } = await readerOf()(incoming, rawParams, hold)
    const isLate = clock.now() - askedAt >= confirmAfterMs
    const auth = isLate ? await confirm() : firstAuth
    const visibility = await shared.visibility(auth, incoming.request)
    const { params } = input
    const caller = new RequestCaller({ shared, route, current, params, auth, visibility, confirm, can })
    const countOff = countUpload(shared, current, route)
    const sent = withConfirmedBody(shared, route, input, confirm) as never
    let answered: Answered
    try {
      answered = await handler(sent, caller)
    } finally {
      countOff()
    }
    if (!caller.isChangeChecked && raisedBy.some(field => has(input.body, field)))
      throw new Error(`the handler did not check a change of ${raisedBy.join(' or ')}`)
    if (access.kind === 'own' && !caller.isCreatorChecked)
      throw new Error('the handler did not check who created the record')
    if (audit) caller.recorded(answered.audit)

    const unread = answered.ignored ? [...ignored, ...answered.ignored] : ignored
    if (unread.length > 0) current.headers.push(['x-workbase-ignored', ignoredHeader(unread)])
    if (answered.events) {
      const reply = eventStream(shared, current, {
        events: answered.events,
        schemas: route.events!,
        dialect: route.dialect,
        stillAllowed: confirm,
        ended: hold.release,
      })
      // A turn uses the images of its question until its last event.
      current.isBodyInUse = hold.isLarge
      return reply
    }
    if (answered.own) return ownReply(shared, current, { ...answered.own, stillAllowed: confirm })
    const { mediaType, content } = encoderOf()(answered.status, answered.body)
    let pairs = headersOf(shared, current, mediaType)
    if (answered.headers) pairs = withHeaders(pairs, answered.headers)
    if (mediaType === 'application/x-ndjson')
      return new Reply(answered.status, pairs, await streamOf(shared, current.trace, answered.body))
    if (content) holdReply(shared, current, content)
    return new Reply(answered.status, pairs, content)
  }
}

/** Authenticates the caller of a request. */
function identify(shared: Shared, current: Exchange): AuthContext | Promise<AuthContext> {
  const { incoming, trace } = current
  const { authorization, cookie, operator } = incoming
  if (operator) return operator
  const presented: Presented = {
    authorization,
    cookie,
    client: clientOf(shared, current),
    requestId: trace.requestId,
    siteOrigin: () => shared.siteOrigin(incoming),
  }
  return shared.authenticate(presented)
}

/** Returns the input of the access gate for a request. */
function demandOf(shared: Shared, { incoming, workspaceId }: Exchange, rule: Access): Demand {
  if (rule.kind !== 'setup') return { rule, workspaceId }
  const approach = { hasCredential: incoming.authorization !== null, isLocal: shared.isLocal(incoming) }
  return { rule, workspaceId, approach }
}

/** Returns the caller with its rights in the workspace that the path names. */
async function inWorkspace(
  shared: Shared,
  current: Exchange,
  workspaceId: string | undefined,
): Promise<AuthContext> {
  const auth = current.auth ?? shared.stranger
  current.workspaceId = workspaceId
  if (workspaceId === undefined) return auth
  current.auth = await shared.inWorkspace(auth, workspaceId)
  return current.auth
}

/**
 * Authenticates and authorizes a caller again, because its rights may have changed during a long upload, wait
 * or response.
 *
 * @throws unauthorized, forbidden  when the same request would now be refused
 */
async function authorizeAgain(shared: Shared, current: Exchange, { access }: Route): Promise<AuthContext> {
  const known = current.auth ?? shared.stranger
  // The bootstrap token is valid for the lifetime of the process, and each use is audited.
  if (access.kind === 'open' || known.subject?.type === 'bootstrap') return known
  current.auth = await identify(shared, current)
  const auth = await inWorkspace(shared, current, current.workspaceId)
  authorize(demandOf(shared, current, access), { auth })
  return auth
}

/** Returns true if the caller of a request would pass a rule. */
async function wouldAuthorize(shared: Shared, current: Exchange, rule: Access): Promise<boolean> {
  try {
    const auth = current.auth ?? (await identify(shared, current))
    return decide(demandOf(shared, current, rule), { auth }).allow
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
function countUpload(shared: Shared, current: Exchange, { body }: Route): () => void {
  const isUpload = body?.kind === 'multipart' && current.incoming.isFromOutside
  return isUpload ? shared.openUploads.open(callerOf(shared, current)) : () => {}
}

function has(body: unknown, field: string): boolean {
  return typeof body === 'object' && body !== null && (body as Record<string, unknown>)[field] !== undefined
}

/** Answers requests that match no route with `not_found`, after the checks that apply to every request. */
export function bindUnknown(shared: Shared): Serve {
  return exchange(shared, { path: '<unmatched>', errors: ['not_configured'] }, async current => {
    const { incoming } = current
    admit(shared, current, rateLimitClassOf(incoming.path), limits.jsonBodyBytes)
    if (shared.unmatched) throw shared.unmatched()
    if (incoming.path.startsWith('/api/v1/')) current.auth = await identify(shared, current)
    checkPath(incoming.path)
    throw noRoute(incoming)
  })
}

function noRoute({ method, path }: Incoming): WbError {
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
async function streamOf(shared: Shared, trace: Trace, body: unknown): Promise<ReadableStream<Uint8Array>> {
  const objects = (body as AsyncIterable<object>)[Symbol.asyncIterator]()
  const first = await objects.next()
  const failed = (error: unknown) => {
    const { status, envelope } = failureOf(error, trace.requestId)
    if (status >= 500) shared.log.error({ requestId: trace.requestId, error }, 'a stream broke')
    return envelope
  }
  shared.began()
  return writeLines(objects, first, failed, shared.ended)
}
