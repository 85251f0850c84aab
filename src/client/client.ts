import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ClientRequest, ReplyBody, Route, ServerEvent } from '../contract/route.ts'
import { cutIntoPieces } from './cut-into-pieces.ts'
import { errorFromResponse, notARuntime, originOf } from './error-from-response.ts'
import type { Fetch, Incoming, Outgoing } from './fetch.ts'
import { readEvents } from './read-events.ts'
import { readLines } from './read-lines.ts'
import { Unreachable, unexpectedResponse } from './unreachable.ts'

/** Address of a runtime, and the means to send requests to it. */
export interface Connection {
  /** Origin of the runtime, with its path prefix if it has one. */
  baseUrl: string
  fetch: Fetch
  /** Headers of every request. */
  headers?: Record<string, string>
  /** Called with the names of fields that the runtime ignored in a request. */
  onIgnored?: (names: string[]) => void
  /** Aborts every call without a separate signal. */
  signal?: AbortSignal
}

export interface CallOptions {
  signal?: AbortSignal
  /**
   * Called with the number of bytes of the body sent so far. It restarts from 0 when the request is retried.
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
   * @throws WbError      when the runtime refused, with `requestId` in its facts
   * @throws Unreachable  when no runtime responded
   */
  call<T extends Route>(route: T, request: ClientRequest<T>, options?: CallOptions): Promise<ReplyBody<T>>
  /** Calls a list route page by page, with large pages unless `query.limit` is set, and yields its items. */
  items<T extends Route>(route: T, request: ClientRequest<T>, options?: CallOptions): AsyncGenerator<Item<T>>
  /** Calls a route that responds with NDJSON, and yields the lines as they arrive. */
  stream<T extends Route>(route: T, request: ClientRequest<T>, options?: CallOptions): AsyncGenerator<unknown>
  /**
   * Calls a route for its event stream, and yields events from now on, or after a given event. It ends when
   * the runtime ends it; to continue, open it again after the last received event.
   *
   * @throws WbError      when the runtime refused
   * @throws Unreachable  when no runtime responded, or the connection broke
   */
  events<T extends Route>(
    route: T,
    request: ClientRequest<T>,
    options?: EventOptions,
  ): AsyncGenerator<ServerEvent>
  /** Sends any request, and returns any response, including errors. */
  raw(call: RawCall): Promise<Incoming>
}

type Item<T> = ReplyBody<T> extends { items: (infer I)[] } ? I : never

/** Input of a request whose route type is unknown. */
interface RequestParts {
  params?: Record<string, string>
  query?: Record<string, unknown>
  body?: unknown
}

const ignoredHeader = 'x-workbase-ignored'
const eventStream = 'text/event-stream'

/** Creates a client of one runtime. It reads no configuration or environment, and loads no schema. */
export function openClient(connection: Connection): Client {
  const base = connection.baseUrl.replace(/\/+$/, '')

  async function send(path: string, outgoing: Outgoing): Promise<Incoming> {
    const headers = { accept: 'application/json', ...connection.headers, ...outgoing.headers }
    return connection.fetch(base + path, { signal: connection.signal, ...outgoing, headers })
  }

  async function sendTyped(
    route: Route,
    parts: RequestParts,
    { headers, ...options }: CallOptions & Pick<RawCall, 'headers'>,
  ): Promise<Incoming> {
    const body = encodeBody(route, parts.body)
    const answer = await send(pathOf(route, parts), {
      method: route.method,
      ...body,
      ...options,
      headers: { ...body.headers, ...headers },
    })
    if (answer.status >= 300) throw await errorFromResponse(answer)
    const ignored = answer.headers.get(ignoredHeader)
    if (ignored) connection.onIgnored?.(parseIgnoredNames(ignored))
    return answer
  }

  async function call(route: Route, parts: RequestParts, options: CallOptions = {}): Promise<unknown> {
    const answer = await sendTyped(route, parts, options)
    const value = await decodeBody(answer)
    const isEmpty = answer.status === 204
    if (!isEmpty && (typeof value !== 'object' || value === null)) throw notARuntime(answer)
    return value
  }

  async function* items(route: Route, parts: RequestParts, options?: CallOptions): AsyncGenerator<unknown> {
    yield* readPages(async cursor => {
      const query = { limit: limits.pageMax, ...parts.query, cursor: cursor ?? undefined }
      return (await call(route, { ...parts, query }, options)) as Page
    })
  }

  async function* stream(
    route: Route,
    parts: RequestParts,
    options: CallOptions = {},
  ): AsyncGenerator<unknown> {
    const answer = await sendTyped(route, parts, options)
    if (answer.body)
      for await (const line of readLines(answer.body)) if (line !== '') yield parseJsonOf(answer, line)
  }

  async function* events(
    route: Route,
    parts: RequestParts,
    { lastEventId, ...options }: EventOptions = {},
  ): AsyncGenerator<ServerEvent> {
    const after = lastEventId === undefined ? undefined : { 'last-event-id': lastEventId }
    const answer = await sendTyped(route, parts, { ...options, headers: { accept: eventStream, ...after } })
    if (!answer.headers.get('content-type')?.startsWith(eventStream) || !answer.body) {
      await answer.text()
      throw notARuntime(answer)
    }
    yield* readEvents(answer.body, options.signal ?? connection.signal)
  }

  const raw = ({ path, headers = {}, ...call }: RawCall) => send(path, { ...call, headers })
  return { call, items, stream, events, raw } as Client
}

/** Parses the names in the header. A name with an invalid encoding is returned unchanged. */
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
 * Returns the path of a request: parameters are percent-encoded, and set query fields are added.
 *
 * @throws invalid_request  when a parameter is empty, `.` or `..`, which a URL would not keep as a name
 */
export function pathOf(route: Pick<Route, 'path'>, { params = {}, query = {} }: RequestParts): string {
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => {
    const value = params[name] ?? ''
    if (/^\.{0,2}$/.test(value)) throw new WbError('invalid_request', `${name} may not be "${value}"`)
    return encodeURIComponent(value)
  })
  const fields = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) fields.set(name, String(value))
  return fields.size === 0 ? path : `${path}?${fields}`
}

function encodeBody(route: Route, body: unknown): Pick<Outgoing, 'headers' | 'body'> {
  if (route.body?.kind === 'ndjson')
    return {
      headers: { 'content-type': 'application/x-ndjson' },
      body: jsonLines(body as AsyncIterable<unknown>),
    }
  if (route.body?.kind === 'multipart') return encodeForm(body as FormData)
  if (route.body) return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body ?? {}) }
  return { headers: {} }
}

/** Encodes a form, with a boundary chosen by the platform. */
function encodeForm(form: FormData): Pick<Outgoing, 'headers' | 'body'> {
  const { headers, body } = new Response(form)
  return { headers: { 'content-type': headers.get('content-type')! }, body: body ?? '' }
}

async function* jsonLines(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const value of values) yield* cutIntoPieces(encoder.encode(`${JSON.stringify(value)}\n`))
}

async function decodeBody(answer: Incoming): Promise<unknown> {
  const text = await answer.text()
  if (answer.status === 204 || text === '') return undefined
  return answer.headers.get('content-type')?.includes('json') ? parseJsonOf(answer, text) : text
}

function parseJsonOf(answer: Incoming, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The message of JSON.parse quotes the response, which may contain a token or a key.
    throw new Unreachable(`${originOf(answer)} sent incomplete JSON`, 'Send the request again.')
  }
}

interface Page {
  readonly items: readonly unknown[]
  readonly nextCursor: string | null
}

/**
 * Yields the items of all pages, starting with the first.
 *
 * @param read  returns a page by its cursor; null for the first page
 * @throws Unreachable  when a response is not a page, or a cursor repeats
 */
export async function* readPages(read: (cursor: string | null) => Promise<Page>): AsyncGenerator<unknown> {
  let cursor: string | null = null
  let mark: string | null = null
  for (let count = 1; ; count++) {
    const page: Page = await read(cursor)
    if (!Array.isArray(page.items)) throw unexpectedResponse('the runtime sent a list without items')
    yield* page.items
    cursor = page.nextCursor ?? null
    if (cursor === null) return
    if (cursor === mark) throw unexpectedResponse('the runtime sent the same page of a list twice')
    // Moved at powers of two, which detects a cycle of any length (Brent's algorithm).
    if ((count & (count - 1)) === 0) mark = cursor
  }
}

/** Returns all items of a list. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
