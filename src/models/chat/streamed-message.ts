import type { ToolCall } from '../../contract/chat.ts'
import { errorIn, findKnownRefusal } from '../provider/known-refusals.ts'
import { fieldOfUntrusted, ProviderFailure, providerReasonIn } from '../provider/provider-failure.ts'
import { type AnswerPart, AnswerSplitter } from './answer-splitter.ts'
import type { Completion, ProviderFields, ToolSpec } from './completion.ts'
import { firstChoice, messagePartsOf } from './message-parts.ts'
import { addDetails } from './reasoning-details.ts'
import { parseTextToolCalls, type TextToolCall } from './text-tool-calls.ts'
import { normalizeToolArguments } from './tool-arguments.ts'
import { callsMax, type DraftedCall, newCallId, ToolCallDrafts, tooManyCalls } from './tool-call-drafts.ts'
import type { ToolNames } from './tool-names.ts'

/**
 * Maximum total number of characters in the text, reasoning and tool arguments of an answer. Answers rarely have more
 * than ten thousand.
 */
const charsMax = 1_000_000

/** Properties of a request that affect how its answer is parsed. */
export interface StreamedMessageSettings {
  readonly names: ToolNames
  /** Tools that the model may call in this answer. */
  readonly tools: readonly ToolSpec[]
  readonly maxTokens: number
}

/** Assembles an answer from the events of a stream, or from one whole response. */
export class StreamedMessage {
  #text = ''
  #reasoning = ''
  #chars = 0
  #rawFinishReason: string | undefined
  #usage: unknown
  #hasStarted = false
  readonly #details: unknown[] = []
  readonly #calls: ToolCallDrafts
  readonly #textCalls: TextToolCall[] = []
  readonly #splitter: AnswerSplitter
  readonly #tools: ReadonlyMap<string, ToolSpec>

  constructor(private readonly settings: StreamedMessageSettings) {
    const { names, tools } = settings
    this.#tools = new Map(tools.map(tool => [tool.name, tool]))
    this.#calls = new ToolCallDrafts(name => names.hasEncoded(name))
    this.#splitter = new AnswerSplitter(tools.length > 0 ? call => this.#addTextCall(call) : undefined)
  }

  /**
   * Adds an event of a stream, or a whole answer.
   *
   * @returns the text and reasoning that the event adds
   * @throws ProviderFailure  the event contains an error, or the answer is too long
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
    if (reasoning !== '') this.#splitter.treatAllAsAnswer()
    const parts: AnswerPart[] = reasoning === '' ? [] : [{ kind: 'reasoning', delta: reasoning }]
    const newParts = this.#addParts(text === '' ? parts : [...parts, ...this.#splitter.read(text)])
    // This must be the last step: once the finish reason is set, failures are ignored.
    const reason = fieldOfUntrusted(choice, 'finish_reason')
    if (typeof reason === 'string' && reason !== '') this.#rawFinishReason = reason
    return newParts
  }

  /** Ends the stream, and returns the parts that were still pending. */
  end(): AnswerPart[] {
    return this.#addParts(this.#splitter.end())
  }

  /** True after a part of the answer was returned. The request can then no longer be repeated. */
  get hasStarted(): boolean {
    return this.#hasStarted
  }

  /** True if the answer is complete. Only token counts can follow. */
  get isFinished(): boolean {
    return this.#rawFinishReason !== undefined
  }

  /**
   * Returns the whole answer. Call it after `end`.
   *
   * @throws ProviderFailure  the answer is empty, or the token limit was reached during reasoning
   */
  completion(): Completion {
    if (abortReasons.has(this.#rawFinishReason ?? ''))
      throw new ProviderFailure('ended in the middle of its answer')
    const draftedCalls = this.#finishedCalls()
    const toolCalls = draftedCalls.map(({ extra: _, ...call }) => call)
    const finishReason = this.#finishReason(toolCalls)
    const reasoningTokens = nonNegativeNumber(
      fieldOfUntrusted(this.#usage, 'completion_tokens_details'),
      'reasoning_tokens',
    )
    const hasReasoned = this.#reasoning.trim() !== '' || Boolean(reasoningTokens)
    const isEmpty = (hasReasoned ? this.#text.trim() : this.#text) === '' && toolCalls.length === 0
    if (isEmpty) this.#requireValidEmptyAnswer(finishReason, hasReasoned)
    const providerFields = this.#providerFields(draftedCalls)
    return {
      text: this.#text,
      reasoning: this.#reasoning.trim(),
      toolCalls,
      finishReason,
      ...(providerFields && { providerFields }),
      tokenCount: nonNegativeNumber(this.#usage, 'total_tokens'),
      promptTokens: nonNegativeNumber(this.#usage, 'prompt_tokens'),
      completionTokens: nonNegativeNumber(this.#usage, 'completion_tokens'),
      reasoningTokens,
      costUsd: nonNegativeNumber(this.#usage, 'cost'),
    }
  }

  #addParts(parts: AnswerPart[]): AnswerPart[] {
    for (const part of parts) {
      this.#hasStarted = true
      if (part.kind === 'text') this.#text += part.delta
      else if (part.kind === 'reasoning') this.#reasoning += part.delta
      else {
        this.#reasoning += this.#text
        this.#text = ''
      }
    }
    return parts
  }

  #addTextCall(block: string): boolean {
    const { names } = this.settings
    const calls = parseTextToolCalls(block, name => this.#tools.get(names.decode(name))?.parameters)
    if (!calls) return false
    if (this.#textCalls.length + calls.length > callsMax) throw tooManyCalls()
    this.#textCalls.push(...calls)
    return true
  }

  /**
   * Returns the tool calls of the answer. Ignores calls in the text if there are other calls, because some servers send
   * the same call in both forms.
   */
  #finishedCalls(): DraftedCall[] {
    const draftedCalls = this.#calls.calls()
    const textCalls = this.#textCalls.map(call => ({ id: newCallId(), ...call }))
    return (draftedCalls.length > 0 ? draftedCalls : textCalls).map(call => {
      const name = this.settings.names.decode(call.name)
      return {
        ...call,
        name,
        arguments: normalizeToolArguments(call.arguments, this.#tools.get(name)?.parameters),
      }
    })
  }

  #finishReason(toolCalls: readonly ToolCall[]): Completion['finishReason'] {
    const reason = this.#rawFinishReason?.toLowerCase() ?? ''
    if (lengthReasons.has(reason)) return 'length'
    if (filterReasons.has(reason)) return 'content_filter'
    return toolCalls.length > 0 ? 'tool_calls' : 'stop'
  }

  /**
   * Checks an answer without text and tool calls. It is valid only if the token limit was reached without reasoning.
   *
   * @throws ProviderFailure  the answer is not valid
   */
  #requireValidEmptyAnswer(finishReason: Completion['finishReason'], hasReasoned: boolean): void {
    if (finishReason === 'content_filter') throw toProviderFailure({ code: 'content_filter' })
    if (hasReasoned && finishReason === 'length')
      throw new ProviderFailure(
        `used all of its ${this.settings.maxTokens} output tokens for reasoning, and wrote no answer`,
        {
          kind: 'reasoning_budget',
          hint: 'Increase maxOutputTokens of the service, or decrease its reasoningEffort.',
        },
      )
    if (hasReasoned)
      throw new ProviderFailure('sent reasoning without an answer', {
        hint: 'Retry, or use another model.',
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

/** Finish reasons of answers that ended because the token limit was reached. */
const lengthReasons: ReadonlySet<string> = new Set(['length', 'max_tokens', 'model_length'])
/** Finish reasons with which DeepSeek and vLLM mark answers that the server aborted. */
const abortReasons: ReadonlySet<string> = new Set(['insufficient_system_resource', 'abort'])
const filterReasons: ReadonlySet<string> = new Set([
  'content_filter',
  'safety',
  'prohibited_content',
  'recitation',
  'blocklist',
  'refusal',
  'sensitive',
])

function nonNegativeNumber(usage: unknown, name: string): number | null {
  const value = fieldOfUntrusted(usage, name)
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}

function toProviderFailure(error: unknown): ProviderFailure {
  const providerReason = providerReasonIn(error)
  const { kind, reason, hint } = findKnownRefusal(undefined, providerReason) ?? {}
  return new ProviderFailure(
    reason ?? 'responded with an error',
    { ...(kind && { kind }), ...(hint && { hint }) },
    providerReason,
  )
}

/** Returns true if an event adds to the answer, ends it, or contains an error. */
export function startsAnswer(event: unknown): boolean {
  const choice = firstChoice(event)
  const { text, reasoning, calls } = messagePartsOf(choice)
  const hasContent = text !== '' || reasoning !== '' || calls.length > 0
  return hasContent || Boolean(fieldOfUntrusted(choice, 'finish_reason')) || errorIn(event) !== undefined
}
