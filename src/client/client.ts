import { WbError } from '../contract/errors.ts'
import type { Reply, Request, Route } from '../contract/route.ts'
import { failure, stranger, where } from './failure.ts'
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
  items<T extends ListRoute>(route: T, request: Request<T>, options?: CallOptions): AsyncGenerator<Item<T>>
  /** Call a route that answers in lines of JSON. Lines are given as they come. */
  stream<T extends Route>(route: T, request: Request<T>, options?: CallOptions): AsyncGenerator<unknown>
  /** Any request; whatever comes back is returned, errors too. */
  raw(call: RawCall): Promise<Incoming>
}

/** A route whose reply is a page. */
export type ListRoute = Route
type Item<T> = Reply<T> extends { items: (infer I)[] } ? I : never

/** What a request looks like when its route is not known. */
interface Parts {
  params?: Record<string, string>
  query?: Record<string, unknown>
  body?: unknown
}

const ignoredHeader = 'x-workbase-ignored'
/** A line tells of one document. */
const lineCharsMax = 64_000_000

/** A client of one runtime. It reads nothing but its arguments, and loads no schema. */
export function connect(connection: Connection): Client {
  const base = connection.baseUrl.replace(/\/+$/, '')

  async function send(path: string, outgoing: Outgoing): Promise<Incoming> {
    const headers = { accept: 'application/json', ...connection.headers, ...outgoing.headers }
    return connection.fetch(base + path, { signal: connection.signal, ...outgoing, headers })
  }

  async function answered(route: Route, parts: Parts, options: CallOptions): Promise<Incoming> {
    const path = pathOf(route, parts)
    const answer = await send(path, { method: route.method, ...encoded(route, parts.body), ...options })
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
    if (answer.body) for await (const line of lines(answer.body)) yield parsed(answer, line)
  }

  const raw = ({ path, headers = {}, ...call }: RawCall) => send(path, { ...call, headers })
  return { call, items, stream, raw } as Client
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
  if (route.body) return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body ?? {}) }
  return { headers: {} }
}

async function* jsonLines(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const value of values) yield encoder.encode(`${JSON.stringify(value)}\n`)
}

async function decoded(answer: Incoming): Promise<unknown> {
  const text = await answer.text()
  if (answer.status === 204 || text === '') return undefined
  return answer.headers.get('content-type')?.includes('json') ? parsed(answer, text) : text
}

function parsed(answer: Incoming, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Unreachable(
      `${where(answer)} answered with JSON that is cut short`,
      'Send the same request again.',
      { cause },
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

/** The lines of a stream of UTF-8, without their ends; empty ones are left out. */
async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const part of body) {
    const [first = '', ...more] = decoder.decode(part, { stream: true }).split('\n')
    rest += first
    for (const next of more) {
      if (rest !== '') yield rest
      rest = next
    }
    if (rest.length > lineCharsMax)
      throw notOurs(`a line of the answer has more than ${lineCharsMax} characters`)
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}
