import type {
  ColumnValue,
  ListQuery,
  RowFeed,
  RowStore,
  RowTable,
  Stored,
  Write,
  WriteOutcome,
} from '../../storage/rows.ts'
import { type ConversationRow, type MessageImageRow, type MessageRow, tables } from '../../storage/tables.ts'

const inMemoryTables: ReadonlySet<string> = new Set([
  tables.conversations.name,
  tables.messages.name,
  tables.messageImages.name,
])

/** The rows of one message in a request. */
export interface RequestMessageRows {
  readonly row: MessageRow
  readonly images: readonly MessageImageRow[]
}

/**
 * A row store for a turn whose conversation is part of the request. The conversation and its messages are in memory.
 * Transactions that change only them are ignored. All other reads and writes use the store.
 */
export class RequestConversationRows implements RowStore {
  readonly feed: RowFeed
  readonly #store: RowStore
  readonly #conversation: ConversationRow
  readonly #messages: readonly MessageRow[]
  readonly #images: readonly MessageImageRow[]

  /** @param messages  oldest first */
  constructor(stored: RowStore, conversation: ConversationRow, messages: readonly RequestMessageRows[]) {
    this.#store = stored
    this.feed = stored.feed
    this.#conversation = conversation
    this.#messages = messages.map(({ row }) => row)
    this.#images = messages.flatMap(({ images }) => images)
  }

  async get<Row extends object>(
    table: RowTable<Row>,
    key: readonly ColumnValue[],
  ): Promise<Stored<Row> | undefined> {
    if (table.name === tables.conversations.name) return toStoredRow(this.#conversation, 0) as Stored<never>
    if (table.name !== tables.messages.name) return this.#store.get(table, key)
    const at = this.#messages.findIndex(({ messageId }) => messageId === key.at(-1))
    return at === -1 ? undefined : (toStoredRow(this.#messages[at]!, at) as Stored<never>)
  }

  async list<Row extends object>(table: RowTable<Row>, query: ListQuery): Promise<Stored<Row>[]> {
    if (!inMemoryTables.has(table.name)) return this.#store.list(table, query)
    if (table.name === tables.messageImages.name) return this.#imagesOf(query.prefix[2]) as Stored<never>[]
    const rows: readonly object[] =
      table.name === tables.messages.name ? this.#messages : [this.#conversation]
    const all = rows.map(toStoredRow) as Stored<never>[]
    const ordered = query.descending ? all.reverse() : all
    const from = query.after ? 1 + ordered.findIndex(({ row }) => isAtPosition(row, query.after!)) : 0
    return ordered.slice(from, from + query.limit)
  }

  #imagesOf(messageId: ColumnValue | undefined): Stored<MessageImageRow>[] {
    return this.#images.filter(image => image.messageId === messageId).map(toStoredRow)
  }

  async count(...[table, ...query]: Parameters<RowStore['count']>): Promise<number> {
    if (!inMemoryTables.has(table.name)) return this.#store.count(table, ...query)
    return table.name === tables.messages.name ? this.#messages.length : 1
  }

  measure(...query: Parameters<RowStore['measure']>): ReturnType<RowStore['measure']> {
    return this.#store.measure(...query)
  }

  async atomic(writes: readonly Write[]): Promise<WriteOutcome> {
    return writes.every(({ table }) => inMemoryTables.has(table.name))
      ? { ok: true }
      : this.#store.atomic(writes)
  }
}

/** Returns true if a message has the given position in the index `byConversation`. */
function isAtPosition({ messageId }: MessageRow, after: readonly ColumnValue[]): boolean {
  return messageId === after.at(-1)
}

function toStoredRow<Row extends object>(row: Row, ordinal: number): Stored<Row> {
  return { row, version: 1, ordinal, text: JSON.stringify(row) }
}
