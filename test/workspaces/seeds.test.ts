import { expect, test } from 'vitest'
import { workspaceKinds } from '../../src/contract/workspaces.ts'
import { makeWorkspace } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import { type Row, type StoreFile, storeFile } from '../harness/store-file.ts'

function rowsOf(file: StoreFile, table: string, workspaceId: string): Row[] {
  const rows = file.all(`SELECT body FROM ${table} WHERE workspaceId = ? ORDER BY ordinal`, workspaceId)
  return rows.map(({ body }) => JSON.parse(String(body)) as Row)
}

const chunkers = ['recursive-char-1000', 'line-rows-1']
const expected = {
  local: { chunking: ['passages', ...chunkers], embedding: ['workbase-lsa'] },
  mock: { chunking: chunkers, embedding: ['mock-embedder'] },
  others: { chunking: chunkers, embedding: ['nvidia-nv-embedqa-e5-v5'] },
}

test.each(workspaceKinds)(
  'a workspace of kind %s starts with exactly its services and two agents',
  async kind => {
    const wb = await open()
    const { workspaceId, createdAt } = await makeWorkspace(wb, { kind })
    const file = storeFile(wb.dataDir)
    const { chunking, embedding } = kind === 'local' || kind === 'mock' ? expected[kind] : expected.others
    const services = {
      chunking_services: chunking,
      embedding_services: embedding,
      llm_services: ['openrouter-gpt-4o-mini'],
      reranking_services: [],
    }
    for (const [table, names] of Object.entries(services)) {
      const rows = rowsOf(file, table, workspaceId)
      expect(rows.map(({ name }) => name)).toEqual(names)
      for (const row of rows)
        expect(row).toMatchObject({
          status: 'active',
          description: expect.stringMatching(/\w/),
          createdAt,
          updatedAt: createdAt,
        })
    }
    const [llm] = rowsOf(file, 'llm_services', workspaceId)
    expect(llm).toMatchObject({
      provider: 'openrouter',
      modelName: 'openai/gpt-4o-mini',
      contextWindowTokens: 128_000,
      maxOutputTokens: 1_024,
      supportsStreaming: true,
      supportsTools: true,
      authType: 'api_key',
      credentialRef: 'env:OPENROUTER_API_KEY',
      supportedLanguages: ['en', 'multi'],
      supportedContent: ['text'],
    })
    const agents = rowsOf(file, 'agents', workspaceId)
    expect(agents.map(({ name }) => name)).toEqual(['Bobby', 'Maven'])
    for (const agent of agents)
      expect(agent).toMatchObject({
        llmServiceId: llm!.llmServiceId,
        systemPrompt: expect.stringMatching(/\w/),
        knowledgeBaseIds: [],
        createdAt,
      })
  },
)

test('a workspace that is rejected leaves no services', async () => {
  const wb = await open()
  await makeWorkspace(wb, { name: 'taken' })
  const before = storeFile(wb.dataDir).dump()
  await expect(makeWorkspace(wb, { name: 'taken' })).rejects.toMatchObject({
    code: 'workspace_name_conflict',
  })
  expect(storeFile(wb.dataDir).dump()).toBe(before)
})
