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

/** Time after which an undecided tool call counts as denied. @see docs/agents.md#approve-a-tool-call */
const approvalTimeoutMs = 120_000

/** Maximum number of subjects whose approvals a conversation stores; the oldest are removed first. */
const approversMax = 100

/** A question to the sender of a message: may this tool run? */
export interface ApprovalRequest {
  readonly approvalId: string
  readonly expiresAt: string
  /** What was decided; `never` when nobody answers in time, or nobody waits any longer. */
  readonly decision: Promise<Approval['decision']>
}

/** What is asked about. */
interface ApprovalSubject {
  readonly conversation: Pick<ConversationRow, 'workspaceId' | 'conversationId'>
  readonly tool: Pick<Tool, 'id' | 'hash'>
}

interface PendingApproval extends ApprovalSubject {
  readonly sender: string
  readonly answer: (decision: Approval['decision'] | Promise<Approval['decision']>) => void
}

/** Questions of this process that wait for their answers. */
export class Approvals {
  readonly #waiting = new Map<string, PendingApproval>()

  constructor(private readonly parts: { rows: RowStore; clock: Clock }) {}

  /**
   * @param auth    of the sender
   * @param signal  the turn ends: nobody waits any longer
   */
  request(matter: ApprovalSubject, auth: AuthContext, signal: AbortSignal): ApprovalRequest {
    const { clock } = this.parts
    const approvalId = newId()
    const expiresAt = new Date(clock.now() + approvalTimeoutMs).toISOString()
    const decision = new Promise<Approval['decision']>(resolve => {
      const answer: PendingApproval['answer'] = decision => {
        this.#waiting.delete(approvalId)
        signal.removeEventListener('abort', leave)
        callOff()
        resolve(decision)
      }
      const leave = () => answer('never')
      const callOff = clock.after(approvalTimeoutMs, leave)
      this.#waiting.set(approvalId, { ...matter, sender: approverName(auth), answer })
      signal.addEventListener('abort', leave)
      if (signal.aborted) leave()
    })
    return { approvalId, expiresAt, decision }
  }

  /**
   * Answer a question. One whose record cannot be kept is answered with no.
   *
   * @throws not_found               nothing of this conversation waits by that id for this caller
   * @throws conversation_not_found  it was deleted meanwhile
   */
  async decide(
    { conversationId, approvalId }: { conversationId: string; approvalId: string },
    decision: Approval['decision'],
    caller: Pick<Caller, 'auth' | 'record'>,
  ): Promise<void> {
    const waiting = this.#waiting.get(approvalId)
    const isOfThis = waiting?.conversation.conversationId === conversationId
    if (!isOfThis || waiting.sender !== approverName(caller.auth))
      throw new WbError('not_found', `no tool waits for approval '${approvalId}'`, {
        hint: 'It was decided, it took longer than 120 seconds, or somebody else was asked.',
      })
    const kept = this.#store(waiting, decision, caller)
    waiting.answer(
      kept.then(
        () => decision,
        () => 'never',
      ),
    )
    await kept
  }

  /** The record of a decision, and what it grants, in one unit. */
  async #store(
    { conversation, tool, sender }: PendingApproval,
    decision: Approval['decision'],
    caller: Pick<Caller, 'record'>,
  ): Promise<void> {
    const { workspaceId, conversationId } = conversation
    const key = [workspaceId, conversationId]
    const changed = await changeRow(
      this.parts.rows,
      tables.conversations,
      key,
      row => (decision === 'always' ? { ...row, approvals: withApproval(row, sender, tool) } : row),
      () => [caller.record({ toolName: tool.id, decision })],
    )
    if (!('row' in changed)) throw conversationNotFound(conversationId)
  }
}

/** Tools that a caller approved in a conversation: hashes of their descriptions, by ID. */
export function approvedTools(
  { approvals = {} }: Pick<ConversationRow, 'approvals'>,
  auth: AuthContext,
): Readonly<Record<string, string>> {
  return approvals[approverName(auth)] ?? {}
}

function withApproval(
  { approvals = {} }: ConversationRow,
  sender: string,
  { id, hash }: ApprovalSubject['tool'],
): ConversationRow['approvals'] {
  const { [sender]: own = {}, ...others } = approvals
  const kept = Object.entries(others).slice(1 - approversMax)
  return { ...Object.fromEntries(kept), [sender]: { ...own, [id]: hash } }
}

/** Anonymous callers cannot be distinguished, so they share this name. */
function approverName(auth: AuthContext): string {
  return subjectName(auth) ?? 'anonymous'
}
