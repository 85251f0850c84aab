import { parseJson } from '../../base/parse-json.ts'
import { fieldOfUntrusted } from '../provider/provider-failure.ts'
import type { ToolSchema } from './tool-arguments.ts'

/** A tool call that a model wrote as text. */
export interface TextToolCall {
  readonly name: string
  /** Arguments as JSON. */
  readonly arguments: string
}

/**
 * Parses tool calls that a model wrote as text: `<tool_call>` with JSON (Hermes, Qwen) or with parameters in tags
 * (Qwen3 Coder), and `[TOOL_CALLS]` (Mistral).
 *
 * @param block     text from the opening marker to the closing marker, or to the end of the answer
 * @param schemaOf  returns the JSON Schema of a tool in the request; undefined for any other name
 * @returns undefined if the block contains anything other than calls of these tools
 */
export function parseTextToolCalls(
  block: string,
  schemaOf: (name: string) => ToolSchema | undefined,
): TextToolCall[] | undefined {
  const content = block
    .replace(/^(?:<tool_call>|\[TOOL_CALLS\])/, '')
    .replace(/<\/tool_call>$/, '')
    .trim()
  const calls = jsonCalls(content) ?? namedCall(content) ?? taggedCall(content, schemaOf)
  return calls && calls.length > 0 && calls.every(({ name }) => schemaOf(name)) ? calls : undefined
}

/** Reads `{"name": …, "arguments": …}`, or a list of such objects. */
function jsonCalls(text: string): TextToolCall[] | undefined {
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null) return undefined
  return [value].flat().map(call => {
    const wrappedCall = fieldOfUntrusted(call, 'function')
    const callFields = typeof wrappedCall === 'object' ? wrappedCall : call
    const name = fieldOfUntrusted(callFields, 'name')
    return {
      name: typeof name === 'string' ? name : '',
      arguments: toJsonText(
        fieldOfUntrusted(callFields, 'arguments') ?? fieldOfUntrusted(callFields, 'parameters') ?? {},
      ),
    }
  })
}

function toJsonText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Reads one call in the format of newer Mistral models: `name[ARGS]{…}` or `name{…}`. */
function namedCall(text: string): TextToolCall[] | undefined {
  // Everything after the name is optional in the pattern, so white space causes no backtracking.
  const [prefix, name] = /^([\w.:-]{1,64})\s*(?:\[ARGS\]\s*)?/.exec(text) ?? []
  if (prefix === undefined || name === undefined || text[prefix.length] !== '{') return undefined
  const argumentsText = text.slice(prefix.length)
  return parseJson(argumentsText) === undefined ? undefined : [{ name, arguments: argumentsText }]
}

/** Reads `<function=name><parameter=key>value</parameter></function>`. */
function taggedCall(
  text: string,
  schemaOf: (name: string) => ToolSchema | undefined,
): TextToolCall[] | undefined {
  const [, name, content] = /^<function=([^>\s]{1,64})>([\s\S]*?)(?:<\/function>)?$/.exec(text) ?? []
  if (name === undefined) return undefined
  const parameters = content!
    .split(/\n?<\/parameter>/)
    .slice(0, -1)
    .flatMap(text => {
      const match = /<parameter=([^>\s]{1,64})>\n?([\s\S]*)$/.exec(text)
      return match ? [match] : []
    })
  const types = schemaOf(name)?.properties
  const isText = (key: string) =>
    [fieldOfUntrusted(fieldOfUntrusted(types, key), 'type')].flat().includes('string')
  const values = parameters.map(
    ([, key, value]) => [key!, isText(key!) ? value! : (parseJson(value!) ?? value!)] as const,
  )
  return [{ name, arguments: JSON.stringify(Object.fromEntries(values)) }]
}
