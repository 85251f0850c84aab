import { rankingOf } from '../../cli/passages/request.ts'
import { limits } from '../../contract/limits.ts'
import { contentOf } from '../parts/editor.ts'
import type { Asked, Base } from './port.ts'
import type { Settings, State, Step } from './types.ts'

/** A person who types on is not answered in between. */
export const typingMs = 120

/** How a knowledge base is searched when nobody says anything. */
export function usualMode({ isLexical }: Base): Settings['mode'] {
  return isLexical ? 'hybrid' : 'vector'
}

/** What the settings say of the ranking; what is as usual is left out. */
export function rankingSaid(base: Base, { mode, lexicalWeight, rerank }: Settings) {
  const weight = mode === 'hybrid' ? lexicalWeight : undefined
  const isUsual = mode === usualMode(base) && weight === undefined
  return { mode: isUsual ? undefined : mode, lexicalWeight: weight, rerank: rerank || undefined }
}

/** What the state asks for; undefined where it asks nothing. */
export function askedOf({ base, question, settings }: State): Asked | undefined {
  const text = contentOf(question).trim()
  if (!base || text === '') return undefined
  const said = rankingSaid(base, settings)
  // Of a knowledge base with a reranker the runtime tells that it ranks without, unless that is asked for.
  const rerank = said.rerank ?? (base.hasReranker ? false : undefined)
  return {
    base,
    body: {
      text: text.slice(0, limits.searchTextChars),
      topK: settings.limit,
      filter: settings.filter?.condition,
      ...rankingOf({ ...said, rerank }),
    },
  }
}

/** Ask for what the state says, unless that is what is answered or asked already. */
export function ask(state: State, delayMs: number): Step {
  const asked = askedOf(state)
  if (!asked) {
    const quiet = { asking: undefined, answer: undefined, failure: undefined, tries: 0 }
    return [{ ...state, ...quiet, at: 0, isOpen: false, top: 0 }, [{ type: 'stop' }]]
  }
  if (isSame(asked, state.asking?.asked)) return [state, []]
  if (isSame(asked, state.answer?.asked))
    return [{ ...state, asking: undefined, failure: undefined, tries: 0 }, [{ type: 'stop' }]]
  const serial = state.serial + 1
  return [
    { ...state, serial, asking: { asked, sinceMs: state.nowMs + delayMs }, failure: undefined },
    [{ type: 'search', serial, asked, delayMs }],
  ]
}

function isSame(one: Asked, other: Asked | undefined): boolean {
  return one.base.id === other?.base.id && JSON.stringify(one.body) === JSON.stringify(other.body)
}
