/** A tool call of the fake model. */
export interface FakeCall {
  readonly name: string
  /** A string is sent unchanged and can be invalid JSON. */
  readonly arguments?: string | object
  readonly id?: string
}

/** The answer of a fake model, with deviations of providers. The default is the behavior of OpenAI. */
export interface FakeAnswer {
  readonly text?: string
  /** Sent before the text, in the field that DeepSeek uses. */
  readonly reasoning?: string
  /** Characters of text per delta; one word by default. */
  readonly chunksOf?: number
  readonly toolCalls?: readonly FakeCall[]
  /** Sends each character of a call's name and arguments in a separate delta. */
  readonly splitCalls?: true
  /** Interleaves the deltas of several calls. */
  readonly interleaved?: true
  /** Deviations of IDs, indexes and names in the deltas of calls. */
  readonly ids?: 'repeated' | 'missing'
  readonly index?: 'zero' | 'missing'
  readonly names?: 'repeated'
  /** Sends empty deltas before and between the others. */
  readonly emptyDeltas?: true
  /** Null omits it. */
  readonly finishReason?: string | null
  /** Null omits it; OpenRouter adds a cost. */
  readonly usage?: Readonly<Record<string, unknown>> | null
  /** Replaces the end of the stream, as OpenRouter reports late errors. */
  readonly error?: object
  /** False omits `[DONE]`. */
  readonly done?: false
}

const defaultUsage = { prompt_tokens: 8, completion_tokens: 3, total_tokens: 11 }

interface WireCall {
  readonly index: number
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** @see https://platform.openai.com/docs/api-reference/chat/object */
export function completeAnswer(answer: FakeAnswer, model: unknown): object {
  if (answer.error) return { error: answer.error }
  const calls = callsOf(answer).map(call => ({ id: call.id, type: 'function', function: functionOf(call) }))
  const message = {
    role: 'assistant',
    content: answer.text ?? null,
    ...(answer.reasoning === undefined ? {} : { reasoning_content: answer.reasoning }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [{ index: 0, message, ...finishOf(answer) }],
    ...usageOf(answer),
  }
}

/**
 * Returns the events of a streamed answer as raw text.
 *
 * @see https://platform.openai.com/docs/api-reference/chat-streaming/streaming
 */
export function streamedAnswer(answer: FakeAnswer, model: unknown): string[] {
  const whole = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model }
  const chunk = (delta: object, more: object = { finish_reason: null }) => ({
    ...whole,
    choices: [{ index: 0, delta, ...more }],
  })
  const nothing = answer.emptyDeltas ? [chunk({}), chunk({ content: '' }), { ...whole, choices: [] }] : []
  const events: object[] = [chunk({ role: 'assistant', content: '' }), ...nothing]
  for (const reasoning_content of piecesOf({ ...answer, text: answer.reasoning ?? '' }))
    events.push(chunk({ reasoning_content }), ...nothing)
  for (const content of piecesOf(answer)) events.push(chunk({ content }), ...nothing)
  for (const call of callDeltas(answer)) events.push(chunk({ tool_calls: [call] }), ...nothing)
  if (answer.error) return [...events, { ...whole, error: answer.error }].map(formatEvent)
  if (answer.finishReason !== null) events.push(chunk({}, finishOf(answer)))
  if (answer.usage !== null) events.push({ ...whole, choices: [], ...usageOf(answer) })
  return [...events.map(formatEvent), ...(answer.done === false ? [] : ['data: [DONE]\n\n'])]
}

function formatEvent(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`
}

function piecesOf({ text = '', chunksOf }: FakeAnswer): string[] {
  if (chunksOf === undefined) return text.match(/\s*\S+\s*$|\s*\S+|\s+/g) ?? []
  const characters = [...text]
  const count = Math.ceil(characters.length / chunksOf)
  return Array.from({ length: count }, (_, at) =>
    characters.slice(at * chunksOf, (at + 1) * chunksOf).join(''),
  )
}

function callsOf({ toolCalls = [] }: FakeAnswer): WireCall[] {
  return toolCalls.map(({ name, id, arguments: given = {} }, index) => ({
    index,
    id: id ?? `call_${index}`,
    name,
    arguments: typeof given === 'string' ? given : JSON.stringify(given),
  }))
}

function functionOf({ name, arguments: written }: WireCall): object {
  return { name, arguments: written }
}

function callDeltas(answer: FakeAnswer): object[] {
  const lists = callsOf(answer).map(call => deltasOf(call, answer))
  if (!answer.interleaved) return lists.flat()
  const longest = Math.max(0, ...lists.map(list => list.length))
  return Array.from({ length: longest }, (_, at) => lists.flatMap(list => list[at] ?? [])).flat()
}

function deltasOf(call: WireCall, { splitCalls, ids, index, names }: FakeAnswer): object[] {
  const whole = names === 'repeated' ? call.name : undefined
  const nameParts = splitCalls && !whole ? [...call.name] : [call.name]
  const argumentParts = splitCalls ? [...call.arguments] : [call.arguments]
  const functions = [
    ...nameParts.map(name => ({ name, arguments: '' })),
    ...argumentParts.map(part => ({ ...(whole ? { name: whole } : {}), arguments: part })),
  ]
  return functions.map((one, at) => ({
    ...(index === 'missing' ? {} : { index: index === 'zero' ? 0 : call.index }),
    ...(ids === 'missing' || (at > 0 && ids !== 'repeated') ? {} : { id: call.id, type: 'function' }),
    function: one,
  }))
}

function finishOf({ finishReason, toolCalls = [] }: FakeAnswer): object {
  if (finishReason === null) return {}
  return { finish_reason: finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop') }
}

function usageOf({ usage }: FakeAnswer): object {
  return usage === null ? {} : { usage: usage ?? defaultUsage }
}
