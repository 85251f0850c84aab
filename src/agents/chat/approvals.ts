import type { Caller } from '../../access/caller.ts'
import { type AuthContext, subjectName } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import type { Approval } from '../../contract/chat.ts'
import { WbError } from '../../contract/errors.ts'
import { changeRow } from '../../storage/change-row.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ConversationRow, tables } from '../../storage/tables.ts'
import { conversationNotFound } from '../not-found.ts'
import type { Tool } from '../tools/tool.ts'

/** Time in milliseconds after which a pending tool call is denied. @see docs/agents.md#approve-a-tool-call */
const approvalTimeoutMs = 120_000

/** Maximum number of subjects whose approvals a conversation stores. The oldest are removed first. */
const approversMax = 100

/** A request for approval of a tool call. The sender of the message decides it. */
export interface ApprovalRequest {
  readonly approvalId: string
  readonly expiresAt: string
  /** Decision of the sender; `never` after the timeout, or when the turn ends. */
  readonly decision: Promise<Approval['decision']>
}

/** The conversation and the tool of an approval request. */
interface ApprovalTarget {
  readonly conversation: Pick<ConversationRow, 'workspaceId' | 'conversationId'>
  readonly tool: Pick<Tool, 'id' | 'hash'>
}

interface PendingApproval extends ApprovalTarget {
  readonly sender: string
  readonly settle: (decision: Approval['decision'] | Promise<Approval['decision']>) => void
}

/** Pending approval requests of this process. */
export class Approvals {
  readonly #pending = new Map<string, PendingApproval>()

  constructor(private readonly deps: { rows: RowStore; clock: Clock }) {}

  /**
   * Creates a request, which is pending for at most two minutes.
   *
   * @param auth    sender of the message
   * @param signal  fires when the turn ends
   */
  request(target: ApprovalTarget, auth: AuthContext, signal: AbortSignal): ApprovalRequest {
    const { clock } = this.deps
    const approvalId = newId()
    const expiresAt = new Date(clock.now() + approvalTimeoutMs).toISOString()
    const decision = new Promise<Approval['decision']>(resolve => {
      const settle: PendingApproval['settle'] = decision => {
        this.#pending.delete(approvalId)
        signal.removeEventListener('abort', deny)
        cancelTimeout()
        resolve(decision)
      }
      const deny = () => settle('never')
      const cancelTimeout = clock.after(approvalTimeoutMs, deny)
      this.#pending.set(approvalId, { ...target, sender: approverName(auth), settle })
      signal.addEventListener('abort', deny)
      if (signal.aborted) deny()
    })
    return { approvalId, expiresAt, decision }
  }

  /**
   * Decides a request. If the decision cannot be audited, the tool call is denied.
   *
   * @throws not_found               the caller has no pending request with this ID in the conversation
   * @throws conversation_not_found  the conversation was deleted in the meantime
   */
  async decide(
    { conversationId, approvalId }: { conversationId: string; approvalId: string },
    decision: Approval['decision'],
    caller: Pick<Caller, 'auth' | 'record'>,
  ): Promise<void> {
    const pending = this.#pending.get(approvalId)
    const isInConversation = pending?.conversation.conversationId === conversationId
    if (!isInConversation || pending.sender !== approverName(caller.auth))
      throw new WbError('not_found', `there is no pending approval '${approvalId}'`, {
        hint: 'It was already decided, it expired after 120 seconds, or it belongs to another caller.',
      })
    const stored = this.#store(pending, decision, caller)
    pending.settle(
      stored.then(
        () => decision,
        () => 'never',
      ),
    )
    await stored
  }

  /** Stores a decision with its audit record in one transaction. */
  async #store(
    { conversation, tool, sender }: PendingApproval,
    decision: Approval['decision'],
    caller: Pick<Caller, 'record'>,
  ): Promise<void> {
    const { workspaceId, conversationId } = conversation
    const key = [workspaceId, conversationId]
    const changed = await changeRow(
      this.deps.rows,
      tables.conversations,
      key,
      row => (decision === 'always' ? { ...row, approvals: withApproval(row, sender, tool) } : row),
      () => [caller.record({ toolName: tool.id, decision })],
    )
    if (!('row' in changed)) throw conversationNotFound(conversationId)
  }
}

/** Returns the tools that a caller always allows in a conversation: the hash of each tool, by tool ID. */
export function approvedTools(
  { approvals = {} }: Pick<ConversationRow, 'approvals'>,
  auth: AuthContext,
): Readonly<Record<string, string>> {
  return approvals[approverName(auth)] ?? {}
}

function withApproval(
  { approvals = {} }: ConversationRow,
  sender: string,
  { id, hash }: ApprovalTarget['tool'],
): ConversationRow['approvals'] {
  const { [sender]: toolHashes = {}, ...others } = approvals
  const newestApprovals = Object.entries(others).slice(1 - approversMax)
  return { ...Object.fromEntries(newestApprovals), [sender]: { ...toolHashes, [id]: hash } }
}

/** Returns the name of an approver. Anonymous callers cannot be distinguished, so they share one name. */
function approverName(auth: AuthContext): string {
  return subjectName(auth) ?? 'anonymous'
}
