import { describe, expect, test, vi } from 'vitest'
import { WbError } from '../../src/contract/errors.ts'
import { limits } from '../../src/contract/limits.ts'
import type { NdjsonLine } from '../../src/contract/route.ts'
import { errorOf, stage } from './stage.ts'

const headers = { 'content-type': 'application/x-ndjson' }
const line = 'POST /api/v1/notes/batch'
const streamed = (pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): RequestInit => ({
  headers,
  body: ReadableStream.from(pieces),
  duplex: 'half',
})
const linesOf = async (response: Response) =>
  (await response.text())
    .split('\n')
    .filter(Boolean)
    .map(text => JSON.parse(text))

describe('lines in', () => {
  test('each line is read and refused on its own, blank ones are counted', async () => {
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
    const response = await stage().send(line, { headers, body })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    expect(await linesOf(response)).toEqual([
      { line: 1, code: null },
      { line: 4, code: 'validation_error' },
      { line: 5, code: 'validation_error' },
      { line: 6, code: 'validation_error' },
      { line: 7, code: 'validation_error' },
      { line: 8, code: 'invalid_metadata' },
      { line: 9, code: null },
    ])
  })

  test('where the pieces of the stream are cut does not matter', async () => {
    const bytes = Buffer.from('{"name":"é"}\n{"name":"ü"}\n\n{"name":"x"}')
    for (const size of [1, 2, 3, 7, 13, 100]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      )
      const found = await linesOf(await stage().send(line, streamed(pieces)))
      expect(found).toEqual([1, 2, 4].map(at => ({ line: at, code: null })))
    }
  })

  test('an empty body has no lines', async () => {
    expect(await linesOf(await stage().send(line, { headers, body: '' }))).toEqual([])
  })

  test('JSON by another name is refused', async () => {
    const response = await stage().send(line, { headers: { 'content-type': 'application/json' }, body: '{}' })
    expect(response.status).toBe(400)
  })

  test('S8-02 S7.3-payload_too_large: 50,000,000 bytes pass, one more is refused where it begins', async () => {
    const first = Buffer.from('{"name":"a"}\n')
    const rest = Buffer.alloc(limits.ingestBodyBytes - first.length, ' ')
    expect(await linesOf(await stage().send(line, streamed([first, rest])))).toEqual([
      { line: 1, code: null },
    ])
    const over = await stage().send(line, streamed([first, rest, Buffer.from(' ')]))
    expect(over.status).toBe(200)
    expect(await linesOf(over)).toMatchObject([{ line: 1 }, { error: { code: 'payload_too_large' } }])
    const declared = { ...headers, 'content-length': String(limits.ingestBodyBytes + 1) }
    expect((await stage().send(line, { headers: declared, body: ' ' })).status).toBe(413)
  })

  test('lines are read as they are asked for', async () => {
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
    expect(await linesOf(await stage({ notes: { batch } }).send(line, streamed(endless())))).toHaveLength(2)
    expect(sent).toBeLessThan(10)
  })
})

describe('lines out', () => {
  const answering = (objects: () => AsyncGenerator<object>) =>
    stage({ notes: { batch: () => ({ status: 200, body: objects() }) } })

  test('what fails before the first line has its own status', async () => {
    // biome-ignore lint/correctness/useYield: it fails before its first line
    const { send, app } = answering(async function* () {
      throw new WbError('not_found', 'nothing here')
    })
    const response = await send(line, { headers, body: '' })
    expect([response.status, (await errorOf(response)).code]).toEqual([404, 'not_found'])
    expect(app.inFlight).toBe(0)
  })

  test('what fails later ends the stream with the envelope, and the log has the cause', async () => {
    const { send, logged, app } = answering(async function* () {
      yield { line: 1 }
      throw new TypeError('broke at /home/someone')
    })
    const response = await send(line, { headers, body: '' })
    expect(await linesOf(response)).toMatchObject([{ line: 1 }, { error: { code: 'internal_error' } }])
    expect(
      logged.some(({ level, facts }) => level === 'error' && String(facts.error).includes('broke')),
    ).toBe(true)
    expect(app.inFlight).toBe(0)
  })

  test('the next line is made when the last was taken, and a reader who leaves ends it', async () => {
    let made = 0
    const ended = vi.fn()
    const { send, app } = answering(async function* () {
      try {
        for (;;) yield { line: ++made }
      } finally {
        ended()
      }
    })
    const response = await send(line, { headers, body: '' })
    const reader = response.body!.getReader()
    await reader.read()
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(made).toBeLessThan(5)
    expect(app.inFlight).toBe(1)
    await reader.cancel()
    await expect.poll(() => ended.mock.calls.length === 1).toBe(true)
    expect(app.inFlight).toBe(0)
  })
})
