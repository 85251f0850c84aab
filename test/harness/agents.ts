import { emptyMessageFields } from '../../src/agents/messages.ts'
import { type Agent, agents } from '../../src/contract/agents.ts'
import { type Conversation, conversations } from '../../src/contract/conversations.ts'
import type { ClientRequest } from '../../src/contract/route.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { type MessageRow, tables } from '../../src/storage/tables.ts'
import { makeWorkspace } from './resources.ts'
import type { TestRuntime } from './runtime.ts'

type Call = Pick<TestRuntime, 'call'>

/** Creates an agent, in a new workspace by default. */
export async function makeAgent(
  opened: Call,
  {
    workspaceId,
    ...body
  }: Partial<ClientRequest<typeof agents.create>['body']> & { workspaceId?: string } = {},
): Promise<Agent> {
  const targetWorkspaceId = workspaceId ?? (await makeWorkspace(opened)).workspaceId
  return opened.call(agents.create, {
    params: { workspaceId: targetWorkspaceId },
    body: { name: 'agent', ...body },
  })
}

export function makeConversation(
  { call }: Call,
  { workspaceId, agentId }: Pick<Agent, 'workspaceId' | 'agentId'>,
  body: ClientRequest<typeof conversations.create>['body'] = {},
): Promise<Conversation> {
  return call(conversations.create, { params: { workspaceId, agentId }, body })
}

/** Returns a form with a file. */
export function formOf(text: string, name = 'report.md'): FormData {
  const form = new FormData()
  form.set('file', new File([text], name, { type: 'text/plain' }))
  return form
}

/** Returns a message as a turn stores it. */
export function messageRow(
  { workspaceId, conversationId }: Pick<Conversation, 'workspaceId' | 'conversationId'>,
  number: number,
  fields: Partial<MessageRow> = {},
): MessageRow {
  return {
    workspaceId,
    conversationId,
    messageId: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    messageTs: new Date(Date.UTC(2026, 0, 1) + number).toISOString(),
    role: 'user',
    content: `message ${number}`,
    ...emptyMessageFields,
    ...fields,
  }
}

/** Writes messages directly to the store of a data directory. */
export async function writeMessages(dataDir: string, rows: readonly MessageRow[]): Promise<void> {
  const store = await openEmbeddedStore({ path: `${dataDir}/workbase.db` })
  await insertMessages(store.rows, rows)
  await store.close()
}

async function insertMessages(store: RowStore, rows: readonly MessageRow[]): Promise<void> {
  const outcome = await store.atomic(
    rows.map(row => ({ op: 'insert' as const, table: tables.messages, row })),
  )
  if (!outcome.ok) throw new Error(`message ${outcome.at} was refused: ${outcome.reason}`)
}
