import type { ToolCall } from '../../contract/chat.ts'
import type { ImageInput } from '../../contract/images.ts'
import type { AnswerPart } from './answer-splitter.ts'

/** A message in a request to a model. */
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

/** Fields of an answer that its provider can require in later requests of the same turn. */
export interface ProviderFields {
  readonly reasoning?: string
  /** Reasoning details in the format of OpenRouter, unchanged. */
  readonly reasoningDetails?: readonly unknown[]
  /** `extra_content` of tool calls by ID, in the format of Gemini. */
  readonly callExtras?: Readonly<Record<string, unknown>>
}

/** Sampling settings. The provider's defaults apply to undefined settings. */
export interface SamplingSettings {
  readonly temperature?: number
  readonly topP?: number
  readonly reasoningEffort?: string
  readonly stop?: readonly string[]
}

/** Description of a tool in a request to a model. */
export interface ToolSpec {
  /** Any string. A name that the provider does not accept is replaced in the request, and restored in the answer. */
  readonly name: string
  /** Readable replacement for a name that a provider does not accept. */
  readonly alias?: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** Settings of one request to a model. */
export interface CompletionSettings {
  /** Maximum number of tokens in the answer. */
  readonly maxTokens: number
  readonly tools?: readonly ToolSpec[]
  /** `none` forbids tool calls. The tools are then sent only if the model requires them because of earlier calls. */
  readonly toolChoice?: 'auto' | 'none'
  readonly sampling?: SamplingSettings
  readonly signal: AbortSignal
}

/** The answer of a model. */
export interface Completion {
  /** Empty if the model only called tools, or reached its token limit before it wrote any text. */
  readonly text: string
  /**
   * Tool calls in the order of the answer. Each has an ID, which is created if the model sent none. Arguments can be
   * invalid JSON.
   */
  readonly toolCalls: readonly ToolCall[]
  /** Reasoning before the answer; empty if there was none, or if the provider hides it. */
  readonly reasoning: string
  readonly finishReason: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  readonly providerFields?: ProviderFields
  /** Number of tokens in the prompt and the answer. Each token count is null if the provider does not report it. */
  readonly tokenCount: number | null
  readonly promptTokens: number | null
  readonly completionTokens: number | null
  /** The part of `completionTokens` that was used for reasoning. */
  readonly reasoningTokens: number | null
  /** Cost in US dollars; null if the provider does not report it. */
  readonly costUsd: number | null
}

/** A client that sends messages to a model. */
export interface ChatClient {
  /**
   * Resolves the endpoint and the credential for the next request, without sending it.
   *
   * @throws llm_credential_missing
   * @throws ProviderFailure  the address of the endpoint is invalid
   */
  check(): Promise<{ readonly hasCredential: boolean }>
  /**
   * Requests an answer, and returns it when it is complete.
   *
   * @throws llm_credential_missing  the credential is missing, not released for the host, or does not resolve
   * @throws llm_model_not_chat, llm_model_unavailable  the provider reports this
   * @throws ProviderFailure         any other failure
   */
  complete(messages: readonly ChatMessage[], settings: CompletionSettings): Promise<Completion>
  /**
   * Streams the text and reasoning of an answer, and returns the whole answer at the end. Repeats the request only
   * before the first part arrives. If the connection breaks later, the stream throws after the last part that arrived.
   *
   * @throws the errors of `complete`, at the first step or later
   */
  stream(
    messages: readonly ChatMessage[],
    settings: CompletionSettings,
  ): AsyncGenerator<AnswerPart, Completion, undefined>
}
