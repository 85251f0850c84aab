import type { ToolCall } from '../../contract/chat.ts'

/** What a model is told, in order. */
export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string | null; readonly toolCalls?: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly content: string }

/** How the model chooses its words. A field that is left out is up to the provider. */
export interface Sampling {
  readonly temperature?: number
}

/** A tool as a model is told of it. */
export interface ToolSpec {
  /** Any text: what a provider does not take in a name is spelled otherwise on the way, and back. */
  readonly name: string
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
  readonly sampling?: Sampling
  readonly signal: AbortSignal
}

/** What a model said. */
export interface Completion {
  /** Empty where it only calls tools, or where its tokens ran out before it said anything. */
  readonly text: string
  /** In its order; a call without an id has got one. Arguments are as the model wrote them, and may be no JSON. */
  readonly toolCalls: readonly ToolCall[]
  readonly finishReason: 'stop' | 'length' | 'tool_calls'
  /** Tokens of question and answer together; null where the provider does not tell. */
  readonly tokenCount: number | null
  readonly promptTokens: number | null
  readonly completionTokens: number | null
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
   * One answer as it is made: pieces of its text, and at the end all of it. A request is repeated only before the first
   * piece. An answer that breaks off after it fails; the pieces that came stand.
   *
   * @throws what `complete` throws, at the first step or later
   */
  stream(
    messages: readonly ChatMessage[],
    settings: CompletionSettings,
  ): AsyncGenerator<string, Completion, undefined>
}
