import type { Found } from './port.ts'
import type { Answer, Failure, State, Step } from './types.ts'

const waitFirstMs = 500
const waitMaxMs = 10_000

/** Passages came; those of an older question are dropped. */
export function answered(state: State, serial: number, found: Found): Step {
  const { asking, serial: newest, answer: before, at, isOpen } = state
  if (!asking || serial !== newest) return [state, []]
  const { asked } = asking
  const answer: Answer = { ...found, serial, asked, moves: movesOf(found, before, asked.body.text) }
  const chosen = before?.passages[at]?.id
  const stays = isOpen ? found.passages.findIndex(({ id }) => id === chosen) : -1
  const place = stays < 0 ? { at: 0, isOpen: false, top: 0 } : { at: stays }
  return [{ ...state, answer, asking: undefined, failure: undefined, tries: 0, ...place }, []]
}

function movesOf({ passages }: Found, before: Answer | undefined, text: string | undefined): Answer['moves'] {
  const moves = new Map<string, number | 'new'>()
  if (before?.asked.body.text !== text) return moves
  const places = new Map(before?.passages.map(({ id }, place) => [id, place]))
  for (const [place, { id }] of passages.entries()) {
    const was = places.get(id)
    if (was !== place) moves.set(id, was === undefined ? 'new' : was - place)
  }
  return moves
}

/** A refusal is told; a runtime that is away is asked again and again. */
export function failed(state: State, serial: number, failure: Failure): Step {
  const { asking, serial: newest } = state
  if (!asking || serial !== newest) return [state, []]
  if (!failure.isAway) return [{ ...state, asking: undefined, failure, tries: 0 }, []]
  const tries = state.tries + 1
  const delayMs = Math.min(waitFirstMs * 2 ** (tries - 1), waitMaxMs)
  return [{ ...state, failure: undefined, tries }, [{ type: 'search', serial, asked: asking.asked, delayMs }]]
}
