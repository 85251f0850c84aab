import { parseJson } from '../../base/parse-json.ts'
import { fieldOfUntrusted } from '../provider/provider-failure.ts'
import type { ToolSchema } from './tool-arguments.ts'

/** A tool call in the text of a model. */
export interface TextToolCall {
  readonly name: string
  /** Arguments as JSON. */
  readonly arguments: string
}

/**
 * Reads tool calls from the text of a model: `<tool_call>` with JSON (Hermes, Qwen) or with parameters in
 * tags (Qwen3 Coder), and `[TOOL_CALLS]` (Mistral).
 *
 * @param block  text from the opening mark to the closing mark, or to the end of the answer
 * @param schemaOf  returns the JSON Schema of a tool in the request; undefined for any other name
 * @returns undefined if the block contains anything other than calls of these tools
 */
export function parseTextToolCalls(
  block: string,
  schemaOf: (name: string) => ToolSchema | undefined,
): TextToolCall[] | undefined {
  const inner = block
    .replace(/^(?:<tool_call>|\[TOOL_CALLS\])/, '')
    .replace(/<\/tool_call>$/, '')
    .trim()
  const calls = jsonCalls(inner) ?? namedCall(inner) ?? taggedCall(inner, schemaOf)
  return calls && calls.length > 0 && calls.every(({ name }) => schemaOf(name)) ? calls : undefined
}

/** Reads `{"name": …, "arguments": …}`, or a list of such objects. */
function jsonCalls(text: string): TextToolCall[] | undefined {
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null) return undefined
  return [value].flat().map(call => {
    const wrapped = fieldOfUntrusted(call, 'function')
    const written = typeof wrapped === 'object' ? wrapped : call
    const name = fieldOfUntrusted(written, 'name')
    return {
      name: typeof name === 'string' ? name : '',
      arguments: textOf(
        fieldOfUntrusted(written, 'arguments') ?? fieldOfUntrusted(written, 'parameters') ?? {},
      ),
    }
  })
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Reads `name[ARGS]{…}` or `name{…}`, the format of one call in newer models of Mistral. */
function namedCall(text: string): TextToolCall[] | undefined {
  // No part after the name can fail to match, so white space causes no backtracking.
  const [head, name] = /^([\w.:-]{1,64})\s*(?:\[ARGS\]\s*)?/.exec(text) ?? []
  if (head === undefined || name === undefined || text[head.length] !== '{') return undefined
  const written = text.slice(head.length)
  return parseJson(written) === undefined ? undefined : [{ name, arguments: written }]
}

/** Reads `<function=name><parameter=key>value</parameter></function>`. */
function taggedCall(
  text: string,
  schemaOf: (name: string) => ToolSchema | undefined,
): TextToolCall[] | undefined {
  const [, name, inner] = /^<function=([^>\s]{1,64})>([\s\S]*?)(?:<\/function>)?$/.exec(text) ?? []
  if (name === undefined) return undefined
  const parameters = inner!
    .split(/\n?<\/parameter>/)
    .slice(0, -1)
    .flatMap(text => {
      const found = /<parameter=([^>\s]{1,64})>\n?([\s\S]*)$/.exec(text)
      return found ? [found] : []
    })
  const types = schemaOf(name)?.properties
  const isText = (key: string) =>
    [fieldOfUntrusted(fieldOfUntrusted(types, key), 'type')].flat().includes('string')
  const values = parameters.map(
    ([, key, value]) => [key!, isText(key!) ? value! : (parseJson(value!) ?? value!)] as const,
  )
  return [{ name, arguments: JSON.stringify(Object.fromEntries(values)) }]
}
