import { pretty } from '../../cli/chat/approve.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Approval } from '../../contract/chat.ts'
import type { Key } from '../parts/keys.ts'
import type { Pending, State, Step, Turn } from './types.ts'

/** Who is typing when the question comes has not answered it. */
const deafMs = 500

export const answers: readonly { key: string; decision: Approval['decision']; says: string }[] = [
  { key: 'o', decision: 'once', says: 'once' },
  { key: 'a', decision: 'always', says: 'always in this conversation' },
  { key: 'n', decision: 'never', says: 'never' },
]

/** Opens all that the tool would be given. */
export const wholeKey = 'e'

/** A key while a tool waits: the letter of an answer answers, one shows what the tool would be given. */
export function answer(state: State, turn: Turn, asked: Pending, key: Key): Step {
  if (key.type === 'escape') return decide(state, turn, asked, 'never')
  if (key.type !== 'typed' || state.nowMs - asked.sinceMs < deafMs) return [state, []]
  return key.text === wholeKey ? [whole(state, asked), []] : answerWith(state, turn, asked, key.text)
}

/** The same for a word. */
export function answerWith(state: State, turn: Turn, asked: Pending, word: string): Step {
  const typed = word.trim().toLowerCase()
  const meant = answers.find(({ key, decision }) => typed === key || typed === decision)
  return meant ? decide(state, turn, asked, meant.decision) : [state, []]
}

function whole(state: State, { call }: Pending): State {
  const title = `${plainLine(call.name)} would be given`
  const page = { text: pretty(call.arguments), format: 'plain' } as const
  return { ...state, panel: { kind: 'text', title, page, top: 0 } }
}

function decide(state: State, turn: Turn, asked: Pending, decision: Approval['decision']): Step {
  const pending = turn.pending.filter(other => other !== asked)
  return [
    { ...state, turn: { ...turn, pending } },
    [{ type: 'decide', approvalId: asked.approvalId, decision }],
  ]
}
