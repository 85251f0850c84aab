import { formatArguments } from '../../cli/chat/with-approvals.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Approval } from '../../contract/chat.ts'
import type { Key } from '../parts/keys.ts'
import type { ChatState, ChatStep, Pending, Turn } from './types.ts'

/** Keys that arrive sooner were meant for the composer. */
const IGNORED_MS = 500

export const answers: readonly { key: string; decision: Approval['decision']; label: string }[] = [
  { key: 'o', decision: 'once', label: 'once' },
  { key: 'a', decision: 'always', label: 'always in this conversation' },
  { key: 'n', decision: 'never', label: 'never' },
]

/** Shows all arguments of the call. */
export const DETAILS_KEY = 'e'

/** Handles a key while a tool call waits for approval. Only a letter that came alone, or Escape, decides. */
export function pressApprovalKey(state: ChatState, turn: Turn, asked: Pending, key: Key): ChatStep {
  if (key.type === 'escape') return decide(state, turn, asked, 'never')
  if (key.type !== 'typed' || state.nowMs - asked.sinceMs < IGNORED_MS) return [state, []]
  if (key.text === DETAILS_KEY) return [withDetails(state, asked), []]
  return submitApproval(state, turn, asked, key.text)
}

/** Handles a decision that was typed as a line: a letter or a word. */
export function submitApproval(state: ChatState, turn: Turn, asked: Pending, word: string): ChatStep {
  const typed = word.trim().toLowerCase()
  const meant = answers.find(({ key, decision }) => typed === key || typed === decision)
  return meant ? decide(state, turn, asked, meant.decision) : [state, []]
}

function withDetails(state: ChatState, { call }: Pending): ChatState {
  const title = `arguments of ${plainLine(call.name)}`
  const page = { text: formatArguments(call.arguments), format: 'plain' } as const
  return { ...state, panel: { kind: 'text', title, page, top: 0 } }
}

function decide(state: ChatState, turn: Turn, asked: Pending, decision: Approval['decision']): ChatStep {
  const pending = turn.pending.filter(other => other !== asked)
  return [
    { ...state, turn: { ...turn, pending } },
    [{ type: 'decide', approvalId: asked.approvalId, decision }],
  ]
}
