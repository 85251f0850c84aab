import { expect, test } from 'vitest'
import { conversationMarkdown } from '../../src/cli/chat/conversation-markdown.ts'
import type { Attachment } from '../../src/contract/attachments.ts'
import type { Citation } from '../../src/contract/chat.ts'
import type { Message } from '../../src/contract/conversations.ts'

const citation: Citation = {
  number: 2,
  knowledgeBaseId: '00000000-0000-4000-8000-000000000001',
  attachmentId: null,
  documentId: '00000000-0000-4000-8000-000000000002',
  chunkId: 'd:3',
  chunkIndex: 3,
  title: 'Refunds',
  sourceFilename: 'refunds.md',
  page: null,
}

function createMessage(role: Message['role'], content: string, metadata: Message['metadata'] = {}): Message {
  const messageTs = '2026-01-01T00:00:00.000Z'
  return {
    workspaceId: 'w',
    chatId: 'c',
    messageId: content,
    messageTs,
    role,
    content,
    tokenCount: null,
    metadata,
  }
}

const conversation = {
  workspaceId: 'w',
  agentId: 'a',
  conversationId: 'c',
  title: 'Refund window',
  knowledgeBaseIds: [],
  createdAt: '2026-01-01T00:00:00.000Z',
  lastActivityAt: '2026-01-01T00:00:00.000Z',
}

test('lists the sentences of an answer that no source supports', () => {
  const text = 'It is true [2]. It is invented [2].'
  const unsupported = JSON.stringify([{ start: 16, end: text.length }])
  const metadata = { citations: JSON.stringify([citation]), unsupported }
  expect(conversationMarkdown(conversation, 'Maven', [createMessage('agent', text, metadata)])).toContain(
    'It is invented [^2].\n\n1 sentence is not supported by the sources:\n\n- It is invented.\n\n[^2]:',
  )
})

test('gives two passages with the same number separate footnotes', () => {
  const other = { ...citation, chunkId: 'e:1', chunkIndex: 1, title: 'Returns' }
  const text = conversationMarkdown(conversation, 'Maven', [
    createMessage('agent', 'Thirty days [2].', { citations: JSON.stringify([citation]) }),
    createMessage('agent', 'At the desk [2].', { citations: JSON.stringify([other]) }),
  ])
  expect(text).toContain('Thirty days [^2].')
  expect(text).toContain('At the desk [^3].')
  expect(text).toMatch(/\[\^2\]: Refunds.*\n\[\^3\]: Returns/)
})

test('exports each citation as one footnote, and leaves other brackets unchanged', () => {
  const citations = JSON.stringify([citation])
  const text = conversationMarkdown(conversation, 'Maven', [
    createMessage('user', 'how long?'),
    createMessage('agent', 'Thirty days [2], not [9] or [2](there).', { citations }),
    createMessage('agent', 'Thirty [2]', { citations, interrupted: 'true' }),
    createMessage('agent', 'gone', { citations: 'no list' }),
  ])
  expect(text).toBe(`# Refund window

With Maven, started 2026-01-01T00:00:00.000Z.

## You

how long?

## Maven

Thirty days [^2], not [9] or [2](there).

## Maven

Thirty [^2]

*(interrupted)*

## Maven

gone

[^2]: Refunds · refunds.md · chunk 3
`)
})

test('exports a summary of earlier messages under its own heading', () => {
  const text = conversationMarkdown(conversation, 'Maven', [
    createMessage('system', 'They spoke of refunds.'),
  ])
  expect(text).toContain('## Summary of earlier messages\n\nThey spoke of refunds.')
})

test('lists the names of attachments after the title', () => {
  const attached = { attachmentId: 'a', filename: 'day.md' } as Attachment
  const text = conversationMarkdown(
    conversation,
    'Maven',
    [],
    [attached, { ...attached, filename: 'log.txt' }],
  )
  expect(text).toContain('started 2026-01-01T00:00:00.000Z.\n\nAttached: day.md, log.txt.\n')
})
