import type { SearchResults } from './port.ts'
import type { PlaygroundFailure, PlaygroundResults, PlaygroundState, PlaygroundStep } from './types.ts'

const RETRY_FIRST_MS = 500
const RETRY_MAX_MS = 10_000

/** Applies the results of a search. Results of an earlier request are ignored. */
export function applyResults(
  state: PlaygroundState,
  serial: number,
  searchResults: SearchResults,
): PlaygroundStep {
  const { pending, serial: newest, results: before, at, isOpen } = state
  if (!pending || serial !== newest) return [state, []]
  const { request } = pending
  const results: PlaygroundResults = {
    ...searchResults,
    serial,
    request,
    moves: rankChanges(searchResults, before, request.body.text),
  }
  const chosen = before?.passages[at]?.id
  const newIndex = isOpen ? searchResults.passages.findIndex(({ id }) => id === chosen) : -1
  const selection = newIndex < 0 ? { at: 0, isOpen: false, top: 0 } : { at: newIndex }
  return [{ ...state, results, pending: undefined, failure: undefined, tries: 0, ...selection }, []]
}

function rankChanges(
  { passages }: SearchResults,
  before: PlaygroundResults | undefined,
  text: string | undefined,
): PlaygroundResults['moves'] {
  const moves = new Map<string, number | 'new'>()
  if (before?.request.body.text !== text) return moves
  const indexes = new Map(before?.passages.map(({ id }, index) => [id, index]))
  for (const [index, { id }] of passages.entries()) {
    const previousIndex = indexes.get(id)
    if (previousIndex !== index) moves.set(id, previousIndex === undefined ? 'new' : previousIndex - index)
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
