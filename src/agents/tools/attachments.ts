import { LRUCache } from 'lru-cache'
import type { Attachment } from '../../contract/attachments.ts'
import { limits } from '../../contract/limits.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ConversationRow, tables } from '../../storage/tables.ts'
import { executable } from './executable.ts'
import { chunksResult } from './knowledge.ts'
import { readAttachmentTool } from './own-tools.ts'
import { bytesFor } from './passage-budget.ts'
import { label } from './passages.ts'
import { ToolError } from './result.ts'
import type { Passage, Tool } from './tool.ts'
import { WordIndex } from './word-index.ts'

/** Maximum length of all texts in memory, in UTF-16 units. An index takes about as much memory as its text. */
const cachedCharsMax = 16_000_000

/** A passage of an attachment, and its text. */
export interface AttachedChunk {
  readonly passage: Passage
  readonly text: string
}

/** An attachment with its text in chunks. */
export class AttachedText {
  #index: Promise<WordIndex> | undefined

  constructor(
    readonly attachment: Attachment,
    /** Chunks of the text, in order. Together they are the whole text. */
    readonly chunks: readonly AttachedChunk[],
  ) {}

  /** Returns the scores of the chunks that contain a word of the query, by chunk index. */
  async scores(query: string): Promise<Map<number, number>> {
    this.#index ??= WordIndex.of(this.chunks.map(({ text }) => text))
    return (await this.#index).scores(query)
  }
}

/** Reads the attachments of conversations, and caches their texts, which never change. */
export class AttachmentReader {
  readonly #texts = new LRUCache<string, AttachedText>({
    maxSize: cachedCharsMax,
    sizeCalculation: ({ attachment }) => attachment.textChars,
  })

  constructor(private readonly rows: RowStore) {}

  /** Returns the attachments of a conversation, oldest first. */
  async read({ workspaceId, conversationId, attached }: ConversationRow): Promise<AttachedText[]> {
    if (!attached?.count) return []
    const stored = await this.rows.list(tables.attachments, {
      index: 'byConversation',
      prefix: [workspaceId, conversationId],
      limit: limits.attachmentsPerConversation,
    })
    const texts = await Promise.all(stored.map(({ row }) => this.#textOf(row)))
    return texts.filter(text => text !== undefined)
  }

  /** Returns undefined if the attachment was removed in the meantime. */
  async #textOf(attachment: Attachment): Promise<AttachedText | undefined> {
    const { workspaceId, conversationId, attachmentId } = attachment
    const key = [workspaceId, conversationId, attachmentId]
    const cached = this.#texts.get(key.join(':'))
    if (cached) return cached
    const stored = await this.rows.get(tables.attachmentTexts, key)
    if (!stored) return undefined
    const { text, chunkEnds } = stored.row
    const chunks = chunkEnds.map((end, at) => ({
      passage: passageOf(attachment, at),
      text: text.slice(chunkEnds[at - 1] ?? 0, end),
    }))
    const read = new AttachedText(attachment, chunks)
    this.#texts.set(key.join(':'), read)
    return read
  }
}

function passageOf({ attachmentId, filename }: Attachment, chunkIndex: number): Passage {
  return {
    knowledgeBaseId: null,
    attachmentId,
    documentId: null,
    chunkId: `${attachmentId}:${chunkIndex}`,
    chunkIndex,
    title: null,
    sourceFilename: label(filename),
    page: null,
  }
}

/** Returns the tool that reads the attachments of a conversation. */
export function attachmentTool(attached: readonly AttachedText[]): Tool {
  return executable(
    readAttachmentTool,
    async ({ attachmentId, offset, limit }, { cite, passageTokens }) => {
      const found = attached.find(({ attachment }) => attachment.attachmentId === attachmentId)
      if (!found) throw new ToolError('attachmentId: the conversation has no such attachment')
      const { chunks: all, attachment } = found
      const chunks = all.slice(offset, offset + limit).map(({ passage, text }) => ({
        id: passage.chunkId,
        chunkIndex: passage.chunkIndex,
        text,
        passage,
      }))
      if (chunks.length === 0) return `The attachment has no chunk at offset ${offset}.`
      const head = {
        attachmentId,
        filename: label(attachment.filename),
        chunkTotal: all.length,
        offset,
      }
      const bytesMax = bytesFor(passageTokens)
      return chunksResult(chunks, head, { cite: chunk => cite(chunk.passage), bytesMax })
    },
    { readsUntrusted: true },
  )
}
