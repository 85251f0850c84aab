import { expect, test } from 'vitest'
import { kb } from '../../../src/contract/knowledge.ts'
import type { ChatRequest } from '../../fakes/chat-server.ts'
import { cranfield, readEntries, readRelevantIds } from '../../harness/beir.ts'
import type { TestRuntime } from '../../harness/runtime.ts'
import { openTestChat, type TestChat } from '../../harness/test-chat.ts'

/** Ingests the collection as a knowledge base whose file names are the IDs of its documents. */
async function ingestCranfield({ call, runtime }: TestRuntime, workspaceId: string) {
  const { knowledgeBaseId } = await call(kb.create, { params: { workspaceId }, body: { name: 'cranfield' } })
  const whole = readEntries(cranfield, 'corpus.jsonl').filter(({ text }) => text)
  const body = whole
    .map(({ _id, title, text }) => JSON.stringify({ text, sourceFilename: `<${_id}>`, metadata: { title } }))
    .join('\n')
  const answer = await runtime.fetch(
    new Request(
      `http://localhost/api/v1/workspaces/${workspaceId}/knowledge-bases/${knowledgeBaseId}/ingest/batch`,
      {
        method: 'POST',
        headers: { 'content-type': 'application/x-ndjson' },
        body,
      },
    ),
  )
  await answer.text()
  await runtime.settle({ signal: new AbortController().signal, onProgress() {} })
  return { knowledgeBaseIds: [knowledgeBaseId] }
}

interface ModelMessage {
  role: string
  content: string
}

/** Sends every question, and returns the share for which the model received a relevant document. */
async function shareWithRelevant(chat: TestChat): Promise<number> {
  const relevant = readRelevantIds(cranfield)
  const queries = readEntries(cranfield, 'queries.jsonl').filter(({ _id }) => relevant.has(_id))
  expect(queries).toHaveLength(225)
  let found = 0
  for (const { _id, text } of queries) {
    const { path } = await chat.startConversation()
    const { status } = await chat.send(`POST ${path}/messages`, { content: text })
    expect(status).toBe(201)
    const messages = chat.model.received.at(-1)!.body.messages as ModelMessage[]
    const passages = messages.at(-1)!.role === 'tool' ? messages.at(-1)! : messages[0]!
    const names = [...passages.content.matchAll(/<(\d+)>/g)].map(([, id]) => id!)
    if (names.some(id => relevant.get(_id)!.has(id))) found++
  }
  return found / queries.length
}

/** Returns a model that searches for the exact question if it has the tool, and then answers. */
function searchingModel(limit: number) {
  return ({ body }: ChatRequest) => {
    const last = (body.messages as ModelMessage[]).at(-1)!
    if (last.role !== 'user' || !body.tools) return { text: 'As the first passage says [1].' }
    return { toolCalls: [{ name: 'search_kb', arguments: { query: last.content, limit } }] }
  }
}

test('the model receives a relevant document for at least 80% of the questions with five passages, and 86% with ten', {
  timeout: 120_000,
}, async () => {
  // In memory, because thousands of writes would wait for the disk.
  const chat = await openTestChat({
    prepare: ingestCranfield,
    config: { controlPlane: { driver: 'memory' }, chat: { retrievalK: 10 } },
  })
  chat.model.respond(searchingModel(5))
  expect(await shareWithRelevant(chat)).toBeGreaterThanOrEqual(0.8)
  // A model without tools receives ten passages with the question.
  const { workspaceId, llmServiceId } = chat.agent
  await chat.send(`PATCH /api/v1/workspaces/${workspaceId}/llm-services/${llmServiceId}`, {
    supportsTools: false,
  })
  expect(await shareWithRelevant(chat)).toBeGreaterThanOrEqual(0.86)
})
