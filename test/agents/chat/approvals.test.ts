import { describe, expect, test } from 'vitest'
import type { AuditRecord } from '../../../src/contract/audit-record.ts'
import type { Approval, TurnEvent } from '../../../src/contract/chat.ts'
import { WbError } from '../../../src/contract/errors.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'
import type { RowStore, Write } from '../../../src/storage/rows.ts'
import { startMcpServer } from '../../fakes/mcp-server.ts'
import type { TestRuntime, TestRuntimeOptions } from '../../harness/runtime.ts'
import { eventData, eventNames, openTestChat, type TestChat } from '../../harness/test-chat.ts'

/** Registers a tool server, and returns agent settings with its tool under an ask rule. */
async function registerServer({ call }: TestRuntime, workspaceId: string) {
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

function toolOf({ agent }: TestChat): string {
  return agent.toolIds.find(id => id.startsWith('mcp:'))!
}

/** Sends a question, gives the same decision on each approval request, and returns the events. */
async function sendAndDecide(
  chat: TestChat,
  decision: Approval['decision'] | undefined,
): Promise<TurnEvent[]> {
  const events: TurnEvent[] = []
  for await (const event of chat.streamEvents('add', { approvals: true })) {
    events.push(event)
    if (event.event !== 'tool-approval' || decision === undefined) continue
    const { approvalId } = event.data
    const { status, body } = await chat.send(`POST ${chat.path}/approvals/${approvalId}`, { decision })
    expect({ status, body }).toEqual({ status: 200, body: { approvalId, decision } })
  }
  return events
}

const callOfTool = (chat: TestChat) => ({
  toolCalls: [{ name: modelToolName(chat), arguments: { text: 'x' } }],
})

/** Returns the name of the tool that the model received. */
function modelToolName({ model }: TestChat): string {
  const tools = model.received.at(-1)!.body.tools as { function: { name: string } }[]
  return tools.map(tool => tool.function.name).find(name => name.includes('add'))!
}

async function openWithTool(options: TestRuntimeOptions = {}): Promise<TestChat> {
  const chat = await openTestChat({ prepare: registerServer, ...options })
  let requests = 0
  chat.model.respond(() => (requests++ % 2 === 0 ? callOfTool(chat) : { text: 'Done.' }))
  return chat
}

/** Returns the audit records of decisions, newest first. */
async function decisionsOf({ agent, sendAsOperator }: TestChat): Promise<AuditRecord[]> {
  const line = `GET /api/v1/workspaces/${agent.workspaceId}/audit?action=tool.decide`
  return (await sendAsOperator(line)).body.items as AuditRecord[]
}

const asking = ['user-message', 'token-reset', 'tool-call', 'tool-approval', 'tool-result', 'token', 'done']
const notAsking = asking.filter(event => event !== 'tool-approval')

describe('a tool under an ask rule', () => {
  test('runs after a decision of once, and needs another approval the next time', async () => {
    const chat = await openWithTool()
    const events = await sendAndDecide(chat, 'once')
    expect(eventNames(events)).toEqual(asking)
    expect(eventData(events, 'tool-approval')[0]!.toolCall).toMatchObject({ name: toolOf(chat) })
    expect(eventData(events, 'tool-result')[0]).toMatchObject({ outcome: 'success' })
    expect(eventNames(await sendAndDecide(chat, 'once'))).toEqual(asking)
  })

  test('needs no further approval in the conversation after a decision of always', async () => {
    const chat = await openWithTool()
    expect(eventNames(await sendAndDecide(chat, 'always'))).toEqual(asking)
    const events = await sendAndDecide(chat, undefined)
    expect(eventNames(events)).toEqual(notAsking)
    expect(eventData(events, 'tool-result')[0]).toMatchObject({ outcome: 'success' })
  })

  test('does not run after a decision of never, which is reported to the model and audited', async () => {
    const chat = await openWithTool()
    const [result] = eventData(await sendAndDecide(chat, 'never'), 'tool-result')
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

  test('does not run for a client without approvals, or in a plain send', async () => {
    const chat = await openWithTool()
    const events = await chat.stream('add')
    expect(eventNames(events)).toEqual(notAsking)
    expect(eventData(events, 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
    const { body } = await chat.send(`POST ${chat.path}/messages`, { content: 'add', approvals: true })
    expect(body.assistant).toMatchObject({ content: 'Done.' })
    expect(JSON.stringify(chat.model.received.at(-1)!.body.messages)).toContain('not permitted')
  })

  test('is audited with the decision, the tool and the conversation, and without its arguments', async () => {
    const chat = await openWithTool()
    for (const decision of ['once', 'never', 'always'] as const) await sendAndDecide(chat, decision)
    const { agentId, conversationId } = chat.conversation
    const of = { agentId, conversationId, approvalId: expect.any(String), toolName: toolOf(chat) }
    const records = await decisionsOf(chat)
    expect(records.map(({ details }) => details)).toEqual(
      ['always', 'never', 'once'].map(decision => ({ ...of, decision })),
    )
    for (const record of records)
      expect(record).toMatchObject({ outcome: 'success', subject: { type: 'anonymous' } })
  })

  test('does not run and gets no permanent approval if the decision cannot be audited', async () => {
    let isFull = false
    const isRecord = (write: Write) => write.op === 'insert' && write.table.name === 'audit'
    const rows = (store: RowStore): RowStore => ({
      ...store,
      atomic: writes =>
        isFull && writes.some(isRecord)
          ? Promise.reject(new WbError('control_plane_unavailable', 'the disk is full'))
          : store.atomic(writes),
    })
    const chat = await openWithTool({ rows })
    const events: TurnEvent[] = []
    for await (const event of chat.streamEvents('add', { approvals: true })) {
      events.push(event)
      if (event.event !== 'tool-approval') continue
      isFull = true
      const line = `POST ${chat.path}/approvals/${event.data.approvalId}`
      expect((await chat.send(line, { decision: 'always' })).status).toBe(503)
      isFull = false
    }
    expect(eventData(events, 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
    expect(await decisionsOf(chat)).toEqual([])
    expect(eventNames(await sendAndDecide(chat, 'once'))).toEqual(asking)
  })

  test('cannot be approved through another conversation, or twice', async () => {
    const chat = await openWithTool()
    const other = `${chat.path.slice(0, -36)}${crypto.randomUUID()}`
    let refused = 0
    for await (const event of chat.streamEvents('add', { approvals: true })) {
      if (event.event !== 'tool-approval') continue
      const at = (path: string) =>
        chat.send(`POST ${path}/approvals/${event.data.approvalId}`, { decision: 'once' })
      expect((await at(other)).status).toBe(404)
      expect((await at(chat.path)).status).toBe(200)
      expect(await at(chat.path)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
      refused++
    }
    expect(refused).toBe(1)
  })
})

test('a tool under a deny rule causes no approval request', async () => {
  const chat = await openWithTool()
  const toolRules = { 'mcp:*': { permission: 'deny' } }
  await chat.send(`PATCH /api/v1/workspaces/${chat.agent.workspaceId}/agents/${chat.agent.agentId}`, {
    toolRules,
  })
  const events = await sendAndDecide(chat, 'always')
  expect(eventNames(events)).toEqual(notAsking)
  expect(eventData(events, 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
})

test('after reading, a tool of an MCP server needs an approval, and is denied to a sender without approvals', async () => {
  const chat = await openWithTool()
  await chat.send(`PATCH /api/v1/workspaces/${chat.agent.workspaceId}/agents/${chat.agent.agentId}`, {
    toolRules: {},
  })
  expect(eventNames(await sendAndDecide(chat, 'once'))).toEqual(notAsking)
  expect(eventNames(await sendAndDecide(chat, 'once'))).toEqual(asking)
  const unasked = await chat.stream('add')
  expect(eventNames(unasked)).toEqual(notAsking)
  expect(eventData(unasked, 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
})

test('a decision of always also applies to later calls in the turn', async () => {
  const chat = await openTestChat({ prepare: registerServer })
  let requests = 0
  chat.model.respond(() => {
    const { toolCalls } = callOfTool(chat)
    return requests++ === 0 ? { toolCalls: [...toolCalls, ...toolCalls] } : { text: 'Done.' }
  })
  const events = await sendAndDecide(chat, 'always')
  expect(eventData(events, 'tool-approval')).toHaveLength(1)
  expect(eventData(events, 'tool-result').map(({ outcome }) => outcome)).toEqual(['success', 'success'])
})
