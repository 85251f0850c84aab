import type { ToolCall } from '../../contract/chat.ts'
import type { ImageInput } from '../../contract/images.ts'
import type { AnswerPart } from './answer-text.ts'

/** What a model is told, in order. */
export type ChatMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string; readonly images?: readonly ImageInput[] }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly toolCalls?: readonly ToolCall[]
      readonly providerFields?: ProviderFields
    }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly content: string }

/** Fields of an answer that its provider can require in later requests of the turn. */
export interface ProviderFields {
  readonly reasoning?: string
  /** Reasoning details in the format of OpenRouter, unchanged. */
  readonly reasoningDetails?: readonly unknown[]
  /** `extra_content` of tool calls by ID, in the format of Gemini. */
  readonly callExtras?: Readonly<Record<string, unknown>>
}

/** Sampling settings. The provider decides those that are undefined. */
export interface Sampling {
  readonly temperature?: number
  readonly topP?: number
  readonly reasoningEffort?: string
  readonly stop?: readonly string[]
}

/** A tool as a model is told of it. */
export interface ToolSpec {
  /** Any text: what a provider does not take in a name is spelled otherwise on the way, and back. */
  readonly name: string
  /** Readable replacement for a name that a provider does not accept. */
  readonly alias?: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** What else a model is asked with. */
export interface CompletionSettings {
  /** Of the answer. */
  readonly maxTokens: number
  /** None when left out. */
  readonly tools?: readonly ToolSpec[]
  /** `none` requires an answer; the tools are then sent only because earlier messages contain calls. */
  readonly toolChoice?: 'auto' | 'none'
  readonly sampling?: Sampling
  readonly signal: AbortSignal
}

/** What a model said. */
export interface Completion {
  /** Empty where it only calls tools, or where its tokens ran out before it said anything. */
  readonly text: string
  /** In its order; a call without an id has got one. Arguments are as the model wrote them, and may be no JSON. */
  readonly toolCalls: readonly ToolCall[]
  /** Reasoning before the answer; empty if there was none, or if the provider hides it. */
  readonly reasoning: string
  readonly finishReason: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  readonly providerFields?: ProviderFields
  /** Tokens of question and answer together; null where the provider does not tell. */
  readonly tokenCount: number | null
  readonly promptTokens: number | null
  readonly completionTokens: number | null
  /** Completion tokens that were used for reasoning. */
  readonly reasoningTokens: number | null
  /** In US dollars; null where the provider does not tell. */
  readonly costUsd: number | null
}

/** A model that answers messages. */
export interface Chat {
  /**
   * Resolve what the next question needs, and ask nothing.
   *
   * @throws llm_credential_missing
   * @throws ProviderFailure  the address of the endpoint is invalid
   */
  check(): Promise<{ readonly hasCredential: boolean }>
  /**
   * One answer, whole.
   *
   * @throws llm_credential_missing  the credential is missing, not released for the host, or does not resolve
   * @throws llm_model_not_chat, llm_model_unavailable  the provider says so
   * @throws ProviderFailure         whatever else went wrong
   */
  complete(messages: readonly ChatMessage[], settings: CompletionSettings): Promise<Completion>
  /**
   * A streamed answer: parts of its text and reasoning, and at the end the whole answer. A request is
   * repeated only before the first piece. If the answer breaks off later, it fails after the pieces that arrived.
   *
   * @throws the errors of `complete`, at the first step or later
   */
  stream(
    messages: readonly ChatMessage[],
    settings: CompletionSettings,
  ): AsyncGenerator<AnswerPart, Completion, undefined>
}
