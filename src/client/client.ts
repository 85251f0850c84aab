import { WbError } from '../contract/errors.ts'
import type { Reply, Request, Route, ServerEvent } from '../contract/route.ts'
import { eventsOf } from './events.ts'
import { failure, stranger, where } from './failure.ts'
import { lines } from './lines.ts'
import { inPieces } from './pieces.ts'
import type { Fetch, Incoming, Outgoing } from './transport.ts'
import { notOurs, Unreachable } from './unreachable.ts'

/** Where a runtime is, and how to reach it. */
export interface Connection {
  /** Origin of the runtime, with its path prefix if it has one. */
  baseUrl: string
  fetch: Fetch
  /** Sent with every request. */
  headers?: Record<string, string>
  /** Called with the names of what a request held and the runtime ignored. */
  onIgnored?: (names: string[]) => void
  /** Ends every call that brings no signal of its own. */
  signal?: AbortSignal
}

export interface CallOptions {
  signal?: AbortSignal
  /** Told how many bytes of the body have left; from the first on where it is sent again. */
  onSent?: (bytes: number) => void
}

export interface EventOptions extends CallOptions {
  /** Id of the event to go on after. */
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
   * Call a route.
   *
   * @throws WbError the runtime refused, with `requestId` in its facts
   * @throws Unreachable no runtime answered
   */
  call<T extends Route>(route: T, request: Request<T>, options?: CallOptions): Promise<Reply<T>>
  /** Call a list route page after page; ends after the last item. */
  items<T extends Route>(route: T, request: Request<T>, options?: CallOptions): AsyncGenerator<Item<T>>
  /** Call a route that answers in lines of JSON. Lines are given as they come. */
  stream<T extends Route>(route: T, request: Request<T>, options?: CallOptions): AsyncGenerator<unknown>
  /**
   * Call a route for its event stream: what happens from now on, or after an event. It ends when the runtime ends it;
   * to go on, open it again after the last event that came.
   *
   * @throws WbError the runtime refused
   * @throws Unreachable no runtime answered, or the connection broke
   */
  events<T extends Route>(route: T, request: Request<T>, options?: EventOptions): AsyncGenerator<ServerEvent>
  /** Any request; whatever comes back is returned, errors too. */
  raw(call: RawCall): Promise<Incoming>
}

type Item<T> = Reply<T> extends { items: (infer I)[] } ? I : never

/** What a request looks like when its route is not known. */
interface Parts {
  params?: Record<string, string>
  query?: Record<string, unknown>
  body?: unknown
}

const ignoredHeader = 'x-workbase-ignored'
const eventStream = 'text/event-stream'

/** A client of one runtime. It reads nothing but its arguments, and loads no schema. */
export function connect(connection: Connection): Client {
  const base = connection.baseUrl.replace(/\/+$/, '')

  async function send(path: string, outgoing: Outgoing): Promise<Incoming> {
    const headers = { accept: 'application/json', ...connection.headers, ...outgoing.headers }
    return connection.fetch(base + path, { signal: connection.signal, ...outgoing, headers })
  }

  async function answered(
    route: Route,
    parts: Parts,
    { headers, ...options }: CallOptions & Pick<RawCall, 'headers'>,
  ): Promise<Incoming> {
    const body = encoded(route, parts.body)
    const answer = await send(pathOf(route, parts), {
      method: route.method,
      ...body,
      ...options,
      headers: { ...body.headers, ...headers },
    })
    if (answer.status >= 300) throw await failure(answer)
    const ignored = answer.headers.get(ignoredHeader)
    if (ignored) connection.onIgnored?.(namesIn(ignored))
    return answer
  }

  async function call(route: Route, parts: Parts, options: CallOptions = {}): Promise<unknown> {
    const answer = await answered(route, parts, options)
    const value = await decoded(answer)
    const isEmpty = answer.status === 204
    if (!isEmpty && (typeof value !== 'object' || value === null)) throw stranger(answer)
    return value
  }

  async function* items(route: Route, parts: Parts, options?: CallOptions): AsyncGenerator<unknown> {
    yield* pages(async cursor => {
      const query: Record<string, unknown> = cursor === null ? { ...parts.query } : { ...parts.query, cursor }
      return (await call(route, { ...parts, query }, options)) as Page
    })
  }

  async function* stream(route: Route, parts: Parts, options: CallOptions = {}): AsyncGenerator<unknown> {
    const answer = await answered(route, parts, options)
    if (answer.body) for await (const line of lines(answer.body)) if (line !== '') yield parsed(answer, line)
  }

  async function* events(
    route: Route,
    parts: Parts,
    { lastEventId, ...options }: EventOptions = {},
  ): AsyncGenerator<ServerEvent> {
    const after = lastEventId === undefined ? undefined : { 'last-event-id': lastEventId }
    const answer = await answered(route, parts, { ...options, headers: { accept: eventStream, ...after } })
    if (!answer.headers.get('content-type')?.startsWith(eventStream) || !answer.body) {
      await answer.text()
      throw stranger(answer)
    }
    yield* eventsOf(answer.body, options.signal ?? connection.signal)
  }

  const raw = ({ path, headers = {}, ...call }: RawCall) => send(path, { ...call, headers })
  return { call, items, stream, events, raw } as Client
}

/** The names in a list of ours; one that is not encoded as we do is taken as it stands. */
function namesIn(list: string): string[] {
  return list.split(',').map(name => {
    try {
      return decodeURIComponent(name.trim())
    } catch {
      return name.trim()
    }
  })
}

/**
 * The path of a request: every parameter percent-encoded, a query value per field that is set.
 *
 * @throws WbError invalid_request  a parameter is `.` or `..`, which an URL takes for a step and not for a name
 */
export function pathOf(route: Pick<Route, 'path'>, { params = {}, query = {} }: Parts): string {
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => {
    const value = params[name] ?? ''
    if (/^\.{0,2}$/.test(value)) throw new WbError('invalid_request', `${name} may not be "${value}"`)
    return encodeURIComponent(value)
  })
  const fields = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) fields.set(name, String(value))
  return fields.size === 0 ? path : `${path}?${fields}`
}

function encoded(route: Route, body: unknown): Pick<Outgoing, 'headers' | 'body'> {
  if (route.body?.kind === 'ndjson')
    return {
      headers: { 'content-type': 'application/x-ndjson' },
      body: jsonLines(body as AsyncIterable<unknown>),
    }
  if (route.body?.kind === 'multipart') return packed(body as FormData)
  if (route.body) return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body ?? {}) }
  return { headers: {} }
}

/** A form as it travels, under a boundary of the platform's choice. */
function packed(form: FormData): Pick<Outgoing, 'headers' | 'body'> {
  const { headers, body } = new Response(form)
  return { headers: { 'content-type': headers.get('content-type')! }, body: body ?? '' }
}

async function* jsonLines(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const value of values) yield* inPieces(encoder.encode(`${JSON.stringify(value)}\n`))
}

async function decoded(answer: Incoming): Promise<unknown> {
  const text = await answer.text()
  if (answer.status === 204 || text === '') return undefined
  return answer.headers.get('content-type')?.includes('json') ? parsed(answer, text) : text
}

function parsed(answer: Incoming, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // What JSON.parse says quotes the answer, which may hold a token or a key.
    throw new Unreachable(
      `${where(answer)} answered with JSON that is cut short`,
      'Send the same request again.',
    )
  }
}

/** One page of a list. */
interface Page {
  readonly items: readonly unknown[]
  readonly nextCursor: string | null
}

/**
 * The items of all pages, from the first on.
 *
 * @param read  a page by its cursor, null for the first
 * @throws Unreachable  an answer is no page, or the cursors lead back to where they were
 */
export async function* pages(read: (cursor: string | null) => Promise<Page>): AsyncGenerator<unknown> {
  let cursor: string | null = null
  let mark: string | null = null
  for (let count = 1; ; count++) {
    const page: Page = await read(cursor)
    if (!Array.isArray(page.items)) throw notOurs('a list was answered without its items')
    yield* page.items
    cursor = page.nextCursor ?? null
    if (cursor === null) return
    if (cursor === mark) throw notOurs('the pages of a list begin anew')
    // Moved at powers of two, so that a circle of any length is noticed.
    if ((count & (count - 1)) === 0) mark = cursor
  }
}

/** Every item of a list. */
export async function everything<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
