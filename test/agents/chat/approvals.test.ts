import { describe, expect, test } from 'vitest'
import type { AuditRecord } from '../../../src/contract/audit-record.ts'
import type { Approval, TurnEvent } from '../../../src/contract/chat.ts'
import { WbError } from '../../../src/contract/errors.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'
import type { RowStore, Write } from '../../../src/storage/rows.ts'
import { startMcpServer } from '../../fakes/mcp-server.ts'
import { type Chatting, chatting, dataOf, shapeOf } from '../../harness/chatting.ts'
import type { Opened, Options } from '../../harness/runtime.ts'

/** The tool of a registered server. */
async function withServer({ call }: Opened, workspaceId: string) {
  const { url } = await startMcpServer({ tools: ['add'] })
  const { mcpServerId } = await call(mcpServers.create, {
    params: { workspaceId },
    body: { label: 'sums', url },
  })
  const tool = `mcp:${mcpServerId}:add`
  return {
    toolIds: [tool, 'list_kbs', 'count_documents'],
    toolRules: { [tool]: { permission: 'ask' as const } },
  }
}

function toolOf({ agent }: Chatting): string {
  return agent.toolIds.find(id => id.startsWith('mcp:'))!
}

/** A turn in which each question is answered as told. */
async function answered(chat: Chatting, decision: Approval['decision'] | undefined): Promise<TurnEvent[]> {
  const events: TurnEvent[] = []
  for await (const told of chat.streaming('add', { approvals: true })) {
    events.push(told)
    if (told.event !== 'tool-approval' || decision === undefined) continue
    const { approvalId } = told.data
    const { status, body } = await chat.send(`POST ${chat.path}/approvals/${approvalId}`, { decision })
    expect({ status, body }).toEqual({ status: 200, body: { approvalId, decision } })
  }
  return events
}

const adding = (chat: Chatting) => ({ toolCalls: [{ name: spelled(chat), arguments: { text: 'x' } }] })

/** The name of the tool as the model was told it. */
function spelled({ model }: Chatting): string {
  const tools = model.received.at(-1)!.body.tools as { function: { name: string } }[]
  return tools.map(tool => tool.function.name).find(name => name.includes('add'))!
}

async function ready(options: Options = {}): Promise<Chatting> {
  const chat = await chatting({ prepare: withServer, ...options })
  let asked = 0
  chat.model.respond(() => (asked++ % 2 === 0 ? adding(chat) : { text: 'Done.' }))
  return chat
}

/** What is on record of decisions, the newest first. */
async function decisionsOf({ agent, sendAsOperator }: Chatting): Promise<AuditRecord[]> {
  const line = `GET /api/v1/workspaces/${agent.workspaceId}/audit?action=tool.decide`
  return (await sendAsOperator(line)).body.items as AuditRecord[]
}

const asking = ['user-message', 'token-reset', 'tool-call', 'tool-approval', 'tool-result', 'token', 'done']
const notAsking = asking.filter(event => event !== 'tool-approval')

describe('a tool under an ask rule', () => {
  test('runs when the sender says once, and asks again the next time', async () => {
    const chat = await ready()
    const events = await answered(chat, 'once')
    expect(shapeOf(events)).toEqual(asking)
    expect(dataOf(events, 'tool-approval')[0]!.toolCall).toMatchObject({ name: toolOf(chat) })
    expect(dataOf(events, 'tool-result')[0]).toMatchObject({ outcome: 'success' })
    expect(shapeOf(await answered(chat, 'once'))).toEqual(asking)
  })

  test('asks no more in this conversation once the sender says always', async () => {
    const chat = await ready()
    expect(shapeOf(await answered(chat, 'always'))).toEqual(asking)
    const events = await answered(chat, undefined)
    expect(shapeOf(events)).toEqual(notAsking)
    expect(dataOf(events, 'tool-result')[0]).toMatchObject({ outcome: 'success' })
  })

  test('does not run when the sender says never; the model is told, and it is audited', async () => {
    const chat = await ready()
    const [result] = dataOf(await answered(chat, 'never'), 'tool-result')
    expect(result).toMatchObject({ outcome: 'denied' })
    expect(result!.content).toMatch(/^Error: .*not permitted/)
    expect(JSON.stringify(chat.model.received.at(-1)!.body.messages)).toContain('not permitted')
    const { body } = await chat.sendAsOperator(
      `GET /api/v1/workspaces/${chat.agent.workspaceId}/audit?action=tool.invoke`,
    )
    expect((body.items as { outcome: string; details: object }[])[0]).toMatchObject({
      outcome: 'denied',
      details: { toolName: toolOf(chat), reason: 'the user did not approve it' },
    })
  })

  test('does not run for a client that does not answer questions, nor on a plain send', async () => {
    const chat = await ready()
    const events = await chat.stream('add')
    expect(shapeOf(events)).toEqual(notAsking)
    expect(dataOf(events, 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
    const { body } = await chat.send(`POST ${chat.path}/messages`, { content: 'add', approvals: true })
    expect(body.assistant).toMatchObject({ content: 'Done.' })
    expect(JSON.stringify(chat.model.received.at(-1)!.body.messages)).toContain('not permitted')
  })

  test('is let run on record: who decided what about which tool, in which conversation, and not its arguments', async () => {
    const chat = await ready()
    for (const decision of ['once', 'never', 'always'] as const) await answered(chat, decision)
    const { agentId, conversationId } = chat.conversation
    const of = { agentId, conversationId, approvalId: expect.any(String), toolName: toolOf(chat) }
    const records = await decisionsOf(chat)
    expect(records.map(({ details }) => details)).toEqual(
      ['always', 'never', 'once'].map(decision => ({ ...of, decision })),
    )
    for (const record of records)
      expect(record).toMatchObject({ outcome: 'success', subject: { type: 'anonymous' } })
  })

  test('does not run where the decision cannot be kept on record, and is granted nothing', async () => {
    let isFull = false
    const isRecord = (write: Write) => write.op === 'insert' && write.table.name === 'audit'
    const rows = (store: RowStore): RowStore => ({
      ...store,
      atomic: writes =>
        isFull && writes.some(isRecord)
          ? Promise.reject(new WbError('control_plane_unavailable', 'the disk is full'))
          : store.atomic(writes),
    })
    const chat = await ready({ rows })
    const events: TurnEvent[] = []
    for await (const told of chat.streaming('add', { approvals: true })) {
      events.push(told)
      if (told.event !== 'tool-approval') continue
      isFull = true
      const line = `POST ${chat.path}/approvals/${told.data.approvalId}`
      expect((await chat.send(line, { decision: 'always' })).status).toBe(503)
      isFull = false
    }
    expect(dataOf(events, 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
    expect(await decisionsOf(chat)).toEqual([])
    expect(shapeOf(await answered(chat, 'once'))).toEqual(asking)
  })

  test('is not run by who answers another conversation, or twice', async () => {
    const chat = await ready()
    const other = `${chat.path.slice(0, -36)}${crypto.randomUUID()}`
    let refused = 0
    for await (const told of chat.streaming('add', { approvals: true })) {
      if (told.event !== 'tool-approval') continue
      const at = (path: string) =>
        chat.send(`POST ${path}/approvals/${told.data.approvalId}`, { decision: 'once' })
      expect((await at(other)).status).toBe(404)
      expect((await at(chat.path)).status).toBe(200)
      expect(await at(chat.path)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
      refused++
    }
    expect(refused).toBe(1)
  })
})

test('a tool under a deny rule is never asked about', async () => {
  const chat = await ready()
  const toolRules = { 'mcp:*': { permission: 'deny' } }
  await chat.send(`PATCH /api/v1/workspaces/${chat.agent.workspaceId}/agents/${chat.agent.agentId}`, {
    toolRules,
  })
  const events = await answered(chat, 'always')
  expect(shapeOf(events)).toEqual(notAsking)
  expect(dataOf(events, 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
})

test('after reading, a tool of an MCP server needs an approval, and is denied to a sender without approvals', async () => {
  const chat = await ready()
  await chat.send(`PATCH /api/v1/workspaces/${chat.agent.workspaceId}/agents/${chat.agent.agentId}`, {
    toolRules: {},
  })
  expect(shapeOf(await answered(chat, 'once'))).toEqual(notAsking)
  expect(shapeOf(await answered(chat, 'once'))).toEqual(asking)
  const unasked = await chat.stream('add')
  expect(shapeOf(unasked)).toEqual(notAsking)
  expect(dataOf(unasked, 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
})

test('who says always is not asked again in the same turn', async () => {
  const chat = await chatting({ prepare: withServer })
  let asked = 0
  chat.model.respond(() => {
    const { toolCalls } = adding(chat)
    return asked++ === 0 ? { toolCalls: [...toolCalls, ...toolCalls] } : { text: 'Done.' }
  })
  const events = await answered(chat, 'always')
  expect(dataOf(events, 'tool-approval')).toHaveLength(1)
  expect(dataOf(events, 'tool-result').map(({ outcome }) => outcome)).toEqual(['success', 'success'])
})
