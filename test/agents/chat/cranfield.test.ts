import { expect, test } from 'vitest'
import { kb } from '../../../src/contract/knowledge.ts'
import type { ChatRequest } from '../../fakes/chat-server.ts'
import { type Chatting, chatting } from '../../harness/chatting.ts'
import { cranfield, entriesOf, relevantIn } from '../../harness/judged.ts'
import type { Opened } from '../../harness/runtime.ts'

/** The collection as a knowledge base; file names are the ids of its documents. */
async function ingestCranfield({ call, runtime }: Opened, workspaceId: string) {
  const { knowledgeBaseId } = await call(kb.create, { params: { workspaceId }, body: { name: 'cranfield' } })
  const whole = entriesOf(cranfield, 'corpus.jsonl').filter(({ text }) => text)
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

interface Told {
  role: string
  content: string
}

/** Ask every question, and count those for which a relevant document is among what the model is told. */
async function answered(chat: Chatting): Promise<number> {
  const relevant = relevantIn(cranfield)
  const asked = entriesOf(cranfield, 'queries.jsonl').filter(({ _id }) => relevant.has(_id))
  expect(asked).toHaveLength(225)
  let found = 0
  for (const { _id, text } of asked) {
    const { path } = await chat.begin()
    const { status } = await chat.send(`POST ${path}/messages`, { content: text })
    expect(status).toBe(201)
    const told = chat.model.received.at(-1)!.body.messages as Told[]
    const passages = told.at(-1)!.role === 'tool' ? told.at(-1)! : told[0]!
    const names = [...passages.content.matchAll(/<(\d+)>/g)].map(([, id]) => id!)
    if (names.some(id => relevant.get(_id)!.has(id))) found++
  }
  return found / asked.length
}

/** Searches for the question as it was asked, where it is given the tool; then answers. */
function searches(limit: number) {
  return ({ body }: ChatRequest) => {
    const last = (body.messages as Told[]).at(-1)!
    if (last.role !== 'user' || !body.tools) return { text: 'As the first passage says [1].' }
    return { toolCalls: [{ name: 'search_kb', arguments: { query: last.content, limit } }] }
  }
}

test('the passages that reach the model hold a relevant document in at least 80 % of cases with five, 86 % with ten', {
  timeout: 120_000,
}, async () => {
  // In memory, as thousands of writes would wait for the disk.
  const chat = await chatting({
    prepare: ingestCranfield,
    config: { controlPlane: { driver: 'memory' }, chat: { retrievalK: 10 } },
  })
  chat.model.respond(searches(5))
  expect(await answered(chat)).toBeGreaterThanOrEqual(0.8)
  // A model that calls no tools is told ten before it is asked.
  const { workspaceId, llmServiceId } = chat.agent
  await chat.send(`PATCH /api/v1/workspaces/${workspaceId}/llm-services/${llmServiceId}`, {
    supportsTools: false,
  })
  expect(await answered(chat)).toBeGreaterThanOrEqual(0.86)
})
