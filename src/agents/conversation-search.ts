import { WorkPacer } from '../base/work-pacer.ts'
import type { RowSearch } from '../storage/cursor.ts'
import type { ColumnValue, RowStore, Stored } from '../storage/rows.ts'
import { type ConversationRow, tables } from '../storage/tables.ts'
import { isVisible } from './visible-message.ts'

/** Maximum number and total length of the messages in one read. */
const batch = { limit: 100, charsMax: 200_000 }
/** Maximum total length of the messages that one search reads, as JSON. Exceeding it ends the search. */
const searchCharsMax = 8_000_000
/** Matches combining marks after 30 in a row, the limit of the Stream-Safe Text Format. @see UAX #15 section 13 */
const excessMarks = /(?<=\p{M}{30})\p{M}+/gu

/** A search for conversations whose title, questions and answers together contain all words. */
export class ConversationSearch implements RowSearch<ConversationRow, ConversationRow> {
  readonly #words: readonly string[]
  #charsLeft = searchCharsMax
  readonly #pacer: WorkPacer

  /** @param signal  ends the search */
  constructor(
    private readonly rows: Pick<RowStore, 'list'>,
    search: string,
    signal: AbortSignal,
  ) {
    this.#pacer = new WorkPacer(signal)
    this.#words = foldText(search).split(/\s+/).filter(Boolean)
  }

  /** The words to find, in lowercase. Cursors are valid for searches with the same words. */
  get normalizedText(): string {
    return this.#words.join(' ')
  }

  /** True if the search has reached its limit of characters. */
  get isExhausted(): boolean {
    return this.#charsLeft <= 0
  }

  /** Returns a conversation that contains all words; undefined for others. */
  async select({ row }: Stored<ConversationRow>): Promise<ConversationRow | undefined> {
    return (await this.finds(row)) ? row : undefined
  }

  /** Returns true if a conversation contains all words. Reads its messages if the title does not contain all words. */
  async finds({ workspaceId, conversationId, title }: ConversationRow): Promise<boolean> {
    await this.#pacer.yieldIfDue()
    let missingWords = wordsMissingIn(title, this.#words)
    let after: ColumnValue[] | undefined
    while (missingWords.length > 0) {
      const list = { index: 'byConversation', prefix: [workspaceId, conversationId] }
      const messages = await this.rows.list(tables.messages, { ...list, after, ...batch })
      for (const { row, text } of messages) {
        this.#charsLeft -= text.length
        if (row.role !== 'system' && isVisible(row)) missingWords = wordsMissingIn(row.content, missingWords)
        await this.#pacer.yieldIfDue()
      }
      const last = messages.at(-1)
      if (!last) return false
      after = [last.row.messageTs, last.row.messageId]
    }
    return true
  }
}

function wordsMissingIn(text: string | null, words: readonly string[]): readonly string[] {
  const content = foldText(text ?? '')
  return words.filter(word => !content.includes(word))
}

/** Normalizes a text for comparison. Removes excess marks, because they would make normalizing take quadratic time. */
function foldText(text: string): string {
  return text.replace(excessMarks, '').normalize('NFKC').toLowerCase()
}
