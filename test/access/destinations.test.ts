import { describe, expect, test } from 'vitest'
import type { Write } from '../../src/storage/rows.ts'
import { callMcpTool, codeOf } from './principal-requests.ts'
import { createAgent, ingest, openRestrictedWorkspace } from './restricted-workspace.ts'

describe('with row-level access, only manage:access decides where content is sent', () => {
  const endpoint = { endpointBaseUrl: 'http://127.0.0.1:9' }
  const destinations = [
    ['llm-services', 'llmServiceId', { name: 's', provider: 'ollama', modelName: 'm', ...endpoint }],
    [
      'embedding-services',
      'embeddingServiceId',
      { name: 's', provider: 'openai', modelName: 'm', embeddingDimension: 8, ...endpoint },
    ],
    [
      'reranking-services',
      'rerankingServiceId',
      { name: 's', provider: 'cohere', modelName: 'm', ...endpoint },
    ],
    ['mcp-servers', 'mcpServerId', { label: 's', url: 'http://127.0.0.1:9/mcp', enabled: false }],
  ] as const

  test.each(destinations)('%s', async (path, idName, fields) => {
    const { workspace, operator, as } = await openRestrictedWorkspace()
    const editor = as('alice')
    const denied = await editor(`POST ${workspace}/${path}`, fields)
    expect([denied.status, codeOf(denied)]).toEqual([403, 'forbidden'])
    expect(denied.text).toContain('manage:access')
    const created = await operator(`POST ${workspace}/${path}`, fields)
    expect(created.status).toBe(201)
    const changed = await editor(`PATCH ${workspace}/${path}/${created.body[idName]}`, endpoint)
    expect([changed.status, codeOf(changed)]).toEqual(
      path === 'mcp-servers' ? [400, 'validation_error'] : [403, 'forbidden'],
    )
  })

  test('chunking services send nothing, and without row-level access nothing changes', async () => {
    const { workspace, operator, as } = await openRestrictedWorkspace()
    const chunker = { name: 'c', engine: 'workbase' }
    expect((await as('alice')(`POST ${workspace}/chunking-services`, chunker)).status).toBe(201)
    expect((await operator(`PATCH ${workspace}`, { rlacEnabled: false })).status).toBe(200)
    const [path, , fields] = destinations[0]
    expect((await as('alice')(`POST ${workspace}/${path}`, fields)).status).toBe(201)
  })
})

const secret = 'The zeppelin costs 4711 pounds.'

/** Bob asks an agent over MCP, and his conversation is deleted before the answer is stored. */
async function openAfterFailedAnswer() {
  let beforeAnswer: (() => Promise<unknown>) | undefined
  const isAnswer = (write: Write) =>
    write.op === 'insert' &&
    write.table.name === 'messages' &&
    (write.row as { role: string }).role === 'agent'
  const opened = await openRestrictedWorkspace({
    config: { mcp: { exposeChat: true } },
    rows: store => ({
      ...store,
      async atomic(writes) {
        const run = writes.some(isAnswer) ? beforeAnswer : undefined
        if (run) beforeAnswer = undefined
        await run?.()
        return store.atomic(writes)
      },
    }),
  })
  const { workspace, base, as } = opened
  const bob = as('bob')
  await ingest(bob, base, { text: secret, sourceFilename: 'prices.md' })
  const agent = await createAgent(opened)
  const path = await agent.startConversation(bob)
  agent.model.script({ text: `Answer: ${secret}` })
  beforeAnswer = async () => expect((await bob(`DELETE ${path}`)).status).toBe(204)
  const result = await callMcpTool(bob, workspace, 'chat_send', {
    agentId: agent.agentId,
    chatId: path.split('/').at(-1),
    content: 'What does the zeppelin cost?',
  })
  return { ...opened, result }
}

describe('records of MCP calls', () => {
  test('contain no text of a failed answer', async () => {
    const { wb, workspace, operator, as, result } = await openAfterFailedAnswer()
    expect(result).toContain('4711')
    expect((await as('alice')(`GET ${workspace}/connect/traffic`)).text).not.toContain('4711')
    const key = { label: 'auditor', scopes: ['read', 'read:audit'], principalId: 'auditor' }
    const { plaintext } = (await operator(`POST ${workspace}/api-keys`, key)).body
    const audit = await wb.send(`GET ${workspace}/audit`, undefined, { authorization: `Bearer ${plaintext}` })
    expect(audit.status).toBe(200)
    expect(audit.text).not.toContain('4711')
  })

  test('name the error of a call by its code, without IDs', async () => {
    const { workspace, base, knowledgeBaseId, as } = await openRestrictedWorkspace()
    const bob = as('bob')
    const documentId = await ingest(bob, base, { text: 'A turbine.' })
    await bob(`DELETE ${base}/documents/${documentId}`)
    await callMcpTool(bob, workspace, 'get_document', { knowledgeBaseId, documentId })
    const traffic = await as('alice')(`GET ${workspace}/connect/traffic`)
    expect(traffic.body.entries).toMatchObject([{ toolName: 'get_document', reason: 'not_found' }])
    expect(traffic.text).not.toContain(documentId)
  })
})
