import { rankingOptions } from '../../cli/passages/ranking-options.ts'
import { shapingOptions } from '../../cli/passages/shaping-flags.ts'
import { limits } from '../../contract/limits.ts'
import { contentOf } from '../parts/editor.ts'
import type { PlaygroundBase, PlaygroundSearch } from './port.ts'
import type { PlaygroundSettings, PlaygroundState, PlaygroundStep } from './types.ts'

/** Delay between the last key and the search. */
export const TYPING_DELAY_MS = 120

/** Returns the default mode of a knowledge base. */
export function defaultMode({ isLexical }: PlaygroundBase): PlaygroundSettings['mode'] {
  return isLexical ? 'hybrid' : 'vector'
}

/** Returns the ranking settings that differ from the defaults. */
export function changedRanking(base: PlaygroundBase, { mode, lexicalWeight, rerank }: PlaygroundSettings) {
  const weight = mode === 'hybrid' ? lexicalWeight : undefined
  const isDefault = mode === defaultMode(base) && weight === undefined
  return { mode: isDefault ? undefined : mode, lexicalWeight: weight, rerank: rerank || undefined }
}

/** Returns the settings of stages after ranking that differ from the defaults. */
export function changedShaping({ diversity, isGrouped, neighbors }: PlaygroundSettings) {
  return {
    ...(diversity > 0 && { diversity }),
    ...(isGrouped && { group: true }),
    ...(neighbors > 0 && { neighbors }),
  }
}

/** Returns the request for the current question; undefined without a question. */
export function requestOf({ base, question, settings }: PlaygroundState): PlaygroundSearch | undefined {
  const text = contentOf(question).trim()
  if (!base || text === '') return undefined
  const ranking = changedRanking(base, settings)
  // Without an explicit `false`, a knowledge base with a reranking service uses it.
  const rerank = ranking.rerank ?? (base.hasReranker ? false : undefined)
  return {
    base,
    body: {
      text: text.slice(0, limits.searchTextChars),
      topK: settings.limit,
      filter: settings.filter?.condition,
      ...rankingOptions({ ...ranking, rerank }),
      ...shapingOptions(changedShaping(settings)),
    },
  }
}

/** Searches for the current question, unless the same request is pending or its results are shown. */
export function searchNow(state: PlaygroundState, delayMs: number): PlaygroundStep {
  const request = requestOf(state)
  if (!request) {
    const cleared = { pending: undefined, results: undefined, failure: undefined, failedAttempts: 0 }
    return [{ ...state, ...cleared, selectedIndex: 0, isOpen: false, top: 0 }, [{ type: 'stop' }]]
  }
  if (isSameRequest(request, state.pending?.request)) return [state, []]
  if (isSameRequest(request, state.results?.request))
    return [{ ...state, pending: undefined, failure: undefined, failedAttempts: 0 }, [{ type: 'stop' }]]
  const serial = state.serial + 1
  return [
    { ...state, serial, pending: { request, startedMs: state.nowMs + delayMs }, failure: undefined },
    [{ type: 'search', serial, request, delayMs }],
  ]
}

function isSameRequest(request: PlaygroundSearch, other: PlaygroundSearch | undefined): boolean {
  return request.base.id === other?.base.id && JSON.stringify(request.body) === JSON.stringify(other.body)
}
