import { UsageError } from '../../cli/errors.ts'
import { parseCondition } from '../../cli/passages/parse-condition.ts'
import { contentOf, emptyEditor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import { equivalents } from './equivalents.ts'
import { applyKeyInLine } from './line-editor.ts'
import type { PlaygroundBase } from './port.ts'
import { defaultMode, requestOf, searchNow } from './request.ts'
import type { PlaygroundPanel, PlaygroundSettings, PlaygroundState, PlaygroundStep } from './types.ts'

/** Maximum number of passages in a result. */
const PASSAGES_MAX = 100

type PanelOfKind<K extends PlaygroundPanel['kind']> = Extract<PlaygroundPanel, { kind: K }>

/** Opens the list of knowledge bases. */
export function openBases(state: PlaygroundState): PlaygroundStep {
  const selectedIndex = Math.max(
    0,
    state.bases.findIndex(({ id }) => id === state.base?.id),
  )
  return [{ ...state, panel: { kind: 'bases', editor: emptyEditor, selectedIndex } }, [{ type: 'list' }]]
}

/** Returns the knowledge bases whose names contain the typed text; names that start with it come first. */
export function matchingBases(
  { bases }: PlaygroundState,
  { editor }: PanelOfKind<'bases'>,
): readonly PlaygroundBase[] {
  const query = contentOf(editor).trim().toLowerCase()
  const matches = bases.filter(({ name }) => name.toLowerCase().includes(query))
  const startsWithQuery = ({ name }: PlaygroundBase) => name.toLowerCase().startsWith(query)
  return [...matches.filter(startsWithQuery), ...matches.filter(base => !startsWithQuery(base))]
}

/** Handles a key in a panel. */
export function pressPlaygroundPanelKey(
  state: PlaygroundState,
  panel: Exclude<PlaygroundPanel, { kind: 'help' }>,
  key: Key,
): PlaygroundStep {
  const closed: PlaygroundState = { ...state, panel: undefined }
  if (key.type === 'escape' || (key.type === 'tab' && panel.kind === 'bases'))
    return state.base ? [closed, []] : [state, [{ type: 'leave' }]]
  switch (panel.kind) {
    case 'bases':
      return pressBasesKey(state, panel, key)
    case 'filter':
    case 'limit':
      return pressFieldKey(state, panel, key)
    case 'copy':
      return pressCopyKey(state, panel, key)
  }
}

function pressBasesKey(state: PlaygroundState, panel: PanelOfKind<'bases'>, key: Key): PlaygroundStep {
  const all = matchingBases(state, panel)
  const selectedIndex = Math.min(panel.selectedIndex, all.length - 1)
  if (key.type === 'up' || key.type === 'down') {
    const newIndex = Math.max(0, Math.min(all.length - 1, selectedIndex + (key.type === 'up' ? -1 : 1)))
    return [{ ...state, panel: { ...panel, selectedIndex: newIndex } }, []]
  }
  if (key.type === 'enter') {
    const base = all[selectedIndex]
    return base ? switchBase({ ...state, panel: undefined }, base) : [state, []]
  }
  const editor = applyKeyInLine(panel.editor, key)
  if (!editor) return [state, []]
  return [
    {
      ...state,
      panel: { ...panel, editor, selectedIndex: editor.text === panel.editor.text ? selectedIndex : 0 },
    },
    [],
  ]
}

/** Searches another knowledge base for the same question. */
function switchBase(state: PlaygroundState, base: PlaygroundBase): PlaygroundStep {
  if (base.id === state.base?.id) return [state, []]
  const settings: PlaygroundSettings = { ...state.settings, mode: defaultMode(base) }
  const initial = {
    results: undefined,
    failure: undefined,
    selectedIndex: 0,
    isOpen: false,
    top: 0,
    isInSettings: false,
  }
  return searchNow({ ...state, base, settings, ...initial }, 0)
}

function pressFieldKey(
  state: PlaygroundState,
  panel: PanelOfKind<'filter' | 'limit'>,
  key: Key,
): PlaygroundStep {
  if (key.type === 'enter') {
    const text = contentOf(panel.editor).trim()
    const change = panel.kind === 'filter' ? parseFilter(text) : parseLimit(text, state.settings.limit)
    if (typeof change === 'string') return [{ ...state, panel: { ...panel, problem: change } }, []]
    return searchNow({ ...state, panel: undefined, settings: { ...state.settings, ...change } }, 0)
  }
  const editor = applyKeyInLine(panel.editor, key)
  return editor ? [{ ...state, panel: { ...panel, editor, problem: '' } }, []] : [state, []]
}

/** Parses a filter: a JSON object, a condition, or `key=value` pairs. Returns an error message for other text. */
function parseFilter(text: string): Pick<PlaygroundSettings, 'filter'> | string {
  if (text === '') return { filter: undefined }
  const words = text.split(/\s+/)
  const where = words.every(word => /^[^=<>!()"']+=[^=<>!()"']+$/.test(word)) ? words : [text]
  const flags = text.startsWith('{') ? { filter: text } : { where }
  try {
    const condition = parseCondition(flags)
    return { filter: condition && { text, condition } }
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return text.startsWith('{')
      ? 'this is not a complete JSON object'
      : 'type a condition such as year >= 2024, or a JSON object'
  }
}

function parseLimit(text: string, currentLimit: number): Pick<PlaygroundSettings, 'limit'> | string {
  const limit = text === '' ? currentLimit : Number(text)
  return Number.isInteger(limit) && limit >= 1 && limit <= PASSAGES_MAX
    ? { limit }
    : `type a number from 1 to ${PASSAGES_MAX}`
}

function pressCopyKey(state: PlaygroundState, panel: PanelOfKind<'copy'>, key: Key): PlaygroundStep {
  const request = requestOf(state)
  const all = request ? equivalents(state, request) : []
  if (key.type === 'up' || key.type === 'down') {
    const selectedIndex = Math.max(
      0,
      Math.min(all.length - 1, panel.selectedIndex + (key.type === 'up' ? -1 : 1)),
    )
    return [{ ...state, panel: { ...panel, selectedIndex } }, []]
  }
  const byLetter = all.find(({ letter }) => key.type === 'typed' && key.text === letter)
  const equivalent = key.type === 'enter' ? all[panel.selectedIndex] : byLetter
  if (!equivalent) return [state, []]
  return [{ ...state, panel: undefined }, [{ type: 'copy', text: equivalent.text, label: equivalent.name }]]
}
