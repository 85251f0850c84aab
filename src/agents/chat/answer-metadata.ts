import type { Citation, SentenceRange } from '../../contract/chat.ts'
import type { Completion } from '../../models/chat/completion.ts'
import type { ToolPassage } from '../tools/tool.ts'

/** Token counts, cost and passages of a turn so far. */
export interface TurnTally {
  /** Passages in the prompt, and passages that the model's searches returned. */
  readonly passages: readonly ToolPassage[]
  /** Query of the search before the first model call; undefined if there was no search. */
  readonly searchQuery: string | undefined
  readonly promptTokens: number
  readonly completionTokens: number
  /** Completion tokens that were used for reasoning. */
  readonly reasoningTokens: number
  /** Tokens of the prompt and the answer of the last model call; 0 if the provider does not report them. */
  readonly contextTokens: number
  /** Cost in US dollars; null if the provider does not report it. */
  readonly costUsd: number | null
  /** Number of older messages that the model did not receive. */
  readonly historyDropped: number
  /** Number of tool results that were shortened to fit. */
  readonly resultsCut: number
}

export const emptyTally: TurnTally = {
  passages: [],
  searchQuery: undefined,
  promptTokens: 0,
  completionTokens: 0,
  reasoningTokens: 0,
  contextTokens: 0,
  costUsd: null,
  historyDropped: 0,
  resultsCut: 0,
}

/** Returns a tally with the token counts and the cost of another model answer. */
export function addCompletion(
  tally: TurnTally,
  { tokenCount, promptTokens, completionTokens, reasoningTokens, costUsd }: Completion,
  { dropped, cut }: { dropped: number; cut: number },
): TurnTally {
  return {
    ...tally,
    promptTokens: tally.promptTokens + (promptTokens ?? 0),
    completionTokens: tally.completionTokens + (completionTokens ?? 0),
    reasoningTokens: tally.reasoningTokens + (reasoningTokens ?? 0),
    contextTokens: tokenCount ?? tally.contextTokens,
    costUsd: costUsd === null ? tally.costUsd : (tally.costUsd ?? 0) + costUsd,
    historyDropped: dropped,
    resultsCut: tally.resultsCut + cut,
  }
}

/** Result of a turn: the model, the answer's citations and reasoning, and the failure, if any. */
export interface TurnEnding {
  readonly model: string
  /** Context window in tokens. */
  readonly contextWindow: number
  readonly finishReason: Completion['finishReason'] | 'error'
  /** Failure reason to show to users. */
  readonly error?: string
  /** Beginning of the reasoning; empty if there was none. */
  readonly reasoning: string
  readonly reasoningMs: number
  /** True if the reader disconnected, or the turn or the runtime was stopped. */
  readonly isInterrupted?: boolean
  readonly citations: readonly Citation[]
  readonly citationsDropped: number
  /** Sentences that no passage supports; undefined if the answer was not checked. */
  readonly unsupported?: readonly SentenceRange[] | undefined
  /** Number of tools of the agent that the model did not receive. */
  readonly toolsLeftOut: number
  /** Labels of the MCP servers that the caller must sign in to. */
  readonly signInServers: readonly string[]
}

/**
 * Returns the metadata to store with an answer. Omits keys without a value. `context_document_ids` contains chunk IDs,
 * despite its name.
 *
 * @see docs/agents.md
 */
export function answerMetadata(tally: TurnTally, ending: TurnEnding): Record<string, string> {
  const { passages } = tally
  const chunkKeys = passages.map(({ chunkId, knowledgeBaseId, documentId }) => [
    chunkId,
    knowledgeBaseId,
    documentId,
  ])
  const { citations } = ending
  return withoutEmpty({
    model: ending.model,
    finish_reason: ending.finishReason,
    context_document_ids: passages.map(({ chunkId }) => chunkId).join(','),
    context_chunks: passages.length > 0 && JSON.stringify(chunkKeys),
    search_query: tally.searchQuery,
    citations: citations.length > 0 && JSON.stringify(citations),
    citations_dropped: ending.citationsDropped,
    unsupported: ending.unsupported && JSON.stringify(ending.unsupported),
    prompt_tokens: tally.promptTokens,
    completion_tokens: tally.completionTokens,
    reasoning: ending.reasoning,
    reasoning_ms: ending.reasoning !== '' && Math.round(ending.reasoningMs),
    reasoning_tokens: tally.reasoningTokens,
    context_tokens: tally.contextTokens,
    context_window: tally.contextTokens > 0 && ending.contextWindow,
    cost_usd: tally.costUsd,
    history_dropped: tally.historyDropped,
    tool_results_cut: tally.resultsCut,
    tools_left_out: ending.toolsLeftOut,
    sign_in_required: ending.signInServers.length > 0 && JSON.stringify(ending.signInServers),
    interrupted: ending.isInterrupted && 'true',
    error_message: ending.error,
  })
}

function withoutEmpty(
  fields: Record<string, string | number | false | null | undefined>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (value ? [[name, String(value)]] : [])),
  )
}
