/** A call of a tool that the fake model makes. */
export interface FakeCall {
  readonly name: string
  /** Text is sent as it is, and may be no JSON. */
  readonly arguments?: string | object
  readonly id?: string
}

/** What a model says, and how badly its provider puts it. Left out is as OpenAI does it. */
export interface Said {
  readonly text?: string
  /** Comes before the text, in the field of DeepSeek. */
  readonly reasoning?: string
  /** Characters of text in one delta; a word when left out. */
  readonly chunksOf?: number
  readonly toolCalls?: readonly FakeCall[]
  /** Every character of a call's name and arguments is a delta of its own. */
  readonly splitCalls?: true
  /** Deltas of several calls take turns. */
  readonly interleaved?: true
  /** How ids, indexes and names stand in the deltas of calls. */
  readonly ids?: 'repeated' | 'missing'
  readonly index?: 'zero' | 'missing'
  readonly names?: 'repeated'
  /** Deltas that say nothing come before and between the others. */
  readonly emptyDeltas?: true
  /** Null leaves it out. */
  readonly finishReason?: string | null
  /** Null leaves it out; a cost is OpenRouter's habit. */
  readonly usage?: Readonly<Record<string, unknown>> | null
  /** Comes instead of the end, as OpenRouter tells of what went wrong after it had begun. */
  readonly error?: object
  /** False leaves `[DONE]` out. */
  readonly done?: false
}

const usual = { prompt_tokens: 8, completion_tokens: 3, total_tokens: 11 }

interface WireCall {
  readonly index: number
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** @see https://platform.openai.com/docs/api-reference/chat/object */
export function wholeAnswer(said: Said, model: unknown): object {
  if (said.error) return { error: said.error }
  const calls = callsOf(said).map(call => ({ id: call.id, type: 'function', function: functionOf(call) }))
  const message = {
    role: 'assistant',
    content: said.text ?? null,
    ...(said.reasoning === undefined ? {} : { reasoning_content: said.reasoning }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [{ index: 0, message, ...finishOf(said) }],
    ...usageOf(said),
  }
}

/**
 * The events of a streamed answer, as text of the wire.
 *
 * @see https://platform.openai.com/docs/api-reference/chat-streaming/streaming
 */
export function streamedAnswer(said: Said, model: unknown): string[] {
  const whole = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model }
  const chunk = (delta: object, more: object = { finish_reason: null }) => ({
    ...whole,
    choices: [{ index: 0, delta, ...more }],
  })
  const nothing = said.emptyDeltas ? [chunk({}), chunk({ content: '' }), { ...whole, choices: [] }] : []
  const events: object[] = [chunk({ role: 'assistant', content: '' }), ...nothing]
  for (const reasoning_content of piecesOf({ ...said, text: said.reasoning ?? '' }))
    events.push(chunk({ reasoning_content }), ...nothing)
  for (const content of piecesOf(said)) events.push(chunk({ content }), ...nothing)
  for (const call of callDeltas(said)) events.push(chunk({ tool_calls: [call] }), ...nothing)
  if (said.error) return [...events, { ...whole, error: said.error }].map(written)
  if (said.finishReason !== null) events.push(chunk({}, finishOf(said)))
  if (said.usage !== null) events.push({ ...whole, choices: [], ...usageOf(said) })
  return [...events.map(written), ...(said.done === false ? [] : ['data: [DONE]\n\n'])]
}

function written(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`
}

function piecesOf({ text = '', chunksOf }: Said): string[] {
  if (chunksOf === undefined) return text.match(/\s*\S+\s*$|\s*\S+|\s+/g) ?? []
  const characters = [...text]
  const count = Math.ceil(characters.length / chunksOf)
  return Array.from({ length: count }, (_, at) =>
    characters.slice(at * chunksOf, (at + 1) * chunksOf).join(''),
  )
}

function callsOf({ toolCalls = [] }: Said): WireCall[] {
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

function callDeltas(said: Said): object[] {
  const lists = callsOf(said).map(call => deltasOf(call, said))
  if (!said.interleaved) return lists.flat()
  const longest = Math.max(0, ...lists.map(list => list.length))
  return Array.from({ length: longest }, (_, at) => lists.flatMap(list => list[at] ?? [])).flat()
}

function deltasOf(call: WireCall, { splitCalls, ids, index, names }: Said): object[] {
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

function finishOf({ finishReason, toolCalls = [] }: Said): object {
  if (finishReason === null) return {}
  return { finish_reason: finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop') }
}

function usageOf({ usage }: Said): object {
  return usage === null ? {} : { usage: usage ?? usual }
}
