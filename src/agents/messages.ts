import type { AuthContext } from '../access/subject.ts'
import type { Message } from '../contract/conversations.ts'
import { WbError } from '../contract/errors.ts'
import type { ImageInput } from '../contract/images.ts'
import type { PageQuery } from '../contract/page.ts'
import type { BinaryBody } from '../contract/route.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { type MessageImageRow, type MessageRow, tables } from '../storage/tables.ts'
import type { ConversationKey, Conversations } from './conversations.ts'
import { messageNotFound } from './not-found.ts'
import { isVisible } from './visible-message.ts'

/** Default values of message fields that are usually null. */
export const emptyMessageFields = {
  tokenCount: null,
  metadata: {},
  authorId: null,
  toolId: null,
  toolCallPayload: null,
  toolResponse: null,
} satisfies Partial<MessageRow>

/** Messages of conversations that the caller can see. */
export class Messages {
  constructor(
    private readonly deps: { rows: RowStore; pager: Pager; conversations: Pick<Conversations, 'get'> },
  ) {}

  /**
   * Lists messages, oldest first.
   *
   * @throws workspace_not_found, conversation_not_found, invalid_cursor
   */
  async list(
    conversationKey: ConversationKey,
    query: PageQuery,
    auth: AuthContext,
  ): Promise<RowPage<Message>> {
    const { workspaceId, conversationId } = await this.deps.conversations.get(conversationKey, auth)
    const list = { index: 'byConversation', prefix: [workspaceId, conversationId] }
    const { items, nextCursor } = await this.deps.pager.filteredPage(tables.messages, list, query, isVisible)
    return { items: items.map(toMessage), nextCursor }
  }

  /** @throws workspace_not_found, conversation_not_found, chat_message_not_found */
  async get(messageKey: ConversationKey & { messageId: string }, auth: AuthContext): Promise<Message> {
    const { workspaceId, conversationId } = await this.deps.conversations.get(messageKey, auth)
    const key = [workspaceId, conversationId, messageKey.messageId]
    const { rows } = this.deps
    const stored = (await rows.get(tables.messages, key)) ?? (await rows.get(tables.messageVersions, key))
    if (!stored || !isVisible(stored.row)) throw messageNotFound(messageKey.messageId)
    return toMessage(stored.row)
  }

  /**
   * Returns an image of a message.
   *
   * @throws workspace_not_found, conversation_not_found, chat_message_not_found, chat_image_not_found
   */
  async image(
    imageKey: ConversationKey & { messageId: string; imageIndex: string },
    auth: AuthContext,
  ): Promise<BinaryBody> {
    const { workspaceId, chatId, messageId } = await this.get(imageKey, auth)
    const { imageIndex } = imageKey
    const key = [workspaceId, chatId, messageId, Number(imageIndex)]
    const stored = await this.deps.rows.get(tables.messageImages, key)
    if (!stored)
      throw new WbError(
        'chat_image_not_found',
        `message '${messageId}' has no image with index ${imageIndex}`,
      )
    const { mediaType, data } = stored.row
    return { mediaType, bytes: Buffer.from(data, 'base64') }
  }
}

/** Returns the rows of the images of a message. */
export function imageRows(
  { workspaceId, conversationId, messageId, messageTs }: MessageRow,
  images: readonly ImageInput[],
): MessageImageRow[] {
  const messageKey = { workspaceId, conversationId, messageId }
  return images.map((image, imageIndex) => ({ ...messageKey, imageIndex, ...image, createdAt: messageTs }))
}

/** Returns an object with the field `images` of a message, or an empty object if there are no images. */
export function imagesField(images: readonly ImageInput[]): Pick<MessageRow, 'images'> {
  if (images.length === 0) return {}
  return {
    images: images.map(({ mediaType, data }, index) => ({
      index,
      mediaType,
      bytes: Buffer.byteLength(data, 'base64'),
    })),
  }
}

/** Converts a row to a message as the API returns it. */
export function toMessage(row: MessageRow): Message {
  const { workspaceId, conversationId, messageId, messageTs, content, tokenCount, questionId, images } = row
  const role = row.role as Message['role']
  const metadata = { ...row.metadata, ...(questionId !== undefined && { version_of: questionId }) }
  const message = {
    workspaceId,
    chatId: conversationId,
    messageId,
    messageTs,
    role,
    content,
    tokenCount,
    metadata,
  }
  return images ? { ...message, images } : message
}
