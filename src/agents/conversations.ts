import type { Caller } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import { type AuthContext, principalIdOf, subjectName } from '../access/subject.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import { KeyedQueue } from '../base/keyed-queue.ts'
import type { ConversationCreate, ConversationPatch, ConversationQuery } from '../contract/conversations.ts'
import { WbError } from '../contract/errors.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type ConversationRow, tables } from '../storage/tables.ts'
import { ConversationSearch } from './conversation-search.ts'
import { conversationVisibility, isConversationVisible } from './conversation-visibility.ts'
import { agentNotFound, conversationNotFound } from './not-found.ts'

export interface AgentKey {
  readonly workspaceId: string
  readonly agentId: string
}

export interface ConversationKey extends AgentKey {
  readonly conversationId: string
}

/** Returns writes that delete a conversation with its messages and attachments. They succeed if it does not exist. */
export function conversationDeletion({ workspaceId, createdAt, conversationId }: ConversationRow): Write[] {
  return [
    ...[tables.messages, tables.attachments, tables.attachmentTexts].map(
      (table): Write => ({
        op: 'deleteAll',
        table,
        index: 'byConversation',
        prefix: [workspaceId, conversationId],
      }),
    ),
    {
      op: 'deleteAll',
      table: tables.messageVersions,
      index: 'byVersion',
      prefix: [workspaceId, conversationId],
    },
    {
      op: 'deleteAll',
      table: tables.messageImages,
      index: 'byMessage',
      prefix: [workspaceId, conversationId],
    },
    {
      op: 'deleteAll',
      table: tables.conversations,
      index: 'byWorkspace',
      prefix: [workspaceId, createdAt, conversationId],
    },
  ]
}

/** Indexes by sort order: the first for all conversations, the second for those of one principal. */
const sortIndexes = {
  created: { ofWorkspace: ['byWorkspace', 'byOwner'], ofAgent: ['byAgent', 'byAgentOwner'] },
  activity: {
    ofWorkspace: ['byActivity', 'byOwnerActivity'],
    ofAgent: ['byAgentActivity', 'byAgentOwnerActivity'],
  },
} as const

/** Conversations with agents. If the caller cannot see a conversation, it is treated as missing. */
export class Conversations {
  /** Runs the searches of one caller one by one, so that concurrent searches do not delay other requests. */
  readonly #searches = new KeyedQueue()

  constructor(private readonly deps: { rows: RowStore; pager: Pager; clock: Clock }) {}

  /**
   * Lists the conversations of a workspace, or of one agent in it, most recently created or used first.
   *
   * @throws workspace_not_found, agent_not_found, invalid_cursor
   */
  async list(
    { workspaceId, agentId }: { workspaceId: string; agentId?: string },
    query: ConversationQuery,
    { auth, signal }: Pick<Caller, 'auth' | 'signal'>,
  ): Promise<RowPage<ConversationRow>> {
    const visibility = conversationVisibility(await requireWorkspace(this.deps.rows, workspaceId), auth)
    if (agentId !== undefined) await this.requireAgent({ workspaceId, agentId })
    const prefix = agentId === undefined ? [workspaceId] : [workspaceId, agentId]
    const [index, ownerIndex] = sortIndexes[query.sort][agentId === undefined ? 'ofWorkspace' : 'ofAgent']
    const list =
      visibility.kind === 'principal'
        ? { index: ownerIndex, prefix: [...prefix, visibility.id] }
        : { index, prefix }
    const { pager } = this.deps
    if (visibility.kind === 'none') return pager.pageOfRows(tables.conversations, list, [], query)
    const range = { ...list, descending: true }
    const { q } = query
    if (q === undefined) return pager.page(tables.conversations, range, query)
    return this.#searches.run(subjectName(auth) ?? 'anonymous', async () => {
      const search = new ConversationSearch(this.deps.rows, q, signal)
      return pager.searchPage(
        tables.conversations,
        { ...range, filter: search.normalizedText },
        query,
        search,
      )
    })
  }

  /**
   * Creates a conversation that belongs to the caller.
   *
   * @throws workspace_not_found, agent_not_found
   * @throws policy_principal_required  row-level access is on, and the caller is not a principal
   * @throws conflict                   the ID is already in use
   */
  async create(
    { workspaceId, agentId }: AgentKey,
    { conversationId = newId(), ...fields }: ConversationCreate,
    auth: AuthContext,
  ): Promise<ConversationRow> {
    const visibility = conversationVisibility(await requireWorkspace(this.deps.rows, workspaceId), auth)
    await this.requireAgent({ workspaceId, agentId })
    if (visibility.kind === 'none')
      throw new WbError(
        'policy_principal_required',
        'row-level access is on in this workspace, so only principals can have conversations',
      )
    const createdAt = timestamp(this.deps.clock)
    const conversation = {
      ...fields,
      workspaceId,
      agentId,
      conversationId,
      createdAt,
      lastActivityAt: createdAt,
      ownerPrincipalId: principalIdOf(auth),
      createdBy: subjectName(auth),
    }
    const outcome = await this.deps.rows.atomic([
      { op: 'require', table: tables.agents, key: [workspaceId, agentId] },
      { op: 'insert', table: tables.conversations, row: conversation },
    ])
    if (outcome.ok) return conversation
    if (outcome.at === 0) throw agentNotFound(agentId)
    throw new WbError('conflict', `conversation with id '${conversationId}' already exists`)
  }

  /**
   * Returns a conversation of a workspace, or of one agent in it.
   *
   * @throws workspace_not_found, conversation_not_found
   */
  async get(
    { workspaceId, agentId, conversationId }: Omit<ConversationKey, 'agentId'> & { agentId?: string },
    auth: AuthContext,
  ): Promise<ConversationRow> {
    const [workspace, stored] = await Promise.all([
      requireWorkspace(this.deps.rows, workspaceId),
      this.deps.rows.get(tables.conversations, [workspaceId, conversationId]),
    ])
    const exists = stored && (agentId === undefined || stored.row.agentId === agentId)
    if (!exists || !isConversationVisible(conversationVisibility(workspace, auth), stored.row))
      throw conversationNotFound(conversationId)
    return stored.row
  }

  /** @throws workspace_not_found, conversation_not_found */
  async update(
    conversationKey: ConversationKey,
    patch: ConversationPatch,
    auth: AuthContext,
  ): Promise<ConversationRow> {
    const { workspaceId, conversationId } = await this.get(conversationKey, auth)
    const key = [workspaceId, conversationId]
    const changed = await changeRow(this.deps.rows, tables.conversations, key, row => ({ ...row, ...patch }))
    if (!('row' in changed)) throw conversationNotFound(conversationId)
    return changed.row
  }

  /**
   * @throws workspace_not_found, conversation_not_found
   * @throws forbidden  another caller created the conversation
   */
  async delete(
    conversationKey: ConversationKey,
    caller: Pick<Caller, 'auth' | 'checkCreator'>,
  ): Promise<void> {
    const conversation = await this.get(conversationKey, caller.auth)
    caller.checkCreator(conversation)
    await this.deps.rows.atomic(conversationDeletion(conversation))
  }

  private async requireAgent({ workspaceId, agentId }: AgentKey): Promise<void> {
    if (!(await this.deps.rows.get(tables.agents, [workspaceId, agentId]))) throw agentNotFound(agentId)
  }
}
