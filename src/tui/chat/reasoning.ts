import { formatPreciseDuration } from '../parts/format-precise-duration.ts'
import type { ChatState, Turn } from './types.ts'

/** Adds text to the reasoning of the current turn. */
export function addReasoning(state: ChatState, turn: Turn, delta: string): ChatState {
  const { text = '', startedMs = state.nowMs } = turn.reasoning ?? {}
  return { ...state, turn: { ...turn, reasoning: { text: text + delta, startedMs } } }
}

/** Ends the reasoning of the current turn. Returns the new state, and a line with the duration. */
export function endReasoning(
  state: ChatState,
  turn: Turn,
  { text, startedMs }: NonNullable<Turn['reasoning']>,
): [state: ChatState, line: string] {
  const reasoning = [state.lastExchange.reasoning, text.trim()].filter(Boolean).join('\n\n')
  const line = `thought for ${formatPreciseDuration(state.nowMs - startedMs)} · /thoughts shows it`
  return [
    { ...state, turn: { ...turn, reasoning: undefined }, lastExchange: { ...state.lastExchange, reasoning } },
    line,
  ]
}
