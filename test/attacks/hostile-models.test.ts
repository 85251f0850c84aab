import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { CitationReader } from '../../src/agents/chat/citation-reader.ts'
import { Citations } from '../../src/agents/chat/citations.ts'
import { headingOf } from '../../src/mcp/format-citation.ts'
import { AnswerSplitter } from '../../src/models/chat/answer-splitter.ts'
import { addDetails } from '../../src/models/chat/reasoning-details.ts'
import { StreamedMessage } from '../../src/models/chat/streamed-message.ts'
import { parseTextToolCalls } from '../../src/models/chat/text-tool-calls.ts'
import { ToolCallDrafts } from '../../src/models/chat/tool-call-drafts.ts'
import { ToolNames } from '../../src/models/chat/tool-names.ts'
import { findKnownRefusal } from '../../src/models/provider/known-refusals.ts'
import { ProviderFailure, providerReasonIn } from '../../src/models/provider/provider-failure.ts'
import { readStream, setUpChat } from '../harness/chat-setup.ts'

const anyTool = () => ({ type: 'object' })
const tool = { name: 'search', description: 'search', parameters: anyTool() }
const ofSearch = { names: new ToolNames(['search']), tools: [tool], maxTokens: 64 }
const spaces = ' '.repeat(200_000)

/** Each case takes tens of milliseconds in linear time, and minutes in quadratic time. */
test.each<[string, () => unknown]>([
  [
    'a call in text with much white space',
    () => parseTextToolCalls(`<tool_call>a${spaces}b</tool_call>`, anyTool),
  ],
  [
    'a call in text with endless parameters',
    () => parseTextToolCalls(`<tool_call><function=a>${'<parameter=a>'.repeat(70_000)}</tool_call>`, anyTool),
  ],
  ['tool call tags in code', () => new AnswerSplitter(() => false).read(`\`${'<tool_call>'.repeat(60_000)}`)],
  [
    'arguments in many pieces that each repeat the name',
    () => {
      const drafts = new ToolCallDrafts(() => true)
      const piece = (text: string) => ({ index: 0, function: { name: 'search', arguments: text } })
      drafts.add([piece(`{"text":"${'x'.repeat(900_000)}`), ...Array(20_000).fill(piece('}'))])
    },
  ],
  [
    'reasoning details with many fields and many pieces',
    () => {
      const fields = Object.fromEntries(Array.from({ length: 80_000 }, (_, at) => [`f${at}`, 0]))
      const pieces = Array.from({ length: 3_000 }, () => ({ type: 'text', text: 'a' }))
      const details: unknown[] = []
      addDetails(details, [{ ...fields, type: 'text' }, ...pieces])
      expect(details).toMatchObject([{ type: 'text', text: 'a'.repeat(3_000), f0: 0 }])
    },
  ],
  [
    'a line of backticks in small pieces',
    () => {
      const reader = new CitationReader(new Citations())
      let text = ''
      for (let at = 0; at < 150_000; at++) text += reader.read('`')
      expect((text + reader.end()).length).toBe(150_000)
    },
  ],
  ['a heading of white space', () => headingOf({}, `# a${spaces}b`)],
  [
    'an error with a long parameter',
    () =>
      findKnownRefusal(
        400,
        providerReasonIn({ error: { param: 'no endpoints '.repeat(2_000_000), code: 'x' } }),
      ),
  ],
])('%s is parsed in linear time', (_, read) => {
  const startedAt = performance.now()
  read()
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

test('rejects an answer with too many calls in its text', async () => {
  const { provider, open, close } = await setUpChat()
  const calls = Array(65).fill('{"name":"search"}').join()
  provider.script({ text: `<tool_call>[${calls}]</tool_call>` }, { text: `[TOOL_CALLS][${calls}]` })
  const settings = { maxTokens: 64, tools: [tool], signal: new AbortController().signal }
  for (let at = 0; at < 2; at++) {
    const { failure } = await readStream(open().stream([{ role: 'user', content: 'Hi' }], settings))
    expect(failure?.message).toContain('sent an answer with more than 64 tool calls')
  }
  const event = { message: { content: `<tool_call>[${calls}]</tool_call>` }, finish_reason: 'stop' }
  const draft = new StreamedMessage(ofSearch)
  expect(() => draft.add({ choices: [event] })).toThrow('more than 64 tool calls')
  expect(draft.isFinished).toBe(false)
  await close()
})

test('rejects an answer whose reasoning alone is too long', () => {
  const draft = new StreamedMessage(ofSearch)
  const event = { choices: [{ delta: { reasoning_content: 'x'.repeat(400_000) } }] }
  draft.add(event)
  draft.add(event)
  expect(() => draft.add(event)).toThrow('more than 1000000 characters')
})

test('treats an error with objects that cannot be converted to text as a provider failure', () => {
  const odd = { toString: 1, valueOf: 1 }
  const event = { error: { code: odd, status: odd, detail: [{ loc: [odd, 'body'], msg: 'bad' }] } }
  expect(() => new StreamedMessage(ofSearch).add(event)).toThrow(ProviderFailure)
})

test('keeps only the beginning of a long error page', async () => {
  const { provider, open, close } = await setUpChat()
  provider.script({ status: 400, body: `<html>${'x'.repeat(3_000_000)}` })
  const settings = { maxTokens: 64, tools: [], signal: new AbortController().signal }
  const failure = await open()
    .complete([{ role: 'user', content: 'Hi' }], settings)
    .catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(ProviderFailure)
  expect(inspect(failure, { depth: 9, maxStringLength: null }).length).toBeLessThan(50_000)
  await close()
})

test.each(['stream', 'complete'] as const)(
  '%s does not retry an answer that is too large, or report it as a failed connection',
  async how => {
    const { provider, open, close } = await setUpChat()
    const body = 'x'.repeat(65_000_000)
    provider.script({ body }, { body }, { body })
    const settings = { maxTokens: 64, tools: [], signal: new AbortController().signal }
    const chat = open({ retriesMax: 2 })
    const question = [{ role: 'user', content: 'Hi' }] as const
    const answer =
      how === 'stream' ? chat.stream(question, settings).next() : chat.complete(question, settings)
    const failure = await answer.catch((error: unknown) => error)
    expect(failure).toMatchObject({ message: expect.stringContaining('sent a response that is too large') })
    expect(provider.received.length).toBe(1)
    await close()
  },
)
