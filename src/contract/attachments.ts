import { z } from 'zod'
import { member, ownRecords } from './access.ts'
import { fileParser } from './documents.ts'
import type { ErrorCode } from './errors.ts'
import { isoTimestamp } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

export const Attachment = z
  .object({
    workspaceId: z.uuid(),
    conversationId: z.uuid(),
    attachmentId: z.uuid(),
    filename: z.string(),
    fileType: z.string(),
    fileSize: z.int().nonnegative().meta({ description: 'size of the file in bytes' }),
    textChars: z.int().positive().meta({ description: 'length of the text in UTF-16 code units' }),
    createdAt: isoTimestamp,
  })
  .meta({ id: 'Attachment' })
export type Attachment = z.output<typeof Attachment>

/** Text of an attachment, with the boundaries of its chunks. */
export const AttachmentText = z.object({
  text: z.string(),
  chunkEnds: z.array(z.int().positive()).meta({
    description:
      'end of each chunk as an offset in the text, in UTF-16 code units. The first chunk starts at 0. Each other chunk starts at the end of the previous one.',
  }),
})
export type AttachmentText = z.output<typeof AttachmentText>

/** Text fields of the upload form. */
const AttachmentForm = z.object({ parser: fileParser })
export type AttachmentForm = z.output<typeof AttachmentForm>

const attachmentsPath =
  '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId/attachments'
const errors = ['workspace_not_found', 'conversation_not_found'] as const satisfies ErrorCode[]

export const attachments = {
  list: route({
    method: 'GET',
    path: attachmentsPath,
    summary: 'List the attachments of a conversation',
    access: member('read:chat'),
    query: pageQuery,
    replies: { 200: pageOfItems(Attachment) },
    errors: [...errors, 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: attachmentsPath,
    summary: 'Attach a file to a conversation',
    description:
      'Extracts the text of a file and stores it with the conversation. Send the file, with its name, in the form part `file`. Later answers in the conversation can use and cite the text. It is not added to a knowledge base.',
    access: member('read:chat'),
    body: { kind: 'multipart', schema: AttachmentForm, json: [], limitBytes: limits.attachmentBodyBytes },
    replies: { 201: Attachment },
    errors: [
      ...errors,
      'attachment_limit_exceeded',
      'invalid_multipart',
      'missing_file',
      'empty_file',
      'invalid_parser',
      'unsupported_file_type',
      'extraction_failed',
      'empty_document',
      'docling_unavailable',
      'conflict',
    ],
  }),
  show: route({
    method: 'GET',
    path: `${attachmentsPath}/:attachmentId`,
    summary: 'Show an attachment with its text',
    access: member('read:chat'),
    replies: { 200: Attachment.extend(AttachmentText.shape) },
    errors: [...errors, 'attachment_not_found'],
  }),
  delete: route({
    method: 'DELETE',
    path: `${attachmentsPath}/:attachmentId`,
    summary: 'Remove an attachment from a conversation',
    description:
      'Removes the file and its text. Answers that cite it are kept. You need the same rights as for deleting the conversation.',
    access: ownRecords('read:chat', 'write', 'manage'),
    replies: { 204: null },
    errors: [...errors, 'attachment_not_found', 'conflict'],
  }),
}
