import { LRUCache } from 'lru-cache'
import type { Attachment } from '../../contract/attachments.ts'
import { limits } from '../../contract/limits.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ConversationRow, tables } from '../../storage/tables.ts'
import { createExecutableTool } from './executable-tool.ts'
import { chunksResult } from './knowledge-tools.ts'
import { readAttachmentTool } from './own-tools.ts'
import { bytesForTokens } from './passage-budget.ts'
import { modelLabel } from './passages.ts'
import type { Tool, ToolPassage } from './tool.ts'
import { ToolError } from './tool-result.ts'
import { WordIndex } from './word-index.ts'

/** Maximum memory of all cached texts and their indexes, as an estimate. */
const cachedBytesMax = 64_000_000

/** A passage of an attachment, and its text. */
export interface AttachmentChunk {
  readonly passage: ToolPassage
  readonly text: string
}

/** An attachment with its text in chunks. */
export class AttachmentIndex {
  #index: Promise<WordIndex> | undefined
  #indexBytes = 0

  constructor(
    readonly attachment: Attachment,
    /** Joined in their order, they are the whole text. */
    readonly chunks: readonly AttachmentChunk[],
    private readonly onIndexed: (text: AttachmentIndex) => void,
  ) {}

  /** Memory that the text and its index take, as an estimate. */
  get bytes(): number {
    return this.attachment.textChars + this.#indexBytes
  }

  /** Returns the scores of the chunks that have a word of the query, by chunk index. */
  async scores(query: string): Promise<Map<number, number>> {
    this.#index ??= this.#indexed()
    return (await this.#index).scores(query)
  }

  async #indexed(): Promise<WordIndex> {
    const index = await WordIndex.of(this.chunks.map(({ text }) => text))
    this.#indexBytes = index.bytes
    this.onIndexed(this)
    return index
  }
}

/** Reads the attachments of conversations, and caches their texts, which never change. */
export class AttachmentReader {
  readonly #texts: LRUCache<string, AttachmentIndex>

  constructor(
    private readonly rows: RowStore,
    maxSize = cachedBytesMax,
  ) {
    this.#texts = new LRUCache({ maxSize, sizeCalculation: ({ bytes }) => bytes })
  }

  /** Returns the attachments of a conversation, oldest first. */
  async read({ workspaceId, conversationId, attached }: ConversationRow): Promise<AttachmentIndex[]> {
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
  async #textOf(attachment: Attachment): Promise<AttachmentIndex | undefined> {
    const { workspaceId, conversationId, attachmentId } = attachment
    const key = [workspaceId, conversationId, attachmentId]
    const name = key.join(':')
    const cached = this.#texts.get(name)
    if (cached) return cached
    const stored = await this.rows.get(tables.attachmentTexts, key)
    if (!stored) return undefined
    const { text, chunkEnds } = stored.row
    const chunks = chunkEnds.map((end, at) => ({
      passage: passageOf(attachment, at),
      text: text.slice(chunkEnds[at - 1] ?? 0, end),
    }))
    const read = new AttachmentIndex(attachment, chunks, indexed => {
      // The cache measures an entry when it is added.
      this.#texts.delete(name)
      this.#texts.set(name, indexed)
    })
    this.#texts.set(name, read)
    return read
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
    sourceFilename: modelLabel(filename),
    page: null,
  }
}

/** Returns the tool with which a model reads chunks of the attachments of a conversation. */
export function createAttachmentTool(attached: readonly AttachmentIndex[]): Tool {
  return createExecutableTool(
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
        filename: modelLabel(attachment.filename),
        chunkTotal: all.length,
        offset,
      }
      const bytesMax = bytesForTokens(passageTokens)
      return chunksResult(chunks, head, { cite: chunk => cite(chunk.passage), bytesMax })
    },
    { readsUntrusted: true },
  )
}
