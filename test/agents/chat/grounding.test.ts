import { expect, test } from 'vitest'
import { documents } from '../../../src/contract/documents.ts'
import { kb } from '../../../src/contract/knowledge.ts'
import type { SentMessage } from '../../fakes/chat-template.ts'
import type { TestRuntime } from '../../harness/runtime.ts'
import { eventData, openTestChat } from '../../harness/test-chat.ts'

async function createHandbook({ call }: TestRuntime, workspaceId: string) {
  const { knowledgeBaseId } = await call(kb.create, { params: { workspaceId }, body: { name: 'handbook' } })
  for (const text of [
    'Refunds are paid within 14 days of purchase.',
    'Employees get 25 vacation days each year.',
    'The desk opens at nine.',
  ])
    await call(documents.ingest, { params: { workspaceId, knowledgeBaseId }, body: { text } })
  return { knowledgeBaseIds: [knowledgeBaseId] }
}

/**
 * Returns a function that sends a question to a model without tools, and returns its system prompt and the metadata
 * of the answer.
 */
async function openWithoutTools() {
  const { model, stream } = await openTestChat({ prepare: createHandbook, service: { supportsTools: false } })
  return async (question: string) => {
    const events = await stream(question)
    const [system] = model.received.at(-1)!.body.messages as SentMessage[]
    return { system: system!.content, metadata: eventData(events, 'done')[0]!.metadata }
  }
}

test('a search for a follow-up question includes the words of the last search, and the query is stored', async () => {
  const ask = await openWithoutTools()
  const first = await ask('when are refunds paid?')
  expect(first.metadata.search_query).toBe('when are refunds paid?')
  const second = await ask('and abroad?')
  expect(second.system).toContain('Refunds are paid within 14 days')
  expect(second.metadata.search_query).toBe('and abroad? refunds paid')
  await ask('thanks!')
  const third = await ask('who decides it?')
  expect(third.metadata.search_query).toBe('who decides it? abroad refunds paid')
})

test('small talk is not searched for', async () => {
  const ask = await openWithoutTools()
  const { system, metadata } = await ask('Hello, good morning!')
  expect(system).not.toContain('from="search"')
  expect(system).toContain('No search was made')
  expect(metadata).not.toHaveProperty('search_query')
})

test('passages without a word of the question are left out', async () => {
  const ask = await openWithoutTools()
  const { system, metadata } = await ask('Tell me a joke about cats')
  expect(system).toContain('Nothing was found for the question.')
  expect(metadata.search_query).toBe('Tell me a joke about cats')
  const { system: related } = await ask('how many vacation days do I get?')
  expect(related).toContain('Employees get 25 vacation days')
  expect(related).not.toContain('The desk opens')
})

test('passages for a model without tools share a budget, and a shortened passage is marked', async () => {
  const { model, stream } = await openTestChat({
    async prepare({ call }, workspaceId) {
      const { knowledgeBaseId } = await call(kb.create, { params: { workspaceId }, body: { name: 'long' } })
      const filler = (at: number) => `Paragraph ${at} has nothing to say. `.repeat(60)
      for (let at = 0; at < 6; at++) {
        const text = `${filler(at)}The refund of item ${at} takes ${at} days. ${filler(at)}`
        const params = { workspaceId, knowledgeBaseId }
        await call(documents.ingest, { params, body: { text, chunker: { maxChars: 8_000 } } })
      }
      return { knowledgeBaseIds: [knowledgeBaseId] }
    },
    service: { supportsTools: false, contextWindowTokens: 4_096 },
  })
  await stream('how many days does the refund of item 3 take?')
  const [system] = model.received[0]!.body.messages as SentMessage[]
  const [, data] = /<data \w+ from="search">\n([\s\S]*)\n<\/data/.exec(system!.content!)!
  expect(Buffer.byteLength(data!)).toBeLessThanOrEqual(4_096 - 1_024)
  expect(data).toMatch(/\[1\] .*\(truncated\)\n…/)
  expect(data!.match(/The refund of item \d takes \d days\./g)!.length).toBeGreaterThanOrEqual(3)
})
