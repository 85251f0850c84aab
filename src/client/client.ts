import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ClientRequest, ReplyBody, Route, ServerEvent } from '../contract/route.ts'
import { cutIntoPieces } from './cut-into-pieces.ts'
import { errorFromResponse, notARuntimeError, originOf } from './error-from-response.ts'
import type { Fetch, IncomingResponse, OutgoingRequest } from './fetch.ts'
import { readEvents } from './read-events.ts'
import { readLines } from './read-lines.ts'
import { Unreachable, unexpectedResponse } from './unreachable.ts'

/** Address of a runtime, and the function that sends requests to it. */
export interface Connection {
  /** Origin of the runtime, with its path prefix if it has one. */
  baseUrl: string
  fetch: Fetch
  /** Headers that are added to every request. */
  headers?: Record<string, string>
  /** Called with the names of fields that the runtime ignored in a request. */
  onIgnored?: (names: string[]) => void
  /** Aborts every call that has no signal in its options. */
  signal?: AbortSignal
}

export interface CallOptions {
  signal?: AbortSignal
  /**
   * Called with the number of bytes of the body sent so far. The number restarts from 0 when the request is
   * retried.
   */
  onSent?: (bytes: number) => void
}

export interface EventOptions extends CallOptions {
  /** ID of the event after which to continue. */
  lastEventId?: string
}

export interface RawCall extends CallOptions {
  method: string
  /** Path and query. */
  path: string
  headers?: Record<string, string>
  body?: string
}

/** Typed calls to a runtime. */
export interface Client {
  /**
   * Calls a route.
   *
   * @throws WbError      the runtime rejected the request; `facts` contains the `requestId`
   * @throws Unreachable  no runtime responded
   */
  call<T extends Route>(route: T, request: ClientRequest<T>, options?: CallOptions): Promise<ReplyBody<T>>
  /** Calls a list route page by page, and yields the items. The page size is the maximum unless `query.limit` is set. */
  items<T extends Route>(route: T, request: ClientRequest<T>, options?: CallOptions): AsyncGenerator<Item<T>>
  /** Calls a route that responds with NDJSON, and yields the lines as they arrive. */
  stream<T extends Route>(route: T, request: ClientRequest<T>, options?: CallOptions): AsyncGenerator<unknown>
  /**
   * Opens the event stream of a route, and yields new events, or all events after `lastEventId`. If the runtime ends
   * the stream, open it again with the ID of the last received event to continue.
   *
   * @throws WbError      the runtime rejected the request
   * @throws Unreachable  no runtime responded, or the connection broke
   */
  events<T extends Route>(
    route: T,
    request: ClientRequest<T>,
    options?: EventOptions,
  ): AsyncGenerator<ServerEvent>
  /** Sends any request, and returns the response. Error responses are returned, not thrown. */
  raw(call: RawCall): Promise<IncomingResponse>
}

type Item<T> = ReplyBody<T> extends { items: (infer I)[] } ? I : never

/** Input of a request whose route type is unknown. */
interface UntypedRequest {
  params?: Record<string, string>
  query?: Record<string, unknown>
  body?: unknown
}

const ignoredHeader = 'x-workbase-ignored'
const eventStream = 'text/event-stream'

/** Creates a client of one runtime. The client does not read any configuration or environment variables. */
export function openClient(connection: Connection): Client {
  const base = connection.baseUrl.replace(/\/+$/, '')

  async function send(path: string, outgoing: OutgoingRequest): Promise<IncomingResponse> {
    const headers = { accept: 'application/json', ...connection.headers, ...outgoing.headers }
    return connection.fetch(base + path, { signal: connection.signal, ...outgoing, headers })
  }

  async function sendTyped(
    route: Route,
    input: UntypedRequest,
    { headers, ...options }: CallOptions & Pick<RawCall, 'headers'>,
  ): Promise<IncomingResponse> {
    const body = encodeBody(route, input.body)
    const response = await send(pathOf(route, input), {
      method: route.method,
      ...body,
      ...options,
      headers: { ...body.headers, ...headers },
    })
    if (response.status >= 300) throw await errorFromResponse(response)
    const ignored = response.headers.get(ignoredHeader)
    if (ignored) connection.onIgnored?.(parseIgnoredNames(ignored))
    return response
  }

  async function call(route: Route, input: UntypedRequest, options: CallOptions = {}): Promise<unknown> {
    const response = await sendTyped(route, input, options)
    const value = await decodeBody(response)
    const isEmpty = response.status === 204
    if (!isEmpty && (typeof value !== 'object' || value === null)) throw notARuntimeError(response)
    return value
  }

  async function* items(route: Route, input: UntypedRequest, options?: CallOptions): AsyncGenerator<unknown> {
    yield* readPages(async cursor => {
      const query = { limit: limits.pageMax, ...input.query, cursor: cursor ?? undefined }
      return (await call(route, { ...input, query }, options)) as Page
    })
  }

  async function* stream(
    route: Route,
    input: UntypedRequest,
    options: CallOptions = {},
  ): AsyncGenerator<unknown> {
    const response = await sendTyped(route, input, options)
    if (response.body)
      for await (const line of readLines(response.body)) if (line !== '') yield parseJsonOf(response, line)
  }

  async function* events(
    route: Route,
    input: UntypedRequest,
    { lastEventId, ...options }: EventOptions = {},
  ): AsyncGenerator<ServerEvent> {
    const lastEventHeader = lastEventId === undefined ? undefined : { 'last-event-id': lastEventId }
    const response = await sendTyped(route, input, {
      ...options,
      headers: { accept: eventStream, ...lastEventHeader },
    })
    if (!response.headers.get('content-type')?.startsWith(eventStream) || !response.body) {
      await response.text()
      throw notARuntimeError(response)
    }
    yield* readEvents(response.body, options.signal ?? connection.signal)
  }

  const raw = ({ path, headers = {}, ...call }: RawCall) => send(path, { ...call, headers })
  return { call, items, stream, events, raw } as Client
}

/** Parses the field names in the header. A name with an invalid encoding is returned unchanged. */
function parseIgnoredNames(list: string): string[] {
  return list.split(',').map(name => {
    try {
      return decodeURIComponent(name.trim())
    } catch {
      return name.trim()
    }
  })
}

/**
 * Returns the path of a request with percent-encoded parameters, and with the query fields that are not undefined.
 *
 * @throws WbError invalid_request  a parameter is empty, `.` or `..`, which a URL parser would remove
 */
export function pathOf(route: Pick<Route, 'path'>, { params = {}, query = {} }: UntypedRequest): string {
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => {
    const value = params[name] ?? ''
    if (/^\.{0,2}$/.test(value)) throw new WbError('invalid_request', `${name} must not be "${value}"`)
    return encodeURIComponent(value)
  })
  const fields = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) fields.set(name, String(value))
  return fields.size === 0 ? path : `${path}?${fields}`
}

function encodeBody(route: Route, body: unknown): Pick<OutgoingRequest, 'headers' | 'body'> {
  if (route.body?.kind === 'ndjson')
    return {
      headers: { 'content-type': 'application/x-ndjson' },
      body: jsonLines(body as AsyncIterable<unknown>),
    }
  if (route.body?.kind === 'multipart') return encodeForm(body as FormData)
  if (route.body) return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body ?? {}) }
  return { headers: {} }
}

/** Encodes a form. `Response` generates the boundary. */
function encodeForm(form: FormData): Pick<OutgoingRequest, 'headers' | 'body'> {
  const { headers, body } = new Response(form)
  return { headers: { 'content-type': headers.get('content-type')! }, body: body ?? '' }
}

async function* jsonLines(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const value of values) yield* cutIntoPieces(encoder.encode(`${JSON.stringify(value)}\n`))
}

async function decodeBody(response: IncomingResponse): Promise<unknown> {
  const text = await response.text()
  if (response.status === 204 || text === '') return undefined
  return response.headers.get('content-type')?.includes('json') ? parseJsonOf(response, text) : text
}

function parseJsonOf(response: IncomingResponse, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The message of JSON.parse quotes the response, which may contain a token or a key.
    throw new Unreachable(`${originOf(response)} sent invalid JSON`, 'Send the request again.')
  }
}

interface Page {
  readonly items: readonly unknown[]
  readonly nextCursor: string | null
}

/**
 * Yields the items of all pages, starting with the first page.
 *
 * @param read  returns the page at a cursor; the cursor of the first page is null
 * @throws Unreachable  a response is not a page, or a cursor repeats
 */
export async function* readPages(read: (cursor: string | null) => Promise<Page>): AsyncGenerator<unknown> {
  let cursor: string | null = null
  let checkpoint: string | null = null
  for (let count = 1; ; count++) {
    const page: Page = await read(cursor)
    if (!Array.isArray(page.items))
      throw unexpectedResponse('the runtime sent a list response without an `items` array')
    yield* page.items
    cursor = page.nextCursor ?? null
    if (cursor === null) return
    if (cursor === checkpoint) throw unexpectedResponse('the runtime sent the same page of a list twice')
    // The checkpoint moves at powers of two, which detects a cycle of any length (Brent's algorithm).
    if ((count & (count - 1)) === 0) checkpoint = cursor
  }
}

/** Returns all items of a list. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
