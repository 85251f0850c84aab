import { field, ProviderFailure, toldIn } from '../provider/failure.ts'
import type { Completion } from './completion.ts'
import { ToolCallDrafts } from './tool-call-drafts.ts'
import type { ToolNames } from './tool-names.ts'

/** Of text and arguments together. A model writes some ten thousand. */
const charsMax = 1_000_000

/** What a model says, put together from the events of a stream, or from a whole answer. */
export class Draft {
  #text = ''
  #chars = 0
  #reason: string | undefined
  #usage: unknown
  readonly #calls: ToolCallDrafts

  constructor(private readonly names: ToolNames) {
    this.#calls = new ToolCallDrafts(name => names.knows(name))
  }

  /**
   * Take in an event, or a whole answer.
   *
   * @returns the text that it adds
   * @throws ProviderFailure  it tells of an error, or there is more than anyone reads
   */
  add(event: unknown): string {
    const choice = choiceIn(event)
    const error = field(event, 'error')
    const reason = field(choice, 'finish_reason')
    if (error || reason === 'error')
      throw new ProviderFailure('answered with an error', {}, toldIn(error ?? field(choice, 'error')))
    const { text, calls } = saidIn(choice)
    this.#text += text
    this.#chars += text.length + this.#calls.add(calls)
    if (this.#chars > charsMax)
      throw new ProviderFailure(`sent an answer of more than ${charsMax} characters`)
    if (typeof reason === 'string' && reason !== '') this.#reason = reason
    this.#usage = field(event, 'usage') ?? this.#usage
    return text
  }

  /** The model has said that it is done; what may follow is the count of its tokens. */
  get isFinished(): boolean {
    return this.#reason !== undefined
  }

  /** @throws ProviderFailure  nothing was said */
  completion(): Completion {
    const toolCalls = this.#calls.all().map(call => ({ ...call, name: this.names.named(call.name) }))
    const wasCut = this.#reason === 'length'
    if (this.#text === '' && toolCalls.length === 0 && !wasCut)
      throw new ProviderFailure('sent an answer without text')
    return {
      text: this.#text,
      toolCalls,
      finishReason: wasCut ? 'length' : toolCalls.length > 0 ? 'tool_calls' : 'stop',
      tokenCount: this.#counted('total_tokens'),
      promptTokens: this.#counted('prompt_tokens'),
      completionTokens: this.#counted('completion_tokens'),
      costUsd: this.#counted('cost'),
    }
  }

  #counted(name: string): number | null {
    const value = field(this.#usage, name)
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
  }
}

/** Whether an event is the first that counts: it adds to the answer, ends it, or tells of an error. */
export function begins(event: unknown): boolean {
  const choice = choiceIn(event)
  const { text, calls } = saidIn(choice)
  return text !== '' || calls.length > 0 || Boolean(field(choice, 'finish_reason') || field(event, 'error'))
}

function choiceIn(event: unknown): unknown {
  const choices = field(event, 'choices')
  return Array.isArray(choices) ? choices[0] : undefined
}

/** Calls of a whole answer are whole, and have no index. */
function saidIn(choice: unknown): { text: string; calls: readonly unknown[] } {
  const delta = field(choice, 'delta')
  const said = delta ?? field(choice, 'message')
  const text = field(said, 'content') ?? field(said, 'refusal')
  const given = field(said, 'tool_calls')
  const calls = Array.isArray(given) ? given : []
  return {
    text: typeof text === 'string' ? text : '',
    calls: delta ? calls : calls.map((call: object, index) => ({ ...call, index })),
  }
}
