import { LRUCache } from 'lru-cache'
import type { Attachment } from '../../contract/attachments.ts'
import { limits } from '../../contract/limits.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ConversationRow, tables } from '../../storage/tables.ts'
import { createExecutableTool } from './executable-tool.ts'
import { chunksResult } from './knowledge-tools.ts'
import { bytesForTokens } from './passage-budget.ts'
import { truncateLabel } from './passages.ts'
import { readAttachmentTool } from './runtime-tools.ts'
import type { Tool, ToolPassage } from './tool.ts'
import { ToolError } from './tool-result.ts'
import { WordIndex } from './word-index.ts'

/** Maximum estimated memory of all cached texts and their indexes, in bytes. */
const cachedBytesMax = 64_000_000

/** A passage of an attachment, and its text. */
export interface AttachmentChunk {
  readonly passage: ToolPassage
  readonly text: string
}

/** An attachment with its chunks, and a word index that is built for the first query. */
export class AttachmentIndex {
  #index: Promise<WordIndex> | undefined
  #indexBytes = 0

  constructor(
    readonly attachment: Attachment,
    /** Chunks in order. Together, they contain the whole text. */
    readonly chunks: readonly AttachmentChunk[],
    private readonly onIndexed: (index: AttachmentIndex) => void,
  ) {}

  /** Estimated memory of the text and its index, in bytes. */
  get bytes(): number {
    return this.attachment.textChars + this.#indexBytes
  }

  /** Returns the scores of the chunks that have a word of the query, by chunk index. */
  async scores(query: string): Promise<Map<number, number>> {
    this.#index ??= this.#buildIndex()
    return (await this.#index).scores(query)
  }

  async #buildIndex(): Promise<WordIndex> {
    const index = await WordIndex.create(this.chunks.map(({ text }) => text))
    this.#indexBytes = index.bytes
    this.onIndexed(this)
    return index
  }
}

/** Reads the attachments of conversations, and caches their texts, which never change. */
export class AttachmentReader {
  readonly #indexes: LRUCache<string, AttachmentIndex>

  constructor(
    private readonly rows: RowStore,
    maxSize = cachedBytesMax,
  ) {
    this.#indexes = new LRUCache({ maxSize, sizeCalculation: ({ bytes }) => bytes })
  }

  /** Returns the attachments of a conversation, oldest first. */
  async read({ workspaceId, conversationId, attached }: ConversationRow): Promise<AttachmentIndex[]> {
    if (!attached?.count) return []
    const stored = await this.rows.list(tables.attachments, {
      index: 'byConversation',
      prefix: [workspaceId, conversationId],
      limit: limits.attachmentsPerConversation,
    })
    const indexes = await Promise.all(stored.map(({ row }) => this.#indexOf(row)))
    return indexes.filter(index => index !== undefined)
  }

  /** Returns undefined if the attachment was deleted in the meantime. */
  async #indexOf(attachment: Attachment): Promise<AttachmentIndex | undefined> {
    const { workspaceId, conversationId, attachmentId } = attachment
    const key = [workspaceId, conversationId, attachmentId]
    const cacheKey = key.join(':')
    const cached = this.#indexes.get(cacheKey)
    if (cached) return cached
    const stored = await this.rows.get(tables.attachmentTexts, key)
    if (!stored) return undefined
    const { text, chunkEnds } = stored.row
    const chunks = chunkEnds.map((end, at) => ({
      passage: passageOf(attachment, at),
      text: text.slice(chunkEnds[at - 1] ?? 0, end),
    }))
    const index = new AttachmentIndex(attachment, chunks, builtIndex => {
      // Adds the larger entry again, because the cache computes the size of an entry only when it is added.
      this.#indexes.delete(cacheKey)
      this.#indexes.set(cacheKey, builtIndex)
    })
    this.#indexes.set(cacheKey, index)
    return index
  }
}

function passageOf({ attachmentId, filename }: Attachment, chunkIndex: number): ToolPassage {
  return {
    knowledgeBaseId: null,
    attachmentId,
    documentId: null,
    chunkId: `${attachmentId}:${chunkIndex}`,
    chunkIndex,
    title: null,
    sourceFilename: truncateLabel(filename),
    page: null,
  }
}

/** Creates the tool that reads chunks of a conversation's attachments. */
export function createAttachmentTool(attached: readonly AttachmentIndex[]): Tool {
  return createExecutableTool(
    readAttachmentTool,
    async ({ attachmentId, offset, limit }, { cite, passageTokens }) => {
      const index = attached.find(({ attachment }) => attachment.attachmentId === attachmentId)
      if (!index) throw new ToolError('attachmentId: the conversation has no such attachment')
      const { attachment } = index
      const chunks = index.chunks.slice(offset, offset + limit).map(({ passage, text }) => ({
        id: passage.chunkId,
        chunkIndex: passage.chunkIndex,
        text,
        passage,
      }))
      if (chunks.length === 0) return `The attachment has no chunk at offset ${offset}.`
      const documentFields = {
        attachmentId,
        filename: truncateLabel(attachment.filename),
        chunkTotal: index.chunks.length,
        offset,
      }
      const bytesMax = bytesForTokens(passageTokens)
      return chunksResult(chunks, documentFields, {
        cite: chunk => cite(chunk.passage, chunk.text),
        bytesMax,
      })
    },
    { readsUntrusted: true },
  )
}
