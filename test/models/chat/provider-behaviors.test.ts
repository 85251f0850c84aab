import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type {
  ChatMessage,
  Completion,
  SamplingSettings,
  ToolSpec,
} from '../../../src/models/chat/completion.ts'
import type { ModelService } from '../../../src/models/endpoint.ts'
import { ProviderFailure } from '../../../src/models/provider/provider-failure.ts'
import type { ChatStep } from '../../fakes/chat-server.ts'
import { type ChatSetup, readStream, setUpChat } from '../../harness/chat-setup.ts'

/** One response of a provider: a body, or the events of a stream. A string event is sent unchanged. */
interface RecordedResponse {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
  readonly events?: readonly (string | object)[]
  /** Closes the connection at the end. */
  readonly cut?: true
}

/** Responses of a provider in both modes, and the expected outcome. Omitted fields of the outcome are empty. */
interface RecordedBehavior {
  readonly about: string
  readonly source?: string
  readonly service?: Partial<ModelService>
  readonly messages?: readonly ChatMessage[]
  readonly sampling?: SamplingSettings
  readonly toolChoice?: 'auto' | 'none'
  /** Sends requests without tools. */
  readonly withoutTools?: true
  /** One response for each request. */
  readonly whole: readonly RecordedResponse[]
  readonly stream: readonly RecordedResponse[]
  readonly outcome: {
    readonly text?: string
    readonly reasoning?: string
    readonly toolCalls?: readonly { readonly name: string; readonly arguments: string }[]
    readonly finishReason?: Completion['finishReason']
    readonly completion?: Partial<Completion>
    readonly failure?: {
      readonly code?: string
      readonly kind?: string
      readonly message: string
      readonly hint?: string
      /** Text that the message must not contain. */
      readonly hides?: string
    }
    /** Text of a stream that fails later. */
    readonly textBeforeFailure?: string
    readonly requests?: number
    readonly requestsStreamed?: number
    /** Part of the body of the last request. */
    readonly sent?: object
  }
}

const folder = `${import.meta.dirname}/../../fixtures/provider-behaviors`
const behaviors = readdirSync(folder)
  .filter(name => name.endsWith('.json'))
  .map(name => {
    const behavior = JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as RecordedBehavior
    return [name.replace('.json', ''), behavior] as const
  })

const tools: readonly ToolSpec[] = [
  {
    name: 'search_kb',
    description: 'Search the knowledge bases.',
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string' },
        topK: { type: 'integer' },
        mode: { type: 'string', enum: ['hybrid', 'lexical'] },
      },
      required: ['query'],
    },
  },
  { name: 'list_kbs', description: 'List the knowledge bases.', parameters: { type: 'object' } },
]

let place: ChatSetup
beforeEach(async () => {
  place = await setUpChat()
})
afterEach(() => place.close())

function stepOf({ status, headers, body, events, cut }: RecordedResponse, bytesPerWrite?: number): ChatStep {
  const text = events
    ?.map(event => `${typeof event === 'string' ? event : `data: ${JSON.stringify(event)}`}\n\n`)
    .join('')
  const contentType = events ? 'text/event-stream' : 'application/json'
  return {
    ...(status !== undefined && { status }),
    headers: { 'content-type': contentType, ...headers },
    body: text ?? body ?? '',
    ...(cut && { cut }),
    ...(bytesPerWrite !== undefined && { bytesPerWrite }),
  }
}

function ask({ service, messages, sampling, toolChoice, withoutTools }: RecordedBehavior) {
  const settings = {
    maxTokens: 64,
    signal: new AbortController().signal,
    ...(!withoutTools && { tools }),
    ...(sampling && { sampling }),
    ...(toolChoice && { toolChoice }),
  }
  const chat = place.open({ retriesMax: 2, ...(service && { service }) })
  return { chat, messages: messages ?? [{ role: 'user' as const, content: 'Hi' }], settings }
}

function checkCompletion(completion: Completion, { outcome }: RecordedBehavior): void {
  const { text = '', reasoning = '', toolCalls = [], finishReason = 'stop', completion: more = {} } = outcome
  expect({ ...completion, toolCalls: completion.toolCalls.map(({ id: _, ...call }) => call) }).toMatchObject({
    text,
    reasoning,
    toolCalls,
    finishReason,
    ...more,
  })
  const ids = completion.toolCalls.map(({ id }) => id)
  expect(new Set(ids.filter(Boolean)).size).toBe(toolCalls.length)
}

function checkFailure(failure: unknown, { outcome }: RecordedBehavior): void {
  const { code, kind, message = '', hint, hides } = outcome.failure!
  const { facts = {}, ...error } = failure as ProviderFailure
  const shown = (failure as Error).message
  expect(shown).toContain(message)
  if (code) expect(error).toMatchObject({ code })
  else expect(failure).toBeInstanceOf(ProviderFailure)
  if (!code) expect(facts.kind).toBe(kind)
  if (hint) expect(facts.hint).toContain(hint)
  if (hides) expect(`${shown} ${facts.hint}`).not.toContain(hides)
  expect(shown.length).toBeLessThan(500)
  expect(shown).not.toMatch(/\p{Cc}|sk-secret/u)
}

function checkRequests({ outcome }: RecordedBehavior, expected = 1): void {
  const { received } = place.provider
  expect(received).toHaveLength(expected)
  if (outcome.sent) expect(received.at(-1)!.body).toMatchObject(outcome.sent)
}

test('at least 40 behaviors of providers are recorded', () => {
  expect(behaviors.length).toBeGreaterThanOrEqual(40)
  expect(new Set(behaviors.map(([name]) => name.split('-')[0])).size).toBeGreaterThanOrEqual(12)
})

describe.each(behaviors)('%s', (_name, behavior) => {
  const { outcome } = behavior

  test('not streamed', async () => {
    place.provider.script(...behavior.whole.map(one => stepOf(one)))
    const { chat, messages, settings } = ask(behavior)
    const answer = chat.complete(messages, settings)
    if (outcome.failure) checkFailure(await answer.catch((error: unknown) => error), behavior)
    else checkCompletion(await answer, behavior)
    checkRequests(behavior, outcome.requests)
  })

  test.each([
    ['as it comes', undefined],
    ['cut after every byte', 1],
  ])('streamed, %s', async (_how, bytesPerWrite) => {
    place.provider.script(...behavior.stream.map(one => stepOf(one, bytesPerWrite)))
    const { chat, messages, settings } = ask(behavior)
    const { parts, completion, failure } = await readStream(chat.stream(messages, settings))
    const said = saidBy(parts)
    if (outcome.failure) {
      checkFailure(failure, behavior)
      expect(said.text).toBe(outcome.textBeforeFailure ?? '')
    } else {
      expect(failure).toBeUndefined()
      checkCompletion(completion!, behavior)
      expect(said).toEqual({ text: outcome.text ?? '', reasoning: outcome.reasoning ?? '' })
    }
    checkRequests(behavior, outcome.requestsStreamed ?? outcome.requests)
  })
})

/** Returns the final text and reasoning of a stream. */
function saidBy(parts: Awaited<ReturnType<typeof readStream>>['parts']): { text: string; reasoning: string } {
  let text = ''
  let reasoning = ''
  for (const part of parts) {
    if (part.kind === 'text') text += part.delta
    else if (part.kind === 'reasoning') reasoning += part.delta
    else [text, reasoning] = ['', reasoning + text]
  }
  return { text, reasoning: reasoning.trim() }
}
