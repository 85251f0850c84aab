import type { ChatMessage, ToolSpec } from '../../models/chat/completion.ts'

/** What a model is about to be told, by how dear it is. */
export interface Draft {
  /** What it is told first; never cut. */
  readonly system: string
  /** Earlier turns, oldest first. */
  readonly history: readonly ChatMessage[]
  /** Never cut. */
  readonly question: string
  /** Calls of tools in this turn, and what they gave. */
  readonly exchanges: readonly ChatMessage[]
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

/** Low enough for every tokenizer in use, text of few bytes per token included. */
const bytesPerToken = 3
const tokensPerMessage = 8
/** What is left at least of a result that is cut. */
const resultCharsMin = 400
const cutMark = '\n[cut: the rest does not fit]'

/**
 * Make a draft fit. The oldest messages go first, calls of tools together with what they gave; then the results of this
 * turn are cut, the oldest first. The question stays whole, also where it alone does not fit.
 *
 * @param budgetTokens  what the model can be told
 */
export function fitted(draft: Draft, budgetTokens: number): Fitted {
  const { system, question, tools } = draft
  const fixed: ChatMessage[] = [
    { role: 'system', content: system },
    { role: 'user', content: question },
  ]
  const spent = tokensOf(fixed) + tokensIn(JSON.stringify(tools))
  const { exchanges, cut } = cutTo(draft.exchanges, budgetTokens - spent)
  const history = latestWithin(draft.history, budgetTokens - spent - tokensOf(exchanges))
  const dropped = draft.history.length - history.length
  return { messages: [fixed[0]!, ...history, fixed[1]!, ...exchanges], dropped, cut }
}

/** The newest of some messages whose tokens are within a bound; no result stands there without its call. */
function latestWithin(messages: readonly ChatMessage[], tokens: number): ChatMessage[] {
  const kept: ChatMessage[][] = []
  let left = tokens
  for (const group of groups(messages).reverse()) {
    left -= tokensOf(group)
    if (left < 0) break
    kept.unshift(group)
  }
  return kept.flat()
}

/** Messages that stay or go together. */
function groups(messages: readonly ChatMessage[]): ChatMessage[][] {
  const all: ChatMessage[][] = []
  for (const message of messages)
    if (message.role === 'tool' && all.length > 0) all.at(-1)!.push(message)
    else all.push([message])
  return all
}

function cutTo(messages: readonly ChatMessage[], tokens: number): { exchanges: ChatMessage[]; cut: number } {
  let excess = (tokensOf(messages) - tokens) * bytesPerToken
  let cut = 0
  const exchanges = messages.map(message => {
    if (message.role !== 'tool' || excess <= 0) return message
    const content = shortened(message.content, excess)
    if (content === message.content) return message
    excess -= Buffer.byteLength(message.content) - Buffer.byteLength(content)
    cut += 1
    return { ...message, content }
  })
  return { exchanges, cut }
}

/** The beginning and the end of a result stay: the end holds its mark. */
function shortened(text: string, excess: number): string {
  const end = text.slice(text.lastIndexOf('\n'))
  const chars = Math.max(resultCharsMin, text.length - excess - cutMark.length)
  const kept = text.slice(0, chars - end.length) + cutMark + end
  return kept.length < text.length ? kept : text
}

/** As how many tokens a text counts, whatever tokenizer a model has; mostly it has fewer. */
export function tokensIn(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken)
}

function tokensOf(messages: readonly ChatMessage[]): number {
  return messages.reduce((sum, message) => {
    const calls = message.role === 'assistant' && message.toolCalls ? JSON.stringify(message.toolCalls) : ''
    return sum + tokensPerMessage + tokensIn(message.content ?? '') + tokensIn(calls)
  }, 0)
}
