import { cutUnits } from '../../base/cut-units.ts'
import type { ImageInput } from '../../contract/images.ts'
import type { ChatMessage, ToolSpec } from '../../models/chat/completion.ts'
import { bytesPerToken, estimateTokens } from '../estimate-tokens.ts'
import type { AnsweringModel } from './answering-model.ts'
import { withoutImages } from './image-notes.ts'

/** Parts of a model request before they are fitted into the context window. */
export interface RequestDraft {
  /** System prompt; never shortened. */
  readonly system: string
  /** Earlier turns, oldest first. */
  readonly history: readonly ChatMessage[]
  /** Question of the user; never shortened. */
  readonly question: string
  /** Images of the question; never left out. */
  readonly images?: readonly ImageInput[]
  /** Tool calls and results of this turn. */
  readonly exchanges: readonly ChatMessage[]
  /** True if the request contains the reasoning of the model's earlier answers in this turn. */
  readonly wantsReasoning?: boolean
  readonly tools: readonly ToolSpec[]
}

/** Messages that fit into the context window, and the number of parts that were removed. */
export interface FittedRequest {
  readonly messages: ChatMessage[]
  /** Number of omitted messages of earlier turns. */
  readonly dropped: number
  /** Number of shortened tool results of this turn. */
  readonly cut: number
}

const tokensPerMessage = 8
/** Estimated tokens of an image: those of a photo with one megapixel. @see docs/agents.md#images */
export const tokensPerImage = 1_100
/** Minimum length to which a tool result is shortened. */
const resultCharsMin = 400
/** Minimum and maximum tokens for the passages of one search. */
const passageTokens = { min: 512, max: 8_000 }
const cutMark = '\n[cut: the rest does not fit]'

/** Returns the token limit for the passages of one search: a third of the prompt, between a minimum and a maximum. */
export function passageTokensFor({
  contextTokens,
  maxTokens,
}: Pick<AnsweringModel, 'contextTokens' | 'maxTokens'>): number {
  const third = Math.floor((contextTokens - maxTokens) / 3)
  return Math.min(passageTokens.max, Math.max(passageTokens.min, third))
}

/**
 * Returns the token limit for the text of attachments. It equals `passageTokens`, or half of `passageTokens` if
 * `isShared` is true, but is at most a third of `leftTokens`.
 *
 * @param options.isShared    true if knowledge bases are also searched, or if the model has tools
 * @param options.leftTokens  tokens of the prompt without the tools and the question
 */
export function attachmentTokensFor({
  passageTokens,
  isShared,
  leftTokens,
}: {
  passageTokens: number
  isShared: boolean
  leftTokens: number
}): number {
  const share = isShared ? Math.floor(passageTokens / 2) : passageTokens
  return Math.max(0, Math.min(share, Math.floor(leftTokens / 3)))
}

/**
 * Returns the token limit for earlier turns: half of the prompt, or a third if the agent has tools, because earlier
 * turns are sent again after each tool call.
 */
export function historyTokensFor(promptTokens: number, hasTools: boolean): number {
  return Math.max(0, Math.floor(promptTokens / (hasTools ? 3 : 2)))
}

/**
 * Fits a draft into a budget. Shortens tool results of earlier turns, oldest first. If that is not enough, removes
 * whole turns, oldest first, and then shortens tool results of this turn. Never shortens the question, even if it
 * exceeds the budget.
 *
 * @param budgetTokens  maximum number of tokens of the prompt
 */
export function fitToBudget(draft: RequestDraft, budgetTokens: number): FittedRequest {
  const { system, question, images = [], tools } = draft
  const fixedMessages: ChatMessage[] = [
    { role: 'system', content: system },
    { role: 'user', content: question, ...(images.length > 0 && { images }) },
  ]
  const fixedTokens =
    countTokens(fixedMessages) + estimateTokens(JSON.stringify(tools)) + providerTokensOf(draft)
  const { messages: exchanges, cut } = shortenResults(draft.exchanges, budgetTokens - fixedTokens)
  const leftTokens = budgetTokens - fixedTokens - countTokens(exchanges)
  const history = newestTurnsThatFit(
    draft.history,
    Math.min(leftTokens, historyTokensFor(budgetTokens, tools.length > 0)),
  )
  const dropped = draft.history.length - history.length
  return { messages: [fixedMessages[0]!, ...history, fixedMessages[1]!, ...exchanges], dropped, cut }
}

/**
 * Returns the newest whole turns that fit into `tokens`. Shortens their tool results if necessary. If a question does
 * not fit with its images, removes the images.
 */
function newestTurnsThatFit(messages: readonly ChatMessage[], tokens: number): ChatMessage[] {
  const newestTurns: ChatMessage[] = []
  let turn: ChatMessage[] = []
  let usedTokens = 0
  for (const original of messages.toReversed()) {
    const fits = usedTokens + minimumTokens([original]) <= tokens
    const message = fits ? original : withoutImages(original)
    usedTokens += minimumTokens([message])
    if (usedTokens > tokens) break
    turn.unshift(message)
    if (message.role !== 'user') continue
    newestTurns.unshift(...turn)
    turn = []
  }
  return shortenResults(newestTurns, tokens).messages
}

/** Returns the number of tokens that messages have if their tool results are shortened as much as possible. */
export function minimumTokens(messages: readonly ChatMessage[]): number {
  return countTokens(
    messages.map(message => (message.role === 'tool' ? shortenResult(message, Infinity) : message)),
  )
}

/** Shortens tool results, oldest first, until the messages fit into `tokens` or no result can become shorter. */
function shortenResults(
  messages: readonly ChatMessage[],
  tokens: number,
): { messages: ChatMessage[]; cut: number } {
  let excess = countTokens(messages) - tokens
  let cut = 0
  const shortened = messages.map(message => {
    if (message.role !== 'tool' || excess <= 0) return message
    const shorter = shortenResult(message, excess * bytesPerToken)
    if (shorter !== message) cut += 1
    excess -= countTokens([message]) - countTokens([shorter])
    return shorter
  })
  return { messages: shortened, cut }
}

/**
 * Removes up to `excess` characters from a tool result. Keeps the last line, because it contains the end tag.
 */
function shortenResult<M extends ChatMessage & { role: 'tool' }>(message: M, excess: number): M {
  const { content } = message
  const end = content.slice(content.lastIndexOf('\n'))
  const chars = Math.max(resultCharsMin, content.length - excess - cutMark.length)
  const shorter = cutUnits(content, chars - end.length) + cutMark + end
  return shorter.length < content.length ? { ...message, content: shorter } : message
}

/** Returns the number of tokens of the provider-specific fields in the messages of this turn. */
function providerTokensOf({ exchanges, wantsReasoning = false }: RequestDraft): number {
  return exchanges.reduce((sum, message) => {
    if (message.role !== 'assistant' || !message.providerFields) return sum
    const { reasoning = '', ...others } = message.providerFields
    return sum + estimateTokens(JSON.stringify(others)) + (wantsReasoning ? estimateTokens(reasoning) : 0)
  }, 0)
}

/** Returns the estimated number of tokens of messages, without provider-specific fields. */
export function countTokens(messages: readonly ChatMessage[]): number {
  return messages.reduce((sum, message) => {
    const calls = message.role === 'assistant' && message.toolCalls ? JSON.stringify(message.toolCalls) : ''
    const images = message.role === 'user' ? (message.images?.length ?? 0) : 0
    const text = estimateTokens(message.content ?? '') + estimateTokens(calls)
    return sum + tokensPerMessage + text + tokensPerImage * images
  }, 0)
}
