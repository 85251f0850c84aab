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
  const { pending, serial: newestSerial, results: previousResults, selectedIndex, isOpen } = state
  if (!pending || serial !== newestSerial) return [state, []]
  const { request } = pending
  const results: PlaygroundResults = {
    ...searchResults,
    serial,
    request,
    rankChanges: compareRanks(searchResults, previousResults, request.body.text),
  }
  const selectedId = previousResults?.passages[selectedIndex]?.id
  const newIndex = isOpen ? searchResults.passages.findIndex(({ id }) => id === selectedId) : -1
  const selection = newIndex < 0 ? { selectedIndex: 0, isOpen: false, top: 0 } : { selectedIndex: newIndex }
  return [{ ...state, results, pending: undefined, failure: undefined, failedAttempts: 0, ...selection }, []]
}

function compareRanks(
  { passages }: SearchResults,
  previousResults: PlaygroundResults | undefined,
  text: string | undefined,
): PlaygroundResults['rankChanges'] {
  const rankChanges = new Map<string, number | 'new'>()
  if (previousResults?.request.body.text !== text) return rankChanges
  const indexes = new Map(previousResults?.passages.map(({ id }, index) => [id, index]))
  for (const [index, { id }] of passages.entries()) {
    const previousIndex = indexes.get(id)
    if (previousIndex !== index)
      rankChanges.set(id, previousIndex === undefined ? 'new' : previousIndex - index)
  }
  return rankChanges
}

/** Shows an error, or retries while the runtime is unreachable. */
export function applyFailure(
  state: PlaygroundState,
  serial: number,
  failure: PlaygroundFailure,
): PlaygroundStep {
  const { pending, serial: newestSerial } = state
  if (!pending || serial !== newestSerial) return [state, []]
  if (!failure.isUnavailable) return [{ ...state, pending: undefined, failure, failedAttempts: 0 }, []]
  const failedAttempts = state.failedAttempts + 1
  const delayMs = Math.min(RETRY_FIRST_MS * 2 ** (failedAttempts - 1), RETRY_MAX_MS)
  return [
    { ...state, failure: undefined, failedAttempts },
    [{ type: 'search', serial, request: pending.request, delayMs }],
  ]
}
