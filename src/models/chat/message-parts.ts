import { fieldOfUntrusted } from '../provider/provider-failure.ts'

/** The parts of one event of a stream, or of a whole answer. */
export interface MessageParts {
  readonly text: string
  readonly reasoning: string
  /** Reasoning in the format of OpenRouter. Later requests must contain it unchanged. */
  readonly details: readonly unknown[]
  /** Tool calls. In a whole answer, the `index` of each call is its position. */
  readonly calls: readonly unknown[]
}

const noParts: MessageParts = { text: '', reasoning: '', details: [], calls: [] }

/** Returns the first choice in an event or in a whole answer; undefined if it has none. */
export function firstChoice(event: unknown): unknown {
  const choices = fieldOfUntrusted(event, 'choices')
  return Array.isArray(choices) ? choices[0] : undefined
}

/** Returns the parts of a choice. Supports the formats of all known providers. */
export function messagePartsOf(choice: unknown): MessageParts {
  const delta = fieldOfUntrusted(choice, 'delta')
  const message = delta ?? fieldOfUntrusted(choice, 'message')
  if (typeof message !== 'object' || message === null)
    return { ...noParts, text: textOf(fieldOfUntrusted(choice, 'text')) }
  const content = contentOf(fieldOfUntrusted(message, 'content'))
  const details = fieldOfUntrusted(message, 'reasoning_details')
  return {
    text: content.text || textOf(fieldOfUntrusted(message, 'refusal')),
    reasoning: reasoningOf(message) || content.reasoning,
    details: Array.isArray(details) ? details : [],
    calls: callsOf(message, delta !== undefined && delta !== null),
  }
}

/** Names of the reasoning field at DeepSeek, OpenRouter, Ollama and other providers. */
const reasoningFields = ['reasoning_content', 'reasoning', 'reasoning_text', 'thinking']

function reasoningOf(message: object): string {
  for (const name of reasoningFields) {
    const text = textOf(fieldOfUntrusted(message, name))
    if (text !== '') return text
  }
  const details = fieldOfUntrusted(message, 'reasoning_details')
  return Array.isArray(details) ? details.map(detailText).join('') : ''
}

/** Returns the text of a reasoning detail; empty if the detail is encrypted. */
function detailText(detail: unknown): string {
  return textOf(fieldOfUntrusted(detail, 'text')) || textOf(fieldOfUntrusted(detail, 'summary'))
}

/** Reads content that is a string or an array of parts. */
function contentOf(content: unknown): { text: string; reasoning: string } {
  if (!Array.isArray(content)) return { text: textOf(content), reasoning: '' }
  const isReasoning = (part: unknown) => /think|reason/.test(String(fieldOfUntrusted(part, 'type') ?? ''))
  const joinText = (parts: unknown[]) => parts.map(textOf).join('')
  return {
    text: joinText(content.filter(part => !isReasoning(part))),
    reasoning: joinText(content.filter(isReasoning)),
  }
}

/** Fields of a content part that can contain its text. */
const textFields = ['text', 'thinking', 'reasoning', 'refusal', 'content', 'summary']
const depthMax = 4

function textOf(value: unknown, depth = 0): string {
  if (typeof value === 'string') return value
  if (depth === depthMax) return ''
  if (Array.isArray(value)) return value.map(part => textOf(part, depth + 1)).join('')
  const name = textFields.find(name => fieldOfUntrusted(value, name) !== undefined)
  return name === undefined ? '' : textOf(fieldOfUntrusted(value, name), depth + 1)
}

function callsOf(message: object, isDelta: boolean): unknown[] {
  const toolCalls = fieldOfUntrusted(message, 'tool_calls')
  const calls = Array.isArray(toolCalls)
    ? toolCalls.filter(call => typeof call === 'object' && call !== null)
    : []
  const functionCall = fieldOfUntrusted(message, 'function_call')
  if (calls.length === 0 && typeof functionCall === 'object' && functionCall !== null)
    return [{ index: 0, function: functionCall }]
  return isDelta ? calls : calls.map((call: object, index) => ({ ...call, index }))
}
