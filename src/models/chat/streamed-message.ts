import type { ToolCall } from '../../contract/chat.ts'
import { errorIn, findKnownRefusal } from '../provider/known-refusals.ts'
import { fieldOfUntrusted, ProviderFailure, providerReasonIn } from '../provider/provider-failure.ts'
import { type AnswerPart, AnswerText } from './answer-text.ts'
import type { Completion, ProviderFields, ToolSpec } from './completion.ts'
import { firstChoice, messagePartsOf } from './message-parts.ts'
import { addDetails } from './reasoning-details.ts'
import { parseTextToolCalls, type TextToolCall } from './text-tool-calls.ts'
import { normalizeToolArguments } from './tool-arguments.ts'
import { callsMax, type DraftedCall, newCallId, ToolCallDrafts, tooManyCalls } from './tool-call-drafts.ts'
import type { ToolNames } from './tool-names.ts'

/**
 * Maximum number of characters of text, reasoning and arguments together. Answers rarely exceed some ten
 * thousand.
 */
const charsMax = 1_000_000

/** Properties of the request that affect how its answer is read. */
export interface StreamedMessageParts {
  readonly names: ToolNames
  /** Tools that the model may call now. */
  readonly tools: readonly ToolSpec[]
  readonly maxTokens: number
}

/** Assembles an answer from the events of a stream, or from a whole response. */
export class StreamedMessage {
  #text = ''
  #reasoning = ''
  #chars = 0
  #reason: string | undefined
  #usage: unknown
  #hasBegun = false
  readonly #details: unknown[] = []
  readonly #calls: ToolCallDrafts
  readonly #textCalls: TextToolCall[] = []
  readonly #splitter: AnswerText
  readonly #tools: ReadonlyMap<string, ToolSpec>

  constructor(private readonly of: StreamedMessageParts) {
    const { names, tools } = of
    this.#tools = new Map(tools.map(tool => [tool.name, tool]))
    this.#calls = new ToolCallDrafts(name => names.hasEncoded(name))
    this.#splitter = new AnswerText(tools.length > 0 ? call => this.#takeCall(call) : undefined)
  }

  /**
   * Adds an event, or a whole answer.
   *
   * @returns the text and the reasoning that it adds
   * @throws ProviderFailure  it contains an error, or the answer is too long
   */
  add(event: unknown): AnswerPart[] {
    const error = errorIn(event)
    if (error) throw toProviderFailure(error)
    const choice = firstChoice(event)
    const { text, reasoning, details, calls } = messagePartsOf(choice)
    addDetails(this.#details, details)
    this.#chars += text.length + reasoning.length + this.#calls.add(calls)
    if (details.length > 0) this.#chars += JSON.stringify(details).length
    if (this.#chars > charsMax)
      throw new ProviderFailure(`sent an answer of more than ${charsMax} characters`)
    this.#usage =
      fieldOfUntrusted(event, 'usage') ??
      fieldOfUntrusted(fieldOfUntrusted(event, 'x_groq'), 'usage') ??
      this.#usage
    if (reasoning !== '') this.#splitter.settle()
    const parts: AnswerPart[] = reasoning === '' ? [] : [{ kind: 'reasoning', delta: reasoning }]
    const taken = this.#addParts(text === '' ? parts : [...parts, ...this.#splitter.read(text)])
    // Must come last, because a failure after the end of the answer is ignored.
    const reason = fieldOfUntrusted(choice, 'finish_reason')
    if (typeof reason === 'string' && reason !== '') this.#reason = reason
    return taken
  }

  /** Returns text that was held back for classification, at the end of the stream. */
  end(): AnswerPart[] {
    return this.#addParts(this.#splitter.end())
  }

  /** True once part of the answer was returned, so the request cannot be repeated. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** True if the model has finished. Only token counts can follow. */
  get isFinished(): boolean {
    return this.#reason !== undefined
  }

  /**
   * Returns the whole answer, once it has ended.
   *
   * @throws ProviderFailure  the answer is empty, or reasoning used up the tokens
   */
  completion(): Completion {
    if (brokenReasons.has(this.#reason ?? '')) throw new ProviderFailure('ended in the middle of its answer')
    const drafted = this.#finishedCalls()
    const toolCalls = drafted.map(({ extra: _, ...call }) => call)
    const finishReason = this.#finishReason(toolCalls)
    const reasoningTokens = tokenCountOf(
      fieldOfUntrusted(this.#usage, 'completion_tokens_details'),
      'reasoning_tokens',
    )
    const hasReasoned = this.#reasoning.trim() !== '' || Boolean(reasoningTokens)
    const isEmpty = (hasReasoned ? this.#text.trim() : this.#text) === '' && toolCalls.length === 0
    if (isEmpty) this.#refuseEmpty(finishReason, hasReasoned)
    const providerFields = this.#providerFields(drafted)
    return {
      text: this.#text,
      reasoning: this.#reasoning.trim(),
      toolCalls,
      finishReason,
      ...(providerFields && { providerFields }),
      tokenCount: tokenCountOf(this.#usage, 'total_tokens'),
      promptTokens: tokenCountOf(this.#usage, 'prompt_tokens'),
      completionTokens: tokenCountOf(this.#usage, 'completion_tokens'),
      reasoningTokens,
      costUsd: tokenCountOf(this.#usage, 'cost'),
    }
  }

  #addParts(parts: AnswerPart[]): AnswerPart[] {
    for (const part of parts) {
      this.#hasBegun = true
      if (part.kind === 'text') this.#text += part.delta
      else if (part.kind === 'reasoning') this.#reasoning += part.delta
      else {
        this.#reasoning += this.#text
        this.#text = ''
      }
    }
    return parts
  }

  #takeCall(block: string): boolean {
    const { names } = this.of
    const calls = parseTextToolCalls(block, name => this.#tools.get(names.decode(name))?.parameters)
    if (!calls) return false
    if (this.#textCalls.length + calls.length > callsMax) throw tooManyCalls()
    this.#textCalls.push(...calls)
    return true
  }

  /**
   * Returns the tool calls of the answer. Calls in the text are used only if there are no others, because
   * some servers send both.
   */
  #finishedCalls(): DraftedCall[] {
    const drafted = this.#calls.all()
    const written = this.#textCalls.map(call => ({ id: newCallId(), ...call }))
    return (drafted.length > 0 ? drafted : written).map(call => {
      const name = this.of.names.decode(call.name)
      return {
        ...call,
        name,
        arguments: normalizeToolArguments(call.arguments, this.#tools.get(name)?.parameters),
      }
    })
  }

  #finishReason(toolCalls: readonly ToolCall[]): Completion['finishReason'] {
    const reason = this.#reason?.toLowerCase() ?? ''
    if (cutReasons.has(reason)) return 'length'
    if (filterReasons.has(reason)) return 'content_filter'
    return toolCalls.length > 0 ? 'tool_calls' : 'stop'
  }

  /**
   * @throws ProviderFailure  always, unless the tokens ran out before the first word, which is a valid answer
   */
  #refuseEmpty(finishReason: Completion['finishReason'], hasReasoned: boolean): void {
    if (finishReason === 'content_filter') throw toProviderFailure({ code: 'content_filter' })
    if (hasReasoned && finishReason === 'length')
      throw new ProviderFailure(
        `used all of its ${this.of.maxTokens} output tokens for reasoning, and wrote no answer`,
        {
          kind: 'reasoning_budget',
          hint: 'Raise maxOutputTokens of the service, or set its reasoningEffort lower.',
        },
      )
    if (hasReasoned)
      throw new ProviderFailure('sent reasoning without an answer', {
        hint: 'Ask again, or use another model.',
      })
    if (finishReason !== 'length') throw new ProviderFailure('sent an answer without text')
  }

  #providerFields(calls: readonly DraftedCall[]): ProviderFields | undefined {
    const extras = calls.filter(({ extra }) => extra !== undefined)
    const fields = {
      ...(this.#reasoning.trim() === '' ? {} : { reasoning: this.#reasoning }),
      ...(this.#details.length > 0 ? { reasoningDetails: this.#details } : {}),
      ...(extras.length > 0
        ? { callExtras: Object.fromEntries(extras.map(({ id, extra }) => [id, extra])) }
        : {}),
    }
    return Object.keys(fields).length > 0 ? fields : undefined
  }
}

/** Finish reasons for an answer that was cut off because it was too long. */
const cutReasons: ReadonlySet<string> = new Set(['length', 'max_tokens', 'model_length'])
/** Finish reasons of DeepSeek and vLLM for an answer that the server aborted. */
const brokenReasons: ReadonlySet<string> = new Set(['insufficient_system_resource', 'abort'])
const filterReasons: ReadonlySet<string> = new Set([
  'content_filter',
  'safety',
  'prohibited_content',
  'recitation',
  'blocklist',
  'refusal',
  'sensitive',
])

function tokenCountOf(usage: unknown, name: string): number | null {
  const value = fieldOfUntrusted(usage, name)
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}

function toProviderFailure(error: unknown): ProviderFailure {
  const said = providerReasonIn(error)
  const { kind, reason, hint } = findKnownRefusal(undefined, said) ?? {}
  return new ProviderFailure(
    reason ?? 'answered with an error',
    { ...(kind && { kind }), ...(hint && { hint }) },
    said,
  )
}

/** Returns true if an event adds to the answer, ends it, or contains an error. */
export function beginsAnswer(event: unknown): boolean {
  const choice = firstChoice(event)
  const { text, reasoning, calls } = messagePartsOf(choice)
  const isSaid = text !== '' || reasoning !== '' || calls.length > 0
  return isSaid || Boolean(fieldOfUntrusted(choice, 'finish_reason')) || errorIn(event) !== undefined
}
