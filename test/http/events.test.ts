import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import type { AuditEvent } from '../../src/access/audit-trail.ts'
import {
  type AuthContext,
  anonymousContext,
  operatorContext,
  verifiedContext,
} from '../../src/access/subject.ts'
import { readEvents } from '../../src/client/read-events.ts'
import { anyCaller } from '../../src/contract/access.ts'
import { WbError } from '../../src/contract/errors.ts'
import { route, type ServerEvent } from '../../src/contract/route.ts'
import { createApp } from '../../src/http/app.ts'
import type { LocalFacts } from '../../src/http/incoming-request.ts'
import { createNodeListener } from '../../src/http/node-listener.ts'
import { openAccess } from '../harness/open-access.ts'
import { TestClock } from '../harness/runtime.ts'
import { settings } from './test-app.ts'

const api = {
  ticks: {
    follow: route({
      method: 'GET',
      path: '/api/v1/ticks',
      summary: 'Follow',
      access: anyCaller,
      replies: { 200: z.object({}) },
      events: { tick: z.object({ text: z.string() }) },
      errors: [],
    }),
  },
}

/** A source of events that the test provides, one per request for an event. */
class TestEvents implements AsyncIterableIterator<ServerEvent> {
  requestCount = 0
  returnCount = 0
  #answers: ((result: Promise<IteratorResult<ServerEvent>>) => void)[] = []
  #ready: Promise<IteratorResult<ServerEvent>>[] = []

  next() {
    this.requestCount++
    const ready = this.#ready.shift()
    return ready ?? new Promise<IteratorResult<ServerEvent>>(resolve => this.#answers.push(resolve))
  }
  async return(): Promise<IteratorResult<ServerEvent>> {
    this.returnCount++
    return { done: true, value: undefined }
  }
  [Symbol.asyncIterator]() {
    return this
  }
  give(value: ServerEvent) {
    this.#settle(Promise.resolve({ done: false, value }))
  }
  end() {
    this.#settle(Promise.resolve({ done: true, value: undefined }))
  }
  break(error: Error) {
    const broken = Promise.reject(error)
    broken.catch(() => {})
    this.#settle(broken)
  }
  #settle(result: Promise<IteratorResult<ServerEvent>>) {
    const answer = this.#answers.shift()
    if (answer) answer(result)
    else this.#ready.push(result)
  }
}

function tick(id: string, text = id): ServerEvent {
  return { id, event: 'tick', data: { text } }
}

function createTickServer() {
  const clock = new TestClock()
  const source = new TestEvents()
  const logged: { level: string; facts: object; message: string }[] = []
  const audited: AuditEvent[] = []
  const log = (level: string) => (facts: object, message: string) =>
    void logged.push({ level, facts, message })
  const callers = { authenticate: (): AuthContext => anonymousContext('apiKey') }
  const app = createApp({
    api,
    handlers: {
      ticks: {
        follow: (_input, { follows }) =>
          follows ? { status: 200, events: source } : { status: 200, body: {} },
      },
    },
    authenticate: () => callers.authenticate(),
    anonymous: anonymousContext('apiKey'),
    scopeToWorkspace: auth => auth,
    audit: {
      note: (_actor, event) => void audited.push(event),
      draft: () => {
        throw new Error('nothing is recorded here')
      },
    },
    rowAccess: openAccess,
    log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    clock,
    settings,
  })
  const open = async (init: RequestInit = {}) => {
    const headers = { accept: 'text/event-stream', ...(init.headers as Record<string, string>) }
    const answer = await app.fetch(new Request('http://localhost/api/v1/ticks', { ...init, headers }))
    return { answer, reader: answer.body!.getReader() }
  }
  return { app, clock, source, logged, audited, callers, open }
}

const decoder = new TextDecoder()
type Reader = ReadableStreamDefaultReader<Uint8Array>
async function read(reader: Reader): Promise<string | undefined> {
  const { done, value } = await reader.read()
  return done ? undefined : decoder.decode(value)
}

describe('an event stream', () => {
  test('has headers that prevent caching and buffering, and starts with the first event', async () => {
    const { open, source } = createTickServer()
    const { answer, reader } = await open()
    expect(answer.status).toBe(200)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.stringMatching(/^\S+$/),
    })
    expect(await read(reader)).toBe('')
    source.give(tick('1'))
    expect(await read(reader)).toMatch(/^event: tick\n/)
  })

  test('is sent only to clients that accept it', async () => {
    const { app } = createTickServer()
    const get = (accept?: string) =>
      app.fetch(new Request('http://localhost/api/v1/ticks', { headers: accept ? { accept } : {} }))
    for (const accept of [undefined, '*/*', 'application/json', 'text/html'])
      expect((await get(accept)).headers.get('content-type')).toBe('application/json')
    const both = await get('application/json, text/event-stream;q=0.9')
    expect(both.headers.get('content-type')).toBe('text/event-stream')
    await both.body!.cancel()
  })

  test('writes an event as a name, one line of data and an ID, whatever the text', async () => {
    const { open, source } = createTickServer()
    const { reader } = await open()
    await read(reader)
    source.give(tick('7', 'two\nlines\r and \u2028 more\n\nid: 8'))
    expect(await read(reader)).toBe(
      'event: tick\ndata: {"text":"two\\nlines\\r and \u2028 more\\n\\nid: 8"}\nid: 7\n\n',
    )
  })

  test('applies the schema to the data', async () => {
    const { open, source } = createTickServer()
    const { reader } = await open()
    await read(reader)
    source.give({ id: '1', event: 'tick', data: { text: 'a', digest: 'scrypt$1$2' } })
    expect(await read(reader)).toBe('event: tick\ndata: {"text":"a"}\nid: 1\n\n')
  })

  test.each([
    ['an ID with a line end', { ...tick('1'), id: '1\nevent: forged' }],
    ['an undeclared name', { ...tick('1'), event: 'tick\rdata: {}' }],
    ['data that does not match its declaration', { ...tick('1'), data: { text: 7 } }],
  ])('ends the stream with an internal error for %s', async (_, event) => {
    const { open, source, logged, app } = createTickServer()
    const { reader } = await open()
    await read(reader)
    source.give(event)
    expect(await read(reader)).toBeUndefined()
    expect(logged).toContainEqual(expect.objectContaining({ level: 'error', message: 'a stream failed' }))
    expect([source.returnCount, app.inFlight]).toEqual([1, 0])
  })

  test('sends a ping after 15 seconds without events, and none if events come sooner', async () => {
    const { open, source, clock } = createTickServer()
    const { reader } = await open()
    await read(reader)
    for (let round = 0; round < 3; round++) {
      const next = read(reader)
      clock.advance(14_999)
      clock.advance(1)
      expect(await next).toBe(': ping\n\n')
    }
    for (const id of ['1', '2', '3']) {
      const next = read(reader)
      clock.advance(10_000)
      source.give(tick(id))
      expect(await next).toContain(`id: ${id}\n`)
    }
    const next = read(reader)
    clock.advance(15_000)
    expect(await next).toBe(': ping\n\n')
  })

  test('sends a pending event to a slow reader instead of a ping', async () => {
    const { open, source, clock } = createTickServer()
    const { reader } = await open()
    await read(reader)
    source.give(tick('1'))
    clock.advance(15_000)
    expect(await read(reader)).toContain('id: 1\n')
  })

  test('requests an event when the reader reads, and no further one in advance', async () => {
    const { open, source, clock } = createTickServer()
    const { reader } = await open()
    expect(source.requestCount).toBe(0)
    await read(reader)
    for (let n = 0; n < 50; n++) source.give(tick(String(n)))
    clock.advance(3_600_000)
    await new Promise(setImmediate)
    expect(source.requestCount).toBe(0)
    expect(await read(reader)).toContain('id: 0\n')
    expect(await read(reader)).toContain('id: 1\n')
    await new Promise(setImmediate)
    expect(source.requestCount).toBe(2)
  })

  test('writes the first events to the socket before it requests the next ones', async () => {
    const { app, source } = createTickServer()
    const unsent: (number | undefined)[] = []
    let socket: Socket | undefined
    const next = source.next.bind(source)
    source.next = () => {
      unsent.push(socket?.writableLength)
      return next()
    }
    for (let n = 1; n <= 20; n++) source.give(tick(String(n)))
    source.end()
    const server = createServer(createNodeListener(app, () => 1)).on('connection', opened => {
      socket = opened
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const headers = { accept: 'text/event-stream' }
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/ticks`, { headers })
    expect((await answer.text()).match(/^event: tick$/gm)).toHaveLength(20)
    expect(unsent.slice(1, 5)).toEqual([0, 0, 0, 0])
  })

  test('ends when its source ends', async () => {
    const { open, source, app } = createTickServer()
    const { reader } = await open()
    await read(reader)
    source.end()
    expect(await read(reader)).toBeUndefined()
    expect(app.inFlight).toBe(0)
  })

  test('ends when its source fails, without the reason on the wire', async () => {
    const { open, source, logged, app } = createTickServer()
    const { reader } = await open()
    await read(reader)
    const next = read(reader)
    source.break(new Error('the disk is gone'))
    expect(await next).toBeUndefined()
    expect(logged.at(-1)).toMatchObject({ level: 'error', message: 'a stream failed' })
    expect(app.inFlight).toBe(0)
  })

  test('closes its source when the reader disconnects, also while it waits for an event', async () => {
    for (const isWaiting of [true, false]) {
      const { open, source, app } = createTickServer()
      const { reader } = await open()
      await read(reader)
      if (isWaiting) void read(reader)
      expect(app.inFlight).toBe(1)
      await reader.cancel()
      expect([source.returnCount, app.inFlight]).toEqual([1, 0])
    }
  })

  test('ends when the request is aborted', async () => {
    const { open, source, app } = createTickServer()
    const interrupt = new AbortController()
    const { reader } = await open({ signal: interrupt.signal })
    await read(reader)
    const next = read(reader)
    interrupt.abort()
    expect(await next).toBeUndefined()
    expect([source.returnCount, app.inFlight]).toEqual([1, 0])
  })

  test('ends immediately when the runtime drains, so the runtime becomes idle', async () => {
    const { open, source, app } = createTickServer()
    const [one, other] = [await open(), await open()]
    await read(one.reader)
    const next = read(one.reader)
    expect(app.inFlight).toBe(2)
    app.drain()
    expect(await next).toBeUndefined()
    expect(await read(other.reader)).toBe('')
    expect(await read(other.reader)).toBeUndefined()
    await app.idle()
    expect([source.returnCount, app.inFlight]).toEqual([2, 0])
  })

  test.each(['drains', 'receives an abort'])(
    'ends immediately if the runtime %s while the stream opens',
    async end => {
      const { open, source, app, callers } = createTickServer()
      const called = new AbortController()
      callers.authenticate = () => {
        if (end === 'drains') app.drain()
        else called.abort()
        return anonymousContext('apiKey')
      }
      const { reader } = await open({ signal: called.signal })
      expect(await read(reader)).toBe('')
      expect(await read(reader)).toBeUndefined()
      expect([source.returnCount, app.inFlight]).toEqual([1, 0])
    },
  )

  test('many streams on one runtime cause no listener warnings', async () => {
    const warned = vi.spyOn(process, 'emitWarning')
    const { open, app } = createTickServer()
    const eventsIn = await Promise.all(Array.from({ length: 40 }, () => open()))
    app.drain()
    for (const { reader } of eventsIn) await reader.read()
    await app.idle()
    expect(warned).not.toHaveBeenCalled()
  })
})

describe('a caller that loses access while it reads', () => {
  test('is disconnected at the next ping, and receives no event after it', async () => {
    const { open, source, clock, callers, logged, app } = createTickServer()
    const { reader } = await open()
    await read(reader)
    callers.authenticate = () => {
      throw new WbError('unauthorized', 'the key was revoked')
    }
    source.give(tick('1'))
    expect(await read(reader)).toContain('id: 1\n')
    source.give(tick('2'))
    clock.advance(15_000)
    expect(await read(reader)).toBeUndefined()
    expect([source.returnCount, app.inFlight]).toEqual([1, 0])
    expect(logged.filter(({ level }) => level !== 'debug')).toEqual([
      { level: 'info', facts: expect.anything(), message: 'a stream ended' },
    ])
  })

  test('S3-03: receives no event more than a second after its last check, regardless of the event rate', async () => {
    const { open, source, clock, callers } = createTickServer()
    const { reader } = await open()
    await read(reader)
    let requestCount = 0
    callers.authenticate = () => {
      requestCount++
      return anonymousContext('apiKey')
    }
    for (const [id, ms, times] of [
      ['1', 999, 0],
      ['2', 1, 1],
      ['3', 999, 1],
      ['4', 1, 2],
    ] as const) {
      clock.advance(ms)
      source.give(tick(id))
      expect(await read(reader)).toContain(`id: ${id}\n`)
      expect(requestCount).toBe(times)
    }
    callers.authenticate = () => {
      throw new WbError('unauthorized', 'the key was revoked')
    }
    const next = read(reader)
    clock.advance(1_000)
    source.give(tick('5'))
    expect(await next).toBeUndefined()
    expect(source.returnCount).toBe(1)
  })

  test('is disconnected while it waits', async () => {
    const { open, clock, callers } = createTickServer()
    const { reader } = await open()
    await read(reader)
    const next = read(reader)
    callers.authenticate = () => {
      throw new WbError('control_plane_unavailable', 'nobody knows')
    }
    clock.advance(15_000)
    expect(await next).toBeUndefined()
  })
})

describe('many streams of one caller', () => {
  const peer = (address: string) => ({ encrypted: false, address })
  const subject = (id: string) => ({ ...operatorContext('apiKey', id).subject!, type: 'apiKey' as const })

  test.each([
    ['an address', anonymousContext('apiKey')],
    ['a key', verifiedContext('apiKey', subject('one'))],
  ])('are rejected for %s after 32 until one ends, and other callers are not affected', async (_, auth) => {
    const { app, callers } = createTickServer()
    const ask = async (within?: LocalFacts) =>
      app.fetch(
        new Request('http://localhost/api/v1/ticks', {
          headers: { accept: 'text/event-stream', host: 'localhost' },
        }),
        within,
      )
    const [mine, theirs] = [{ peer: peer('192.0.2.1') }, { peer: peer('192.0.2.2') }]
    callers.authenticate = () => auth
    const all = await Promise.all(Array.from({ length: 32 }, () => ask(mine)))
    expect(all.map(({ status }) => status)).toEqual(Array(32).fill(200))
    const refused = await ask(mine)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '15'])
    expect(await refused.json()).toMatchObject({ error: { code: 'rate_limited' } })
    expect(app.inFlight).toBe(32)
    expect((await ask(theirs)).status).toBe(auth.anonymous ? 200 : 429)
    expect((await ask()).status).toBe(200)
    callers.authenticate = () => verifiedContext('apiKey', subject('other'))
    expect((await ask(mine)).status).toBe(200)
    callers.authenticate = () => auth
    await all[7]!.body!.cancel()
    expect((await ask(mine)).status).toBe(200)
    expect((await ask(mine)).status).toBe(429)
    app.drain()
  })
})

describe('the client of an event stream', () => {
  async function* encodeParts(...parts: string[]): AsyncGenerator<Uint8Array> {
    for (const part of parts) yield new TextEncoder().encode(part)
  }
  async function all(...parts: string[]): Promise<ServerEvent[]> {
    const found: ServerEvent[] = []
    for await (const event of readEvents(encodeParts(...parts), undefined)) found.push(event)
    return found
  }

  test("parses the server's output in chunks of any size", async () => {
    const { open, source } = createTickServer()
    const { answer, reader } = await open()
    reader.releaseLock()
    const given = [tick('a', 'ümläut\n'), tick('b', '\u{1f600}\r\n: ping')]
    for (const event of given) source.give(event)
    source.end()
    const text = await answer.text()
    expect(await all(text)).toEqual(given)
    const whole = new TextEncoder().encode(text)
    async function* bytewise() {
      for (const byte of whole) yield Uint8Array.of(byte)
    }
    const found: ServerEvent[] = []
    for await (const event of readEvents(bytewise(), undefined)) found.push(event)
    expect(found).toEqual(given)
  })

  test('parses streams of other servers', async () => {
    expect(await all(': hello\r\n\r\nid:1\r\nevent: x\r\ndata:{"a":\r\ndata:1}\r\n\r\n')).toEqual([
      { id: '1', event: 'x', data: { a: 1 } },
    ])
    expect(await all('id: 1\ndata: {}\n\ndata: []\n\nretry: 5\nunknown\n\n')).toEqual([
      { id: '1', event: 'message', data: {} },
      { id: '1', event: 'message', data: [] },
    ])
    expect(await all('data: {}\n')).toEqual([])
  })

  test.each([['data: 7\n\n'], ['data: {"a\n\n'], [`data: "${'x'.repeat(4_000_001)}"\n\n`]])(
    'reports invalid data as such: %.12s',
    async text => {
      await expect(all(text)).rejects.toMatchObject({ name: 'Unreachable' })
    },
  )

  test('distinguishes a broken connection from a defect', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield new TextEncoder().encode('id: 1\ndata: {}\n\n')
      throw Object.assign(new Error('aborted'), { code: 'ECONNRESET' })
    }
    const events = readEvents(broken(), undefined)
    expect((await events.next()).value).toEqual({ id: '1', event: 'message', data: {} })
    await expect(events.next()).rejects.toMatchObject({ name: 'Unreachable' })
  })
})
