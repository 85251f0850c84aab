import { contentOf, editorOf, emptyEditor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'
import { applyFailure, applyResults } from './apply-results.ts'
import { pressHelpKey } from './help.ts'
import { applyKeyInLine, joinLines } from './line-editor.ts'
import { openBases, pressPlaygroundPanelKey } from './panel.ts'
import { moveSelection, scrollToSelected } from './passages.ts'
import type { PlaygroundBase } from './port.ts'
import { defaultMode, searchNow, TYPING_DELAY_MS } from './request.ts'
import { pressSettingKey } from './settings.ts'
import type {
  PlaygroundEvent,
  PlaygroundSettings,
  PlaygroundState,
  PlaygroundStep,
  PlaygroundTarget,
} from './types.ts'

const LIMIT_DEFAULT = 10

export interface PlaygroundStart {
  readonly target: PlaygroundTarget
  readonly bases: readonly PlaygroundBase[]
  /** The named knowledge base, or the only one; undefined if the user has to choose. */
  readonly base: PlaygroundBase | undefined
  readonly question: string
  readonly grades: PlaygroundState['grades']
  readonly size: Size
  readonly nowMs: number
}

export function startPlayground({
  target,
  bases,
  base,
  question,
  grades,
  size,
  nowMs,
}: PlaygroundStart): PlaygroundStep {
  const settings: PlaygroundSettings = {
    mode: base ? defaultMode(base) : 'hybrid',
    lexicalWeight: undefined,
    rerank: false,
    diversity: 0,
    isGrouped: false,
    neighbors: 0,
    filter: undefined,
    limit: LIMIT_DEFAULT,
  }
  const state: PlaygroundState = {
    target,
    size,
    nowMs,
    bases,
    base,
    question: editorOf(joinLines(question)),
    settings,
    showsNumbers: false,
    showsReasons: false,
    isInSettings: false,
    panel: base ? undefined : { kind: 'bases', editor: emptyEditor, selectedIndex: 0 },
    serial: 0,
    pending: undefined,
    results: undefined,
    failure: undefined,
    failedAttempts: 0,
    selectedIndex: 0,
    isOpen: false,
    top: 0,
    grades,
    notice: '',
    uncopiedText: undefined,
  }
  return searchNow(state, 0)
}

/** Returns the state after an event, and the effects to run. */
export function stepPlayground(state: PlaygroundState, event: PlaygroundEvent): PlaygroundStep {
  const [next, effects] = applyEvent(state, event)
  return [next === state ? state : scrollToSelected(next), effects]
}

function applyEvent(state: PlaygroundState, event: PlaygroundEvent): PlaygroundStep {
  switch (event.type) {
    case 'searched':
      return applyResults(state, event.serial, event.results)
    case 'failed':
      return applyFailure(state, event.serial, event.failure)
    case 'listed':
      return updateBases(state, event.bases)
    case 'tick':
      return [{ ...state, nowMs: event.nowMs }, []]
    case 'resized':
      return [{ ...state, size: event.size }, []]
    case 'noted':
      return [{ ...state, notice: event.text }, []]
    case 'notCopied':
      return [
        { ...state, notice: `${event.reason}; the text is printed when you leave`, uncopiedText: event.text },
        [],
      ]
    default:
      return pressKey(state, event)
  }
}

/** Updates the list of knowledge bases. The current one stays selected, even if it was deleted. */
function updateBases(state: PlaygroundState, bases: readonly PlaygroundBase[]): PlaygroundStep {
  const base = bases.find(({ id }) => id === state.base?.id) ?? state.base
  return [{ ...state, bases, base }, []]
}

function pressKey(state: PlaygroundState, key: Key): PlaygroundStep {
  const cleared: PlaygroundState = state.notice === '' ? state : { ...state, notice: '' }
  if (key.type === 'cancel') return [cleared, [{ type: 'leave' }]]
  if (key.type === 'redraw') return [cleared, [{ type: 'redraw' }]]
  // Letters that are typed fast arrive together, and the first letter can change the meaning of the next.
  if (key.type === 'typed' && key.text.length > 1 && (cleared.isInSettings || cleared.panel))
    return [...key.text].reduce<PlaygroundStep>(
      ([previousState, effects], text) => {
        const [next, nextEffects] = stepPlayground(previousState, { type: 'typed', text })
        return [next, [...effects, ...nextEffects]]
      },
      [cleared, []],
    )
  if (cleared.panel?.kind === 'help') return pressHelpKey(cleared, cleared.panel, key)
  if (cleared.panel) return pressPlaygroundPanelKey(cleared, cleared.panel, key)
  switch (key.type) {
    case 'tab':
    case 'backTab':
      return openBases(cleared)
    case 'escape':
      return [{ ...cleared, isInSettings: !cleared.isInSettings }, []]
    case 'enter':
      return openPassage(cleared, cleared.selectedIndex, !cleared.isOpen)
    case 'number':
      return openPassage(cleared, key.number - 1, true)
    case 'up':
    case 'down':
    case 'pageUp':
    case 'pageDown':
      return [moveSelection(cleared, key.type), []]
    case 'endOfInput':
      if (contentOf(cleared.question) === '') return [cleared, [{ type: 'leave' }]]
  }
  return cleared.isInSettings ? pressSettingKey(cleared, key) : typeInQuestion(cleared, key)
}

/** Selects a passage, and shows it in full if `isOpen` is true. */
function openPassage(state: PlaygroundState, index: number, isOpen: boolean): PlaygroundStep {
  return state.results?.passages[index] ? [{ ...state, selectedIndex: index, isOpen }, []] : [state, []]
}

function typeInQuestion(state: PlaygroundState, key: Key): PlaygroundStep {
  const question = applyKeyInLine(state.question, key)
  if (!question) return [state, []]
  const next = { ...state, question }
  return question.text === state.question.text ? [next, []] : searchNow(next, TYPING_DELAY_MS)
}
