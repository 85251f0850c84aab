import { systemClock } from '../../base/clock.ts'
import { collect } from '../../client/client.ts'
import { type Conversation, conversations } from '../../contract/conversations.ts'
import { formatAgo } from '../terminal/duration.ts'
import { pickResource, type ResolveContext, type ResourceKind, resolveWorkspace } from './resolve.ts'

const conversationKind: ResourceKind = {
  noun: 'conversation',
  notFoundCode: 'conversation_not_found',
  listCommand: 'wb conversations list',
  createCommands: ['wb chat    starts a conversation'],
}

/** Returns the title of a conversation, or its ID if it has no title. */
export function conversationName({ title, conversationId }: Conversation): string {
  return title ?? conversationId
}

/** Describes the start of a conversation, to distinguish equal titles: `started 2026-01-31T09:00:00.000Z, 3 d ago`. */
function describeStart({ createdAt }: Conversation): string {
  return `started ${createdAt}, ${formatAgo(Date.parse(createdAt), systemClock.now())}`
}

/**
 * Finds a conversation by ID or title. Without `titleOrId`, returns the only conversation of the workspace, or lets the
 * user choose.
 *
 * @throws WbError conversation_not_found, agent_not_found
 * @throws UsageError  several conversations match
 */
export async function findConversation(context: ResolveContext, titleOrId?: string): Promise<Conversation> {
  const { workspaceId } = await resolveWorkspace(context)
  const items = context.client.items(conversations.listAll, { params: { workspaceId } })
  const all = await collect(items)
  const candidates = all.map(row => ({
    row,
    id: row.conversationId,
    name: conversationName(row),
    detail: describeStart(row),
  }))
  return pickResource(
    candidates,
    titleOrId,
    { ...conversationKind, selectCommand: context.commandWithName },
    context.promptForChoice,
  )
}
