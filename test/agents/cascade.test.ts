import { expect, test } from 'vitest'
import { agents } from '../../src/contract/agents.ts'
import { conversations } from '../../src/contract/conversations.ts'
import { WbError } from '../../src/contract/errors.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import type { RowStore, Write } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { makeAgent, makeConversation, messageRow, writeMessages } from '../harness/agents.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'

/** Returns the number of rows of a table that contain the given text. */
function countRowsWith({ dataDir }: TestRuntime, table: string, text: string): number {
  return storeFile(dataDir).all(`SELECT 1 FROM ${table} WHERE body LIKE ?`, `%${text}%`).length
}

async function createAgentWithMessages(wb: TestRuntime, workspaceId?: string) {
  const agent = await makeAgent(wb, { workspaceId })
  const begun = await Promise.all([1, 2, 3].map(() => makeConversation(wb, agent)))
  await writeMessages(
    wb.dataDir,
    begun.flatMap(one => [1, 2].map(n => messageRow(one, n))),
  )
  return { ...agent, begun }
}

test('deleting an agent deletes its conversations and their messages, and keeps those of other agents', async () => {
  const wb = await open()
  const gone = await createAgentWithMessages(wb)
  const kept = await createAgentWithMessages(wb, gone.workspaceId)
  await wb.call(agents.delete, { params: gone })
  const left = [...kept.begun.map(one => one.conversationId)].sort()
  const { items } = await wb.call(conversations.listAll, { params: gone })
  expect(items.map(({ conversationId }) => conversationId).sort()).toEqual(left)
  expect(countRowsWith(wb, 'messages', gone.workspaceId)).toBe(6)
  for (const { conversationId } of gone.begun) expect(countRowsWith(wb, 'messages', conversationId)).toBe(0)
})

test('deleting a workspace deletes its agents, conversations and messages', async () => {
  const wb = await open()
  const { workspaceId } = await createAgentWithMessages(wb)
  await wb.call(workspaces.delete, { params: { workspaceId } })
  for (const table of ['agents', 'conversations', 'messages'])
    expect(countRowsWith(wb, table, workspaceId)).toBe(0)
})

test('a delete that fails halfway can be repeated', async () => {
  let failures = 1
  const rows = (store: RowStore): RowStore => ({
    ...methodsOf(store),
    atomic: writes => {
      const isLast = deletesAgent(writes)
      if (isLast && failures-- > 0) throw new WbError('control_plane_unavailable', 'the disk is gone')
      return store.atomic(writes)
    },
  })
  const wb = await open({ rows })
  const agent = await createAgentWithMessages(wb)
  await expect(wb.call(agents.delete, { params: agent })).rejects.toMatchObject({
    code: 'control_plane_unavailable',
  })
  expect(await wb.call(agents.show, { params: agent })).toMatchObject({ agentId: agent.agentId })
  await wb.call(agents.delete, { params: agent })
  for (const table of ['agents', 'conversations', 'messages'])
    expect(countRowsWith(wb, table, agent.agentId)).toBe(0)
  expect(countRowsWith(wb, 'messages', agent.workspaceId)).toBe(0)
})

test('a conversation that is created while its agent is deleted is deleted too, or rejected', async () => {
  let begin: (() => Promise<unknown>) | undefined
  const rows = (store: RowStore): RowStore => ({
    ...methodsOf(store),
    atomic: async writes => {
      if (deletesAgent(writes)) {
        const late = begin
        begin = undefined
        await late?.()
      }
      return store.atomic(writes)
    },
  })
  const wb = await open({ rows })
  const agent = await createAgentWithMessages(wb)
  begin = () => makeConversation(wb, agent)
  await wb.call(agents.delete, { params: agent })
  expect(countRowsWith(wb, 'conversations', agent.agentId)).toBe(0)
  await expect(makeConversation(wb, agent)).rejects.toMatchObject({ code: 'agent_not_found' })
})

test('updating an agent while it is deleted does not restore it', async () => {
  const wb = await open()
  const agent = await createAgentWithMessages(wb)
  const ended = await Promise.allSettled([
    wb.call(agents.delete, { params: agent }),
    ...Array.from({ length: 10 }, (_, n) =>
      wb.call(agents.update, { params: agent, body: { name: `changed ${n}` } }),
    ),
  ])
  expect(ended[0]).toMatchObject({ status: 'fulfilled' })
  for (const { reason } of ended.filter(one => one.status === 'rejected'))
    expect(reason).toMatchObject({ code: 'agent_not_found' })
  expect(countRowsWith(wb, 'agents', agent.agentId)).toBe(0)
})

test('S7.3-llm_service_not_found: an agent cannot use a service that is deleted at the same time', async () => {
  let lose = false
  const rows = (store: RowStore): RowStore => ({
    ...methodsOf(store),
    atomic: async writes => {
      const first = writes.find(one => one.op === 'require' && one.table === tables.llmServices)
      if (lose && first?.op === 'require') {
        const { key } = first
        lose = false
        await store.atomic([{ op: 'delete', table: tables.llmServices, key }])
      }
      return store.atomic(writes)
    },
  })
  const wb = await open({ rows })
  const { workspaceId, agentId } = await makeAgent(wb)
  const { items } = await wb.call(agents.list, { params: { workspaceId } })
  const llmServiceId = items.find(agent => agent.llmServiceId !== null)!.llmServiceId!
  lose = true
  const change = wb.call(agents.update, { params: { workspaceId, agentId }, body: { llmServiceId } })
  await expect(change).rejects.toMatchObject({ code: 'llm_service_not_found' })
  expect((await wb.call(agents.show, { params: { workspaceId, agentId } })).llmServiceId).toBeNull()
})

test('S6-09: creating and deleting agents is audited, with the template', async () => {
  const wb = await open()
  const { workspaceId, agentId } = await makeAgent(wb, { name: 'audited' })
  const params = { workspaceId }
  const made = await wb.call(agents.createFromTemplate, { params, body: { templateId: 'quill' } })
  await wb.call(agents.update, { params: { workspaceId, agentId }, body: { name: 'renamed' } })
  await wb.call(agents.delete, { params: { workspaceId, agentId } })
  const { body } = await wb.sendAsOperator(`GET /api/v1/workspaces/${workspaceId}/audit?limit=200`)
  const records = body.items as { action: string; outcome: string; details: object }[]
  const ofAgents = records.filter(({ action }) => action.startsWith('agent.')).reverse()
  expect(ofAgents.map(({ action, outcome, details }) => [action, outcome, details])).toEqual([
    ['agent.create', 'success', { agentId, label: 'audited' }],
    ['agent.create', 'success', { agentId: made.agentId, label: 'Quill', templateId: 'quill' }],
    ['agent.delete', 'success', { agentId, label: 'renamed' }],
  ])
})

function methodsOf(store: RowStore): RowStore {
  return {
    get: (table, key) => store.get(table, key),
    list: (table, query) => store.list(table, query),
    count: (table, index, prefix) => store.count(table, index, prefix),
    measure: (table, index, prefix) => store.measure(table, index, prefix),
    atomic: writes => store.atomic(writes),
    feed: store.feed,
  }
}

function deletesAgent(writes: readonly Write[]): boolean {
  return writes.some(one => one.op === 'delete' && one.table === tables.agents)
}
