import { systemClock } from '../../base/clock.ts'
import { everything } from '../../client/client.ts'
import { type Conversation, conversations } from '../../contract/conversations.ts'
import { ago } from '../terminal/moment.ts'
import { type Kind, pick, type Resolving, resolveWorkspace } from './resolve.ts'

const conversationKind: Kind = {
  one: 'conversation',
  code: 'conversation_not_found',
  list: 'wb conversations list',
  create: ['wb chat    starts one'],
}

/** Returns the title of a conversation, or its ID if it has no title. */
export function conversationName({ title, conversationId }: Conversation): string {
  return title ?? conversationId
}

/** Describes when a conversation started, as titles repeat: `begun 2026-01-31T09:00:00.000Z, 3 d ago`. */
function about({ createdAt }: Conversation): string {
  return `begun ${createdAt}, ${ago(Date.parse(createdAt), systemClock.now())}`
}

/**
 * Finds a conversation by ID or title. Without one, returns the only conversation.
 *
 * @throws WbError conversation_not_found, agent_not_found
 * @throws UsageError  when several conversations match
 */
export async function findConversation(resolving: Resolving, wanted?: string): Promise<Conversation> {
  const { workspaceId } = await resolveWorkspace(resolving)
  const items = resolving.client.items(conversations.listAll, { params: { workspaceId } })
  const all = await everything(items)
  const named = all.map(row => ({
    row,
    id: row.conversationId,
    name: conversationName(row),
    about: about(row),
  }))
  return pick(named, wanted, { ...conversationKind, naming: resolving.withBase }, resolving.choose)
}
