import type { Caller } from '../access/caller.ts'
import { decide } from '../access/gate.ts'
import { type AuthContext, anonymous } from '../access/subject.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { Route } from '../contract/route.ts'
import type { Visibility } from '../storage/visibility.ts'
import { tooLarge } from './body.ts'
import { failureOf } from './envelope.ts'
import { exchange, headersOf, type Serve, type Shared } from './exchange.ts'
import { withHeaders } from './headers.ts'
import { ignoredHeader } from './ignored.ts'
import type { Incoming } from './incoming.ts'
import { inputReader } from './input.ts'
import { writeLines } from './ndjson.ts'
import { checkPath, decodeParams } from './query.ts'
import { Reply, replyEncoder } from './reply.ts'
import type { Trace } from './trace.ts'

/** An answer of a handler whose types the contract has checked already. */
interface Answered {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly ignored?: readonly string[]
}

export type AnyHandler = (input: never, caller: Caller) => Answered | Promise<Answered>

/** Says that the process lives, draining or not. */
const livenessPath = '/healthz'

/**
 * Join a declaration and its handler: all that happens between a request and the handler's input, and between its
 * answer and the response, in the order of the house (2.4).
 */
export function bind(shared: Shared, route: Route, handler: AnyHandler): Serve {
  const readInput = inputReader(route)
  const encode = replyEncoder(route.replies)
  const bodyLimitBytes = route.body?.limitBytes ?? limits.jsonBodyBytes

  return exchange(shared, route, async (incoming, trace) => {
    admit(shared, incoming, bodyLimitBytes)
    if (hasEmptyEnd(incoming.path)) throw noRoute(incoming)
    const auth = route.access.kind === 'open' ? anonymous : await shared.authenticate(incoming.request)
    const rawParams = decodeParams(incoming.params)
    pass(route, rawParams.workspaceId, auth)
    const { input, ignored } = await readInput(incoming, rawParams)
    const visibility = await shared.visibility(auth, incoming.request)
    const caller = new RequestCaller(incoming, auth, visibility, trace.requestId)
    const answered = await handler(input as never, caller)

    const { mediaType, text } = encode(answered.status, answered.body)
    let pairs = headersOf(shared, trace, mediaType)
    const unread = answered.ignored ? [...ignored, ...answered.ignored] : ignored
    if (unread.length > 0) pairs.push(['x-workbase-ignored', ignoredHeader(unread)])
    if (answered.headers) pairs = withHeaders(pairs, answered.headers)
    if (mediaType === 'application/x-ndjson')
      return new Reply(answered.status, pairs, await streamOf(shared, trace, answered.body))
    return new Reply(answered.status, pairs, text)
  })
}

/** The answer to a path and method that no route has: `not_found`, after what holds for every request. */
export function bindUnknown(shared: Shared): Serve {
  return exchange(shared, { path: '<unmatched>', errors: [] }, async incoming => {
    admit(shared, incoming, limits.jsonBodyBytes)
    checkPath(incoming.path)
    throw noRoute(incoming)
  })
}

function noRoute({ method, path }: Incoming): WbError {
  return new WbError('not_found', `no route answers ${method} ${path}`)
}

/**
 * The router reads `/a/` as `/a`, and every client makes `/a/` of `/a/b/..`: to delete the record `..` would be to
 * delete its knowledge base.
 */
function hasEmptyEnd(path: string): boolean {
  return path.length > 1 && path.endsWith('/')
}

/**
 * What is decided before anybody asks who the caller is.
 *
 * @throws draining, validation_error, forbidden_origin, payload_too_large
 */
function admit(shared: Shared, incoming: Incoming, bodyLimitBytes: number): void {
  if (shared.isDraining() && incoming.path !== livenessPath)
    throw new WbError('draining', 'the runtime is shutting down', { headers: { connection: 'close' } })
  incoming.checkHead()
  const refused = incoming.isFromOutside ? shared.originRule(incoming) : undefined
  if (refused) throw refused
  if (Number(incoming.header('content-length')) > bodyLimitBytes) throw tooLarge(bodyLimitBytes)
}

/** @throws unauthorized, forbidden the route's rule does not let the caller in */
function pass(route: Route, workspaceId: string | undefined, auth: AuthContext): void {
  const decision = decide({ rule: route.access, workspaceId }, auth)
  if (decision.allow) return
  throw new WbError(decision.code, decision.message, { requiredScope: decision.requiredScope })
}

/** The signal is made when a handler asks for it, as most never do. */
class RequestCaller implements Caller {
  readonly #incoming: Incoming

  constructor(
    incoming: Incoming,
    readonly auth: AuthContext,
    readonly visibility: Visibility,
    readonly requestId: string,
  ) {
    this.#incoming = incoming
  }

  get signal(): AbortSignal {
    return this.#incoming.signal
  }
}

/** The first line is waited for, so that what fails before it has a status of its own; what fails later is a line. */
async function streamOf(shared: Shared, trace: Trace, body: unknown): Promise<ReadableStream<Uint8Array>> {
  const objects = (body as AsyncIterable<object>)[Symbol.asyncIterator]()
  const first = await objects.next()
  const failed = (error: unknown) => {
    shared.log.error({ requestId: trace.requestId, error }, 'a stream broke')
    return failureOf(error, trace.requestId).envelope
  }
  shared.began()
  return writeLines(objects, first, failed, shared.ended)
}
