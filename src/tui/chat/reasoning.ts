import { formatPreciseDuration } from '../parts/format-precise-duration.ts'
import type { ChatState, Turn } from './types.ts'

/** Returns the state after more reasoning. */
export function addReasoning(state: ChatState, turn: Turn, delta: string): ChatState {
  const { text = '', sinceMs = state.nowMs } = turn.thought ?? {}
  return { ...state, turn: { ...turn, thought: { text: text + delta, sinceMs } } }
}

/** Returns the state after reasoning has ended, and a line with its duration. */
export function endReasoning(
  state: ChatState,
  turn: Turn,
  { text, sinceMs }: NonNullable<Turn['thought']>,
): [state: ChatState, line: string] {
  const thoughts = [state.last.thoughts, text.trim()].filter(Boolean).join('\n\n')
  const line = `thought for ${formatPreciseDuration(state.nowMs - sinceMs)} · /thoughts shows it`
  return [{ ...state, turn: { ...turn, thought: undefined }, last: { ...state.last, thoughts } }, line]
}
