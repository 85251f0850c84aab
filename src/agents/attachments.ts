import type { Caller } from '../access/caller.ts'
import type { AuthContext } from '../access/subject.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import { KeyedQueue } from '../base/keyed-queue.ts'
import type { Attachment, AttachmentText } from '../contract/attachments.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { PageQuery } from '../contract/page.ts'
import type { UploadedFile } from '../contract/route.ts'
import { changeRow, type RowChange } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type ConversationRow, tables } from '../storage/tables.ts'
import type { ConversationKey, Conversations } from './conversations.ts'
import { attachmentNotFound, conversationNotFound, requireSameConversation } from './not-found.ts'

/** IDs that identify an attachment. */
export interface AttachmentKey extends ConversationKey {
  readonly attachmentId: string
}

/**
 * Files that are attached to conversations. Callers have access to the attachments of conversations that they can see.
 *
 * @see docs/agents.md#attachments
 */
export class Attachments {
  /** Runs the changes of one conversation in sequence, so that they do not conflict. */
  readonly #changes = new KeyedQueue()

  constructor(
    private readonly deps: {
      rows: RowStore
      pager: Pager
      clock: Clock
      conversations: Pick<Conversations, 'get'>
    },
  ) {}

  /**
   * Lists the attachments of a conversation, oldest first.
   *
   * @throws workspace_not_found, conversation_not_found, invalid_cursor
   */
  async list(key: ConversationKey, query: PageQuery, auth: AuthContext): Promise<RowPage<Attachment>> {
    const { workspaceId, conversationId } = await this.deps.conversations.get(key, auth)
    const list = { index: 'byConversation', prefix: [workspaceId, conversationId] }
    return this.deps.pager.page(tables.attachments, list, query)
  }

  /**
   * Returns an attachment with its text.
   *
   * @throws workspace_not_found, conversation_not_found, attachment_not_found
   */
  async get(attachmentKey: AttachmentKey, auth: AuthContext): Promise<Attachment & AttachmentText> {
    const { workspaceId, conversationId } = await this.deps.conversations.get(attachmentKey, auth)
    const key = [workspaceId, conversationId, attachmentKey.attachmentId]
    const { rows } = this.deps
    const [attachment, text] = await Promise.all([
      rows.get(tables.attachments, key),
      rows.get(tables.attachmentTexts, key),
    ])
    if (!attachment || !text) throw attachmentNotFound(attachmentKey.attachmentId)
    return { ...attachment.row, ...text.row }
  }

  /**
   * Attaches a file.
   *
   * @param conversation  as it was read before the file was received
   * @throws conversation_not_found     the conversation was deleted in the meantime
   * @throws attachment_limit_exceeded  the conversation would have too many attachments or too much text
   * @throws conflict                   other requests changed the conversation during every attempt
   */
  async create(
    conversation: ConversationRow,
    file: Pick<UploadedFile, 'name' | 'type' | 'sizeBytes'>,
    content: AttachmentText,
  ): Promise<Attachment> {
    const { workspaceId, conversationId } = conversation
    const key = { workspaceId, conversationId, attachmentId: newId() }
    const attachment: Attachment = {
      ...key,
      filename: file.name,
      fileType: file.type,
      fileSize: file.sizeBytes,
      textChars: content.text.length,
      createdAt: timestamp(this.deps.clock),
    }
    const changed = await this.#change(conversation, attachment, 1, [
      { op: 'insert', table: tables.attachments, row: attachment },
      { op: 'insert', table: tables.attachmentTexts, row: { ...key, ...content } },
    ])
    if (!('row' in changed)) throw conversationNotFound(conversationId)
    return attachment
  }

  /**
   * Removes an attachment with its text.
   *
   * @throws workspace_not_found, conversation_not_found, attachment_not_found
   * @throws forbidden  another caller created the conversation
   * @throws conflict   other requests changed the conversation during every attempt
   */
  async delete(attachmentKey: AttachmentKey, caller: Pick<Caller, 'auth' | 'checkCreator'>): Promise<void> {
    const conversation = await this.deps.conversations.get(attachmentKey, caller.auth)
    caller.checkCreator(conversation)
    const { workspaceId, conversationId } = conversation
    const key = [workspaceId, conversationId, attachmentKey.attachmentId]
    const stored = await this.deps.rows.get(tables.attachments, key)
    if (!stored) throw attachmentNotFound(attachmentKey.attachmentId)
    const changed = await this.#change(conversation, stored.row, -1, [
      { op: 'delete', table: tables.attachments, key },
      { op: 'delete', table: tables.attachmentTexts, key },
    ])
    if ('absent' in changed) throw conversationNotFound(conversationId)
    if ('failedCheck' in changed) throw attachmentNotFound(attachmentKey.attachmentId)
  }

  /** Adds an attachment to the totals of its conversation, or subtracts it, in the same transaction as `writes`. */
  #change(
    conversation: ConversationRow,
    { textChars }: Attachment,
    sign: 1 | -1,
    writes: readonly Write[],
  ): Promise<RowChange<ConversationRow>> {
    const change = (row: ConversationRow): ConversationRow => {
      requireSameConversation(row, conversation)
      const { count, textChars: chars } = row.attached ?? { count: 0, textChars: 0 }
      const attached = { count: count + sign, textChars: chars + sign * textChars }
      if (sign === 1) checkAttachmentLimits(attached)
      return { ...row, attached }
    }
    const key = [conversation.workspaceId, conversation.conversationId]
    return this.#changes.run(key.join(':'), () =>
      changeRow(this.deps.rows, tables.conversations, key, change, () => writes),
    )
  }
}

/** @throws attachment_limit_exceeded */
function checkAttachmentLimits({ count, textChars }: NonNullable<ConversationRow['attached']>): void {
  const { attachmentsPerConversation, attachedTextChars } = limits
  if (count > attachmentsPerConversation)
    throw new WbError(
      'attachment_limit_exceeded',
      `file: the conversation already has ${attachmentsPerConversation} attachments`,
    )
  if (textChars > attachedTextChars)
    throw new WbError(
      'attachment_limit_exceeded',
      `file: with this file, the attachments of the conversation would have more than ${attachedTextChars} characters of text`,
    )
}
