import { formatArguments } from '../../cli/chat/with-approvals.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Approval } from '../../contract/chat.ts'
import type { Key } from '../parts/keys.ts'
import type { ChatState, ChatStep, PendingApproval, Turn } from './types.ts'

/** Time after an approval request in which keys are ignored, because they were probably meant for the composer. */
const IGNORED_MS = 500

export const approvalChoices: readonly { key: string; decision: Approval['decision']; label: string }[] = [
  { key: 'o', decision: 'once', label: 'once' },
  { key: 'a', decision: 'always', label: 'always in this conversation' },
  { key: 'n', decision: 'never', label: 'never' },
]

/** Key that shows all arguments of the call. */
export const DETAILS_KEY = 'e'

/** Handles a key while a tool call waits for approval. Escape decides `never`. */
export function pressApprovalKey(state: ChatState, turn: Turn, pending: PendingApproval, key: Key): ChatStep {
  if (key.type === 'escape') return decide(state, turn, pending, 'never')
  if (key.type !== 'typed' || state.nowMs - pending.requestedMs < IGNORED_MS) return [state, []]
  if (key.text === DETAILS_KEY) return [withDetails(state, pending), []]
  return submitApproval(state, turn, pending, key.text)
}

/** Handles a decision that was typed as a line: a letter or a word. */
export function submitApproval(
  state: ChatState,
  turn: Turn,
  pending: PendingApproval,
  input: string,
): ChatStep {
  const choiceText = input.trim().toLowerCase()
  const choice = approvalChoices.find(({ key, decision }) => choiceText === key || choiceText === decision)
  return choice ? decide(state, turn, pending, choice.decision) : [state, []]
}

function withDetails(state: ChatState, { call }: PendingApproval): ChatState {
  const title = `arguments of ${plainLine(call.name)}`
  const page = { text: formatArguments(call.arguments), format: 'plain' } as const
  return { ...state, panel: { kind: 'text', title, page, top: 0 } }
}

function decide(
  state: ChatState,
  turn: Turn,
  approval: PendingApproval,
  decision: Approval['decision'],
): ChatStep {
  const pendingApprovals = turn.pendingApprovals.filter(other => other !== approval)
  return [
    { ...state, turn: { ...turn, pendingApprovals } },
    [{ type: 'decide', approvalId: approval.approvalId, decision }],
  ]
}
