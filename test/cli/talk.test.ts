import { expect, test } from 'vitest'
import { AgentConversation } from '../../src/cli/chat/agent-conversation.ts'
import { openClient } from '../../src/client/client.ts'
import { attachments } from '../../src/contract/attachments.ts'
import type { Citation } from '../../src/contract/chat.ts'
import { formOf, makeAgent, makeConversation } from '../harness/agents.ts'
import { open } from '../harness/runtime.ts'

test('opens a cited passage of an attachment with the text before and after it', async () => {
  const wb = await open()
  const client = openClient({
    baseUrl: '',
    fetch: (path, request) =>
      wb.runtime.fetch(new Request(`http://localhost${path}`, { ...request, duplex: 'half' } as RequestInit)),
  })
  const agent = await makeAgent(wb)
  const conversation = await makeConversation(wb, agent)
  const text = Array.from({ length: 200 }, (_, n) => `Sentence ${n} of the report.`).join(' ')
  const { attachmentId } = await client.call(attachments.create, { params: conversation, body: formOf(text) })
  const talk = new AgentConversation(client, agent, new AbortController().signal)
  talk.switchConversation(conversation.conversationId)
  const opened = async (chunkIndex: number) => {
    const chunkId = `${attachmentId}:${chunkIndex}`
    const location = { knowledgeBaseId: null, attachmentId, documentId: null, chunkId, chunkIndex }
    const citation: Citation = {
      number: 1,
      ...location,
      title: null,
      sourceFilename: 'report.md',
      page: null,
    }
    const { text: passage, neighbors } = await talk.citedPassage(citation)
    return [neighbors[0], passage, neighbors[1]]
  }
  const [none, first, second] = await opened(0)
  expect([none, first!.startsWith('Sentence 0 '), text.startsWith(first! + second!)]).toEqual([
    '',
    true,
    true,
  ])
  const middle = await opened(2)
  expect(middle.every(part => part.length > 0)).toBe(true)
  expect(text).toContain(middle.join(''))
})
