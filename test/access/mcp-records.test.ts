import { expect, test } from 'vitest'
import type { Write } from '../../src/storage/rows.ts'
import { callMcpTool, itemsOf, type Send } from './principal-requests.ts'
import { createAgent, ingest, openRestrictedWorkspace } from './restricted-workspace.ts'

const secret = 'The zeppelin costs 4711 pounds.'

/** bob asks an agent over MCP, and deletes his conversation before the answer is stored. */
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
  await ingest(bob, base, { text: secret })
  const agent = await createAgent(opened)
  const path = await agent.startConversation(bob)
  agent.model.script({ text: `Answer: ${secret}` })
  beforeAnswer = async () => expect((await bob(`DELETE ${path}`)).status).toBe(204)
  const chat = { agentId: agent.agentId, chatId: path.split('/').at(-1), content: 'What does it cost?' }
  expect(await callMcpTool(bob, workspace, 'chat_send', chat)).toContain('4711')
  return opened
}

test('a failed MCP call is recorded with its error code, and without text of its answer', async () => {
  const { workspace, operator } = await openAfterFailedAnswer()
  const traffic = await operator(`GET ${workspace}/connect/traffic`)
  expect(traffic.body.entries).toMatchObject([{ toolName: 'chat_send', reason: 'chat_answer_failed' }])
  const records = itemsOf(await operator(`GET ${workspace}/audit?action=mcp.invoke`))
  expect(records).toMatchObject([{ outcome: 'failure', details: { reason: 'chat_answer_failed' } }])
  expect(traffic.text + JSON.stringify(records)).not.toContain('4711')
})

test('a failed MCP call is recorded without the ID that it names', async () => {
  const { workspace, base, knowledgeBaseId, as, operator } = await openRestrictedWorkspace()
  const bob = as('bob')
  const documentId = await ingest(bob, base, { text: 'A turbine.' })
  await bob(`DELETE ${base}/documents/${documentId}`)
  await callMcpTool(bob, workspace, 'get_document', { knowledgeBaseId, documentId })
  const traffic = await operator(`GET ${workspace}/connect/traffic`)
  expect(traffic.body.entries).toMatchObject([{ toolName: 'get_document', reason: 'document_not_found' }])
  const { text } = await operator(`GET ${workspace}/audit?action=mcp.invoke`)
  expect(text).toContain('document_not_found')
  expect(text).not.toContain(documentId)
})

test('with row-level access, callers without manage:access see the records of their own MCP calls only', async () => {
  const { wb, workspace, as, operator } = await openRestrictedWorkspace()
  await callMcpTool(as('bob'), workspace, 'list_knowledge_bases')
  await callMcpTool(as('alice'), workspace, 'list_agents')
  const withScopes = async (...scopes: string[]): Promise<Send> => {
    const { body } = await operator(`POST ${workspace}/api-keys`, { label: 'key', scopes })
    return (line, json) => wb.send(line, json, { authorization: `Bearer ${body.plaintext}` })
  }
  const trafficOf = async (send: Send) => {
    const { entries, summary } = (await send(`GET ${workspace}/connect/traffic`)).body
    const { total } = summary as { total: number }
    return { tools: (entries as { toolName: string }[]).map(({ toolName }) => toolName), total }
  }
  const auditOf = async (send: Send) =>
    itemsOf(await send(`GET ${workspace}/audit?action=mcp.invoke`)).map(
      ({ details }) => (details as { toolName: string }).toolName,
    )
  expect(await trafficOf(as('alice'))).toEqual({ tools: ['list_agents'], total: 1 })
  const auditor = await withScopes('read', 'read:audit')
  expect(await trafficOf(auditor)).toEqual({ tools: [], total: 0 })
  expect(await auditOf(auditor)).toEqual([])
  const tools = ['list_agents', 'list_knowledge_bases']
  for (const send of [operator, await withScopes('manage:access')]) {
    expect(await trafficOf(send)).toEqual({ tools, total: 2 })
    expect(await auditOf(send)).toEqual(tools)
  }
})
