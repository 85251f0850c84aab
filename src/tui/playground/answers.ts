import type { SearchResults } from './port.ts'
import type { PlaygroundAnswer, PlaygroundFailure, PlaygroundState, PlaygroundStep } from './types.ts'

const RETRY_FIRST_MS = 500
const RETRY_MAX_MS = 10_000

/** Applies the results of a search; those of an earlier request are dropped. */
export function applyResults(state: PlaygroundState, serial: number, found: SearchResults): PlaygroundStep {
  const { pending, serial: newest, answer: before, at, isOpen } = state
  if (!pending || serial !== newest) return [state, []]
  const { request } = pending
  const answer: PlaygroundAnswer = {
    ...found,
    serial,
    request,
    moves: rankChanges(found, before, request.body.text),
  }
  const chosen = before?.passages[at]?.id
  const stays = isOpen ? found.passages.findIndex(({ id }) => id === chosen) : -1
  const place = stays < 0 ? { at: 0, isOpen: false, top: 0 } : { at: stays }
  return [{ ...state, answer, pending: undefined, failure: undefined, tries: 0, ...place }, []]
}

function rankChanges(
  { passages }: SearchResults,
  before: PlaygroundAnswer | undefined,
  text: string | undefined,
): PlaygroundAnswer['moves'] {
  const moves = new Map<string, number | 'new'>()
  if (before?.request.body.text !== text) return moves
  const places = new Map(before?.passages.map(({ id }, place) => [id, place]))
  for (const [place, { id }] of passages.entries()) {
    const was = places.get(id)
    if (was !== place) moves.set(id, was === undefined ? 'new' : was - place)
  }
  return moves
}

/** Shows an error, or retries while the runtime is unreachable. */
export function applyFailure(
  state: PlaygroundState,
  serial: number,
  failure: PlaygroundFailure,
): PlaygroundStep {
  const { pending, serial: newest } = state
  if (!pending || serial !== newest) return [state, []]
  if (!failure.isUnavailable) return [{ ...state, pending: undefined, failure, tries: 0 }, []]
  const tries = state.tries + 1
  const delayMs = Math.min(RETRY_FIRST_MS * 2 ** (tries - 1), RETRY_MAX_MS)
  return [
    { ...state, failure: undefined, tries },
    [{ type: 'search', serial, request: pending.request, delayMs }],
  ]
}
