import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ColumnValue, RowStore } from '../storage/rows.ts'
import { type ConversationRow, tables } from '../storage/tables.ts'
import { isVisible } from './visible-message.ts'

/** Maximum number and length of the messages in one read. */
const batch = { limit: 100, charsMax: 200_000 }
/** Maximum length of the messages that one search reads, as JSON, before it ends with the current conversation. */
const searchCharsMax = 8_000_000
/**
 * Time in milliseconds after which a search lets other work run, because reads of the store can complete synchronously.
 */
const sliceMs = 5
/** Combining marks after the first 30 in a row, the limit of the Stream-Safe Text Format. @see UAX #15 section 13 */
const excessMarks = /(?<=\p{M}{30})\p{M}+/gu

/** A search for conversations whose title, questions and answers contain all words. */
export class ConversationSearch {
  readonly #words: readonly string[]
  #charsLeft = searchCharsMax
  #sliceStartedAt = performance.now()

  /** @param signal  ends the search */
  constructor(
    private readonly rows: Pick<RowStore, 'list'>,
    search: string,
    private readonly signal: AbortSignal,
  ) {
    this.#words = foldText(search).split(/\s+/).filter(Boolean)
  }

  /** Key that is equal for searches with equal results. */
  get identity(): string {
    return this.#words.join(' ')
  }

  /** True if the search has reached its limit of characters. */
  get isExhausted(): boolean {
    return this.#charsLeft <= 0
  }

  /** Returns true if a conversation contains all words. Reads its messages if the title does not. */
  async finds({ workspaceId, conversationId, title }: ConversationRow): Promise<boolean> {
    await this.#yieldIfDue()
    let missing = wordsMissingIn(title, this.#words)
    let after: ColumnValue[] | undefined
    while (missing.length > 0) {
      const list = { index: 'byConversation', prefix: [workspaceId, conversationId] }
      const messages = await this.rows.list(tables.messages, { ...list, after, ...batch })
      for (const { row, text } of messages) {
        this.#charsLeft -= text.length
        if (row.role !== 'system' && isVisible(row)) missing = wordsMissingIn(row.content, missing)
        await this.#yieldIfDue()
      }
      const last = messages.at(-1)
      if (!last) return false
      after = [last.row.messageTs, last.row.messageId]
    }
    return true
  }

  async #yieldIfDue(): Promise<void> {
    this.signal.throwIfAborted()
    if (performance.now() - this.#sliceStartedAt < sliceMs) return
    await nextTurn()
    this.#sliceStartedAt = performance.now()
  }
}

function wordsMissingIn(text: string | null, words: readonly string[]): readonly string[] {
  const content = foldText(text ?? '')
  return words.filter(word => !content.includes(word))
}

/** Normalizes a text for comparison. Removes excess marks, which would make the normalization quadratic. */
function foldText(text: string): string {
  return text.replace(excessMarks, '').normalize('NFKC').toLowerCase()
}
