import type { ImageInput } from '../../contract/images.ts'
import type { ChatMessage, ToolSpec } from '../../models/chat/completion.ts'
import { bytesPerToken, tokensIn } from '../tokens.ts'
import { cut as cutText } from '../tools/result.ts'
import { withoutImages } from './image-notes.ts'
import type { AnsweringModel } from './model.ts'

/** What a model is about to be told, by how dear it is. */
export interface Draft {
  /** What it is told first; never cut. */
  readonly system: string
  /** Earlier turns, oldest first. */
  readonly history: readonly ChatMessage[]
  /** Never cut. */
  readonly question: string
  /** Images of the question; never left out. */
  readonly images?: readonly ImageInput[]
  /** Calls of tools in this turn, and what they gave. */
  readonly exchanges: readonly ChatMessage[]
  /** Reasoning of the exchanges is sent back. */
  readonly wantsReasoning?: boolean
  readonly tools: readonly ToolSpec[]
}

/** A draft that fits, and what went for it. */
export interface Fitted {
  readonly messages: ChatMessage[]
  /** Messages of earlier turns that are left out. */
  readonly dropped: number
  /** Results of this turn that are cut short. */
  readonly cut: number
}

const tokensPerMessage = 8
/** Estimate for an image, about that of a photo of one megapixel. @see docs/agents.md#images */
export const tokensPerImage = 1_100
/** What is left at least of a result that is cut. */
const resultCharsMin = 400
/** Minimum and maximum tokens for the passages of one search. */
const passageTokens = { min: 512, max: 8_000 }
const cutMark = '\n[cut: the rest does not fit]'

/** Returns the tokens that passages of one search may take: a third of the prompt. */
export function passageTokensFor({
  contextTokens,
  maxTokens,
}: Pick<AnsweringModel, 'contextTokens' | 'maxTokens'>): number {
  const third = Math.floor((contextTokens - maxTokens) / 3)
  return Math.min(passageTokens.max, Math.max(passageTokens.min, third))
}

/**
 * Returns the tokens that the text of attachments may take: those of passages, or half of them if knowledge bases are
 * searched, too. A small context window has less.
 *
 * @param left  tokens of the prompt without tools and question
 */
export function attachmentTokensFor({
  passageTokens,
  isShared,
  left,
}: {
  passageTokens: number
  isShared: boolean
  left: number
}): number {
  const share = isShared ? Math.floor(passageTokens / 2) : passageTokens
  return Math.max(0, Math.min(share, Math.floor(left / 3)))
}

/**
 * Returns the tokens that earlier turns may take. An agent with tools sends them again after each tool call, so they get
 * a third of the prompt; without tools, half.
 */
export function historyTokensFor(promptTokens: number, hasTools: boolean): number {
  return Math.max(0, Math.floor(promptTokens / (hasTools ? 3 : 2)))
}

/**
 * Makes a draft fit. Tool results of earlier turns are shortened first, the oldest first; then whole turns are left out,
 * the oldest first; then tool results of this turn are shortened. The question stays whole, even if it does not fit alone.
 *
 * @param budgetTokens  maximum length of the prompt
 */
export function fitted(draft: Draft, budgetTokens: number): Fitted {
  const { system, question, images = [], tools } = draft
  const fixed: ChatMessage[] = [
    { role: 'system', content: system },
    { role: 'user', content: question, ...(images.length > 0 && { images }) },
  ]
  const spent = tokensOf(fixed) + tokensIn(JSON.stringify(tools)) + providerTokensOf(draft)
  const { exchanges, cut } = shortenedTo(draft.exchanges, budgetTokens - spent)
  const left = budgetTokens - spent - tokensOf(exchanges)
  const history = newestWithin(
    draft.history,
    Math.min(left, historyTokensFor(budgetTokens, tools.length > 0)),
  )
  const dropped = draft.history.length - history.length
  return { messages: [fixed[0]!, ...history, fixed[1]!, ...exchanges], dropped, cut }
}

/**
 * Returns the newest whole turns that fit a bound. Their tool results are shortened as far as necessary, and a question
 * whose images do not fit is kept without them.
 */
function newestWithin(messages: readonly ChatMessage[], tokens: number): ChatMessage[] {
  const kept: ChatMessage[] = []
  let turn: ChatMessage[] = []
  let spent = 0
  for (const whole of messages.toReversed()) {
    const isWithin = spent + shortestTokensOf([whole]) <= tokens
    const message = isWithin ? whole : withoutImages(whole)
    spent += shortestTokensOf([message])
    if (spent > tokens) break
    turn.unshift(message)
    if (message.role !== 'user') continue
    kept.unshift(...turn)
    turn = []
  }
  return shortenedTo(kept, tokens).exchanges
}

/** Returns the tokens of messages whose tool results are as short as they can be. */
export function shortestTokensOf(messages: readonly ChatMessage[]): number {
  return tokensOf(messages.map(message => (message.role === 'tool' ? shortened(message, Infinity) : message)))
}

/** Shortens tool results, the oldest first, until messages fit a bound or no result can be shorter. */
function shortenedTo(
  messages: readonly ChatMessage[],
  tokens: number,
): { exchanges: ChatMessage[]; cut: number } {
  let excess = tokensOf(messages) - tokens
  let cut = 0
  const exchanges = messages.map(message => {
    if (message.role !== 'tool' || excess <= 0) return message
    const shorter = shortened(message, excess * bytesPerToken)
    if (shorter !== message) cut += 1
    excess -= tokensOf([message]) - tokensOf([shorter])
    return shorter
  })
  return { exchanges, cut }
}

/** Shortens a tool result by some characters. Its beginning and its last line stay: the last line ends the data. */
function shortened<M extends ChatMessage & { role: 'tool' }>(message: M, excess: number): M {
  const { content } = message
  const end = content.slice(content.lastIndexOf('\n'))
  const chars = Math.max(resultCharsMin, content.length - excess - cutMark.length)
  const shorter = cutText(content, chars - end.length) + cutMark + end
  return shorter.length < content.length ? { ...message, content: shorter } : message
}

/** Returns the tokens of the fields that the provider gets back with the answers of the turn. */
function providerTokensOf({ exchanges, wantsReasoning = false }: Draft): number {
  return exchanges.reduce((sum, message) => {
    if (message.role !== 'assistant' || !message.providerFields) return sum
    const { reasoning = '', ...others } = message.providerFields
    return sum + tokensIn(JSON.stringify(others)) + (wantsReasoning ? tokensIn(reasoning) : 0)
  }, 0)
}

/** Returns the number of tokens of messages, without the fields of providers. */
export function tokensOf(messages: readonly ChatMessage[]): number {
  return messages.reduce((sum, message) => {
    const calls = message.role === 'assistant' && message.toolCalls ? JSON.stringify(message.toolCalls) : ''
    const images = message.role === 'user' ? (message.images?.length ?? 0) : 0
    const text = tokensIn(message.content ?? '') + tokensIn(calls)
    return sum + tokensPerMessage + text + tokensPerImage * images
  }, 0)
}
