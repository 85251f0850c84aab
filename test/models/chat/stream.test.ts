import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WbError } from '../../../src/contract/errors.ts'
import type { CompletionSettings, ToolSpec } from '../../../src/models/chat/completion.ts'
import { openLearnedModels } from '../../../src/models/chat/learned-models.ts'
import { openChat } from '../../../src/models/chat/open-chat.ts'
import { normalizeToolArguments } from '../../../src/models/chat/tool-arguments.ts'
import type { ModelDependencies, ModelService } from '../../../src/models/endpoint.ts'
import { ProviderFailure } from '../../../src/models/provider/provider-failure.ts'
import { type FakeAnswer, streamedAnswer } from '../../fakes/chat-answer.ts'
import { type ChatServer, type ChatStep, refusals } from '../../fakes/chat-server.ts'
import { type ChatSetup, type ChatSetupOptions, readStream, setUpChat } from '../../harness/chat-setup.ts'
import { TestClock } from '../../harness/runtime.ts'

let place: ChatSetup
let provider: ChatServer
beforeEach(async () => {
  place = await setUpChat()
  provider = place.provider
})
afterEach(() => place.close())

const tool = (name: string): ToolSpec => ({ name, description: name, parameters: { type: 'object' } })
const messages = [{ role: 'user', content: 'Hi' }] as const
const tools = [tool('search_kb'), tool('mcp:files:read')]
const settings = (more: Partial<CompletionSettings> = {}): CompletionSettings => ({
  maxTokens: 64,
  signal: new AbortController().signal,
  tools,
  ...more,
})
const text = (delta: string) => ({ kind: 'text', delta })
const listen = (step: ChatStep, setting?: ChatSetupOptions) => {
  provider.script(step)
  return readStream(place.open(setting).stream(messages, settings()))
}

describe('a streamed answer', () => {
  test('is requested with token counts and ends with the complete answer', async () => {
    const { pieces, completion } = await listen({ text: 'One two three.' })
    expect(pieces).toEqual(['One', ' two', ' three.'])
    expect(completion).toEqual({
      text: 'One two three.',
      reasoning: '',
      reasoningTokens: null,
      toolCalls: [],
      finishReason: 'stop',
      tokenCount: 11,
      promptTokens: 8,
      completionTokens: 3,
      costUsd: null,
    })
    const { stream, stream_options } = provider.received[0]!.body
    expect({ stream, stream_options }).toEqual({ stream: true, stream_options: { include_usage: true } })
  })

  test('is read from the provider only as fast as it is consumed', async () => {
    provider.script({ text: 'One two', silentAfter: 2 })
    const stream = place.open().stream(messages, settings())
    expect(await stream.next()).toEqual({ value: text('One'), done: false })
    provider.release()
    expect(await stream.next()).toEqual({ value: text(' two'), done: false })
    expect((await stream.next()).done).toBe(true)
  })

  test('leaves its connection open for the next request when it is read completely', async () => {
    const chat = place.open()
    for (let at = 0; at < 10; at++) await readStream(chat.stream(messages, settings()))
    expect(provider.abandoned).toBe(0)
    expect(provider.connections).toBeLessThanOrEqual(2)
  })

  test('includes the cost that the provider reports, and reports an answer that was truncated', async () => {
    const usage = { prompt_tokens: 194, completion_tokens: 2, total_tokens: 196, cost: 0.00042 }
    const { completion } = await listen({ text: 'Half', finishReason: 'length', usage })
    expect(completion).toMatchObject({ finishReason: 'length', tokenCount: 196, costUsd: 0.00042 })
  })

  test('can have five thousand tokens per second', async () => {
    const { pieces } = await listen({ text: ' a'.repeat(2_500), tokensPerSecond: 5_000 })
    expect(pieces.join('')).toHaveLength(5_000)
  })
})

const search = { id: 'call_0', name: 'search_kb', arguments: '{"q":"čtyři 🐋"}' }
const read = { id: 'call_1', name: 'mcp:files:read', arguments: '{"path":"/a"}' }
const called = (...calls: { name: string; arguments: string }[]): ChatStep => ({
  toolCalls: calls.map(call => ({ ...call, name: call.name.replace('mcp:files:read', spelledRead) })),
})
const spelledRead = 'mcp_files_read_114e23df'

describe('differences between providers', () => {
  test('tool names that providers reject are encoded in requests and decoded in responses', async () => {
    const { completion } = await listen(called(search, read))
    const sent = provider.received[0]!.body as { tools: { function: { name: string } }[] }
    expect(sent.tools.map(one => one.function.name)).toEqual(['search_kb', spelledRead])
    expect(completion).toMatchObject({ text: '', toolCalls: [search, read], finishReason: 'tool_calls' })
  })

  test.each<[string, FakeAnswer & Partial<ChatStep>]>([
    ['cut at every character', { splitCalls: true }],
    ['cut at every byte of the wire', { bytesPerWrite: 1 }],
    ['cut at every character, two calls in turns', { splitCalls: true, interleaved: true }],
    ['with ids in every piece', { splitCalls: true, ids: 'repeated' }],
    ['with ids and names in every piece', { splitCalls: true, ids: 'repeated', names: 'repeated' }],
    ['without indexes', { splitCalls: true, index: 'missing' }],
    ['without indexes, with ids', { splitCalls: true, index: 'missing', ids: 'repeated', interleaved: true }],
    ['all of the index 0', { index: 'zero' }],
    ['among deltas that say nothing', { splitCalls: true, emptyDeltas: true }],
    ['and finished with stop', { finishReason: 'stop' }],
    ['and finished with no reason', { finishReason: null }],
  ])('reads tool calls %s', async (_habit, habit) => {
    const { completion } = await listen({ ...called(search, read), ...habit })
    expect(completion).toMatchObject({ toolCalls: [search, read], finishReason: 'tool_calls' })
  })

  test('tool calls without an ID get unique ones, and so do calls with a shared ID', async () => {
    for (const habit of [{ ids: 'missing' }, { index: 'missing', ids: 'missing' }] as const) {
      const { completion } = await listen({ ...called(search, search), ...habit })
      const ids = completion!.toolCalls.map(({ id }) => id)
      expect(ids).toEqual([expect.stringMatching(/^call_\w{8,}$/), expect.stringMatching(/^call_\w{8,}$/)])
      expect(new Set(ids).size).toBe(2)
    }
    provider.script({
      toolCalls: [
        { ...search, id: 'x' },
        { ...search, id: 'x' },
      ],
    })
    const { toolCalls } = await place.open().complete(messages, settings())
    expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(2)
  })

  test('invalid names and arguments of a model are returned unchanged', async () => {
    const made = { id: 'call_0', name: 'rm:everything', arguments: '{"q": ' }
    expect((await listen(called(made))).completion?.toolCalls).toEqual([made])
  })

  test('one answer can have text and tool calls', async () => {
    const { pieces, completion } = await listen({ ...called(search), text: 'I look.' })
    expect([pieces.join(''), completion?.toolCalls]).toEqual(['I look.', [search]])
  })

  test('ignores empty deltas and keep-alive lines, and joins characters that are split between chunks', async () => {
    const text = 'Žluťoučký 🐋 kůň'
    const habits = { emptyDeltas: true, comments: true, chunksOf: 1, bytesPerWrite: 1 } as const
    const { pieces, completion } = await listen({ text, ...habits })
    expect(pieces).toEqual([...text])
    expect(completion?.text).toBe(text)
  })

  test('an answer that ends with [DONE] but without a finish reason is complete', async () => {
    const { completion } = await listen({ text: 'Done.', finishReason: null, usage: null })
    expect(completion).toMatchObject({ text: 'Done.', finishReason: 'stop', tokenCount: null })
  })

  test('an answer with a finish reason is complete even if the connection breaks', async () => {
    for (const end of [{ done: false }, { cutAfter: 3 }] as const) {
      const { completion } = await listen({ text: 'Done.', usage: null, ...end })
      expect(completion?.text).toBe('Done.')
    }
  })

  test('accepts a complete answer in place of a stream', async () => {
    const choices = [{ message: { role: 'assistant', content: 'All at once.' }, finish_reason: 'stop' }]
    const { pieces, completion } = await listen({ body: { choices } })
    expect([pieces, completion?.text]).toEqual([['All at once.'], 'All at once.'])
  })

  test('returns a refusal of the model as its answer', async () => {
    const message = { role: 'assistant', content: null, refusal: 'I will not.' }
    expect((await listen({ body: { choices: [{ message, finish_reason: 'stop' }] } })).completion?.text).toBe(
      'I will not.',
    )
  })
})

describe('provider failures', () => {
  test.each<[string, ChatStep, RegExp]>([
    ['the connection breaks in the middle', { text: 'One two three', cutAfter: 3 }, /ended in the middle/],
    [
      'it ends without saying so',
      { text: 'One two', finishReason: null, done: false },
      /ended in the middle/,
    ],
    [
      'it says that something is wrong',
      { text: 'One two', error: { message: 'oops' } },
      /responded with an error/,
    ],
    ['it finishes with an error', { text: 'One two', finishReason: 'error' }, /responded with an error/],
  ])('%s: keeps the partial answer and fails', async (_what, step, words) => {
    const { pieces, failure } = await listen(step, { retriesMax: 2 })
    expect(pieces.slice(0, 2)).toEqual(['One', ' two'])
    expect(failure).toBeInstanceOf(ProviderFailure)
    expect(failure?.message).toMatch(words)
    expect(provider.received).toHaveLength(1)
  })

  test.each<[string, ChatStep, RegExp]>([
    ['nothing is said', { text: '' }, /without text/],
    ['a page comes', { body: '<html>', headers: { 'content-type': 'text/html' } }, /cannot be read/],
    ['a piece is no JSON', { body: 'data: {\n\n', headers: { 'content-type': 'text/event-stream' } }, /read/],
    ['it says too much', { text: 'x'.repeat(1_000_001), chunksOf: 100_000 }, /more than 1000000 char/],
    ['it calls too much', { toolCalls: Array.from({ length: 65 }, () => search) }, /more than 64 tool calls/],
    ['it is redirected', { status: 302, headers: { location: 'http://127.0.0.1/' }, body: {} }, /redirect/],
  ])('%s: fails without a retry', async (_what, step, words) => {
    const { failure } = await listen(step, { retriesMax: 2 })
    expect(failure).toBeInstanceOf(ProviderFailure)
    expect(failure?.message).toMatch(words)
    expect(provider.received).toHaveLength(1)
  })

  test('an answer can be empty if it reaches its token limit', async () => {
    const { pieces, completion } = await listen({ text: '', finishReason: 'length' })
    expect([pieces, completion?.finishReason]).toEqual([[], 'length'])
  })

  test.each([
    ['unknownModel', 'llm_model_unavailable'],
    ['notChat', 'llm_model_not_chat'],
  ] as const)('%s is %s', async (refusal, code) => {
    expect((await listen(refusals[refusal])).failure).toMatchObject({ code })
    const { error } = refusals[refusal].body
    expect((await listen({ text: '', error })).failure).toMatchObject({ code })
  })

  test('hides a key that the provider repeats in its error', async () => {
    const step = { status: 401, body: { error: { message: 'sk-secret is no key' } } }
    const { failure } = await listen(step)
    expect(failure?.message).toMatch(/status 401/)
    expect(JSON.stringify([failure, (failure as ProviderFailure).providerReason])).not.toContain('sk-secret')
  })
})

describe('retries', () => {
  const pause = { 'retry-after': '0' }

  test.each<[string, ChatStep]>([
    ['that the provider cannot answer', { status: 503, headers: pause, body: {} }],
    ['whose connection breaks before the first word', { text: 'One', cutAfter: 1 }],
  ])('retry a request %s', async (_what, step) => {
    provider.script(step)
    const { pieces } = await listen({ text: 'At last.' }, { retriesMax: 1 })
    expect(pieces.join('')).toBe('At last.')
    expect(provider.received).toHaveLength(2)
  })

  test('end after the allowed number of attempts', async () => {
    provider.script({ status: 503, headers: pause, body: {} })
    const { failure } = await listen({ status: 503, headers: pause, body: {} }, { retriesMax: 1 })
    expect(failure?.message).toMatch(/status 503/)
    expect(provider.received).toHaveLength(2)
  })
})

test.each(['stream', 'complete'] as const)('%s: a time-out of a local model is not retried', async how => {
  provider.script({ hang: true }, { text: 'Too late.' })
  const chat = place.open({ service: { requestTimeoutMs: 100 }, retriesMax: 2 })
  const answer =
    how === 'complete'
      ? chat.complete(messages, settings()).catch((error: unknown) => error)
      : readStream(chat.stream(messages, settings())).then(({ failure }) => failure)
  expect(await answer).toMatchObject({
    message: expect.stringContaining('did not respond in time'),
    facts: { hint: expect.stringContaining('requestTimeoutMs') },
  })
  expect(provider.received).toHaveLength(1)
})

describe('time limits', () => {
  test('half a minute before the first token is allowed as thinking time', async () => {
    const clock = new TestClock()
    provider.script({ text: 'Well.', silentAfter: 0 })
    const answer = readStream(place.open({ clock }).stream(messages, settings()))
    await expect.poll(() => provider.received.length).toBe(1)
    clock.advance(30_000)
    provider.release()
    expect((await answer).completion?.text).toBe('Well.')
  })

  test.each([
    ['before the first word', { text: 'One two', silentAfter: 0 }, 120_000, null],
    ['between words', { text: 'One two', silentAfter: 2 }, 120_000, null],
    ['longer than the service allows', { text: 'One two', silentAfter: 2 }, 1_000, 1_000],
  ])('silence %s ends the request', async (_when, step, ms, requestTimeoutMs) => {
    const clock = new TestClock()
    provider.script(step)
    let pieces = 0
    const answer = readStream(
      place.open({ clock, service: { requestTimeoutMs } }).stream(messages, settings()),
      () => pieces++,
    )
    await expect.poll(() => provider.received.length + pieces).toBe(step.silentAfter === 0 ? 1 : 2)
    await new Promise(setImmediate)
    clock.advance(ms)
    expect((await answer).failure?.message).toMatch(/stopped sending|in time/)
    await expect.poll(() => provider.abandoned).toBe(1)
  })

  test('a pause of the reader does not count as silence of the provider', async () => {
    const clock = new TestClock()
    provider.script({ text: 'One two', silentAfter: 2 })
    const stream = place.open({ clock }).stream(messages, settings())
    await stream.next()
    clock.advance(300_000)
    provider.release()
    expect((await stream.next()).value).toEqual(text(' two'))
    await stream.return(undefined as never)
  })

  test('an answer ends after ten minutes', async () => {
    const clock = new TestClock()
    provider.script({ text: 'One two', silentAfter: 2 })
    const stream = place.open({ clock }).stream(messages, settings())
    await stream.next()
    clock.advance(600_000)
    await expect(stream.next()).rejects.toThrow('did not finish its answer in time')
  })
})

describe('cancellation', () => {
  test.each([
    ['before the first word', 0],
    ['in the middle', 2],
  ])('%s ends the request immediately', async (_when, silentAfter) => {
    provider.script({ text: 'One two', silentAfter })
    const leaving = new AbortController()
    const answer = readStream(place.open().stream(messages, settings({ signal: leaving.signal })))
    await expect.poll(() => provider.received.length).toBe(1)
    leaving.abort(new WbError('draining', 'gone'))
    expect((await answer).failure).toMatchObject({ code: 'draining' })
    await expect.poll(() => provider.abandoned).toBe(1)
  })

  test('ends the pause between two attempts, streamed or not', async () => {
    const step = { status: 429, headers: { 'retry-after': '15' }, body: {} }
    const chat = place.open({ retriesMax: 1 })
    for (const ask of ['stream', 'complete'] as const) {
      provider.script(step)
      const leaving = new AbortController()
      const asked = settings({ signal: leaving.signal })
      const answer = ask === 'stream' ? chat.stream(messages, asked).next() : chat.complete(messages, asked)
      const count = provider.received.length + 1
      await expect.poll(() => provider.received.length).toBe(count)
      await new Promise(resolve => setTimeout(resolve, 50))
      leaving.abort(new WbError('draining', 'gone'))
      await expect(answer).rejects.toMatchObject({ code: 'draining' })
    }
  })

  test('by leaving the loop ends the request', async () => {
    provider.script({ text: 'One two', silentAfter: 2 })
    for await (const piece of place.open().stream(messages, settings())) {
      expect(piece).toEqual(text('One'))
      break
    }
    await expect.poll(() => provider.abandoned).toBe(1)
  })

  test('before the request prevents it', async () => {
    const { failure } = await readStream(
      place.open().stream(messages, settings({ signal: AbortSignal.abort(new WbError('draining', 'gone')) })),
    )
    expect(failure).toMatchObject({ code: 'draining' })
    expect(provider.received).toEqual([])
  })
})

test('the answer does not depend on its division into chunks', async () => {
  const service: ModelService = {
    name: 'talks',
    provider: 'ollama',
    modelName: 'm',
    workspaceId: 'w',
    endpointBaseUrl: 'http://127.0.0.1:1/v1',
    endpointPath: null,
    credentialRef: null,
    requestTimeoutMs: null,
  }
  const said = fc.record({
    text: fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }),
    chunksOf: fc.integer({ min: 1, max: 5 }),
    toolCalls: fc.array(
      fc.record({
        name: fc.constantFrom('search_kb', 'made_up'),
        arguments: fc.string({ unit: 'grapheme', maxLength: 6 }),
      }),
      { maxLength: 2 },
    ),
    interleaved: fc.constantFrom(true as const, undefined),
    splitCalls: fc.constantFrom(true as const, undefined),
    emptyDeltas: fc.constantFrom(true as const, undefined),
  })
  const ends = fc.constantFrom('\n', '\r\n', '\r')
  const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(said, ends, cuts, async (what, end, sizes) => {
      const bytes = Buffer.from(streamedAnswer(what, 'm').join('').replaceAll('\n', end))
      const outbound: ModelDependencies['outbound'] = async () => ({
        status: 200,
        headers: new Headers({ 'content-type': 'text/event-stream' }),
        body: cut(bytes, sizes),
      })
      const chat = openChat(service, {
        environment: { get: () => undefined, app: {}, docling: {} },
        isReleased: async () => false,
        outbound,
        clock: new TestClock(),
        retriesMax: 0,
        learned: openLearnedModels({ clock: new TestClock(), outbound }),
        chat: { provider: 'ollama', tokenRef: 'env:X', baseUrl: null, allowDataCollection: false },
      })
      const { pieces, completion } = await readStream(chat.stream(messages, settings()))
      expect(pieces.join('')).toBe(what.text)
      expect(completion?.text).toBe(what.text)
      expect(completion?.toolCalls.map(({ id: _, ...call }) => call)).toEqual(
        what.toolCalls.map(call => ({
          ...call,
          arguments: normalizeToolArguments(call.arguments, undefined),
        })),
      )
    }),
    { numRuns: 50 },
  )
})

/** Repeats pieces of these lengths. */
async function* cut(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!
    yield bytes.subarray(at, at + size)
    at += size
  }
}
