import { describe, expect, test, vi } from 'vitest'
import { WbError } from '../../src/contract/errors.ts'
import { limits } from '../../src/contract/limits.ts'
import type { NdjsonLine } from '../../src/contract/route.ts'
import { createTestApp, errorOf } from './test-app.ts'

const headers = { 'content-type': 'application/x-ndjson' }
const line = 'POST /api/v1/notes/batch'
const streamed = (pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): RequestInit => ({
  headers,
  body: ReadableStream.from(pieces),
  duplex: 'half',
})
const linesIn = async (response: Response) =>
  (await response.text())
    .split('\n')
    .filter(Boolean)
    .map(text => JSON.parse(text))

describe('incoming lines', () => {
  test('reads and rejects each line separately, and counts blank ones', async () => {
    const body = [
      '{"name":"a"}',
      '',
      '  \r',
      '{"name":""}',
      '{',
      `${'['.repeat(65)}${']'.repeat(65)}`,
      String.raw`{"name":"\u0000"}`,
      '{"name":"b","metadata":{"a":{}}}',
      '{"name":"c"}\r',
    ].join('\n')
    const response = await createTestApp().send(line, { headers, body })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    expect(await linesIn(response)).toEqual([
      { line: 1, code: null },
      { line: 4, code: 'validation_error' },
      { line: 5, code: 'validation_error' },
      { line: 6, code: 'validation_error' },
      { line: 7, code: 'validation_error' },
      { line: 8, code: 'invalid_metadata' },
      { line: 9, code: null },
    ])
  })

  test('does not depend on the chunk boundaries of the stream', async () => {
    const bytes = Buffer.from('{"name":"é"}\n{"name":"ü"}\n\n{"name":"x"}')
    for (const size of [1, 2, 3, 7, 13, 100]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      )
      const found = await linesIn(await createTestApp().send(line, streamed(pieces)))
      expect(found).toEqual([1, 2, 4].map(at => ({ line: at, code: null })))
    }
  })

  test('an empty body has no lines', async () => {
    expect(await linesIn(await createTestApp().send(line, { headers, body: '' }))).toEqual([])
  })

  test('rejects lines with the content type of JSON', async () => {
    const response = await createTestApp().send(line, {
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    expect(response.status).toBe(400)
  })

  test('S8-02 S7.3-payload_too_large: accepts 50,000,000 bytes, and rejects the line that exceeds them', async () => {
    const first = Buffer.from('{"name":"a"}\n')
    const rest = Buffer.alloc(limits.ingestBodyBytes - first.length, ' ')
    expect(await linesIn(await createTestApp().send(line, streamed([first, rest])))).toEqual([
      { line: 1, code: null },
    ])
    const over = await createTestApp().send(line, streamed([first, rest, Buffer.from(' ')]))
    expect(over.status).toBe(200)
    expect(await linesIn(over)).toMatchObject([{ line: 1 }, { error: { code: 'payload_too_large' } }])
    const declared = { ...headers, 'content-length': String(limits.ingestBodyBytes + 1) }
    expect((await createTestApp().send(line, { headers: declared, body: ' ' })).status).toBe(413)
  })

  test('reads lines on demand', async () => {
    let sent = 0
    async function* endless() {
      for (;;) {
        sent++
        yield Buffer.from('{"name":"a"}\n')
      }
    }
    const batch = ({ body }: { body: AsyncIterable<NdjsonLine<unknown>> }) =>
      ({ status: 200, body: firstTwo(body) }) as const
    async function* firstTwo(lines: AsyncIterable<NdjsonLine<unknown>>) {
      let count = 0
      for await (const each of lines) {
        yield { line: each.line }
        if (++count === 2) return
      }
    }
    expect(
      await linesIn(await createTestApp({ notes: { batch } }).send(line, streamed(endless()))),
    ).toHaveLength(2)
    expect(sent).toBeLessThan(10)
  })
})

describe('outgoing lines', () => {
  const answering = (objects: () => AsyncGenerator<object>) =>
    createTestApp({ notes: { batch: () => ({ status: 200, body: objects() }) } })

  test('a failure before the first line has its own status', async () => {
    // biome-ignore lint/correctness/useYield: it fails before its first line
    const { send, app } = answering(async function* () {
      throw new WbError('not_found', 'nothing here')
    })
    const response = await send(line, { headers, body: '' })
    expect([response.status, (await errorOf(response)).code]).toEqual([404, 'not_found'])
    expect(app.inFlight).toBe(0)
  })

  test('a later failure ends the stream with an error envelope, and is logged with its cause', async () => {
    const { send, logged, app } = answering(async function* () {
      yield { line: 1 }
      throw new TypeError('broke at /home/someone')
    })
    const response = await send(line, { headers, body: '' })
    expect(await linesIn(response)).toMatchObject([{ line: 1 }, { error: { code: 'internal_error' } }])
    expect(
      logged.some(({ level, facts }) => level === 'error' && String(facts.error).includes('broke')),
    ).toBe(true)
    expect(app.inFlight).toBe(0)
  })

  test('produces lines on demand, and stops when the client disconnects', async () => {
    let lineCount = 0
    const ended = vi.fn()
    const { send, app } = answering(async function* () {
      try {
        for (;;) yield { line: ++lineCount }
      } finally {
        ended()
      }
    })
    const response = await send(line, { headers, body: '' })
    const reader = response.body!.getReader()
    await reader.read()
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(lineCount).toBeLessThan(5)
    expect(app.inFlight).toBe(1)
    await reader.cancel()
    await expect.poll(() => ended.mock.calls.length === 1).toBe(true)
    expect(app.inFlight).toBe(0)
  })
})
