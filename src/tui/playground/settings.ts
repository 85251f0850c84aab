import { modeNames } from '../../cli/passages/request.ts'
import { editorOf, emptyEditor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import { ask, askedOf, typingMs } from './ask.ts'
import { switchTo } from './panel.ts'
import type { Settings, State, Step } from './types.ts'

/** The half of a hybrid ranking, from where the arrows go up and down. */
const weightMiddle = 0.5
const weightSteps = 10

interface Setting {
  readonly letter: string
  readonly name: string
  /** What it is now, for those that are something. */
  readonly value?: (state: State) => string
  readonly does: string
  run(state: State): Step
}

/** What a letter does beside the question, in the order in which they are shown. */
export const settings: readonly Setting[] = [
  {
    letter: 'h',
    name: 'mode',
    value: state => state.settings.mode,
    does: 'ranks by words and meaning, by words alone, by meaning alone',
    run: state => changed(state, { mode: next(state.settings.mode) }),
  },
  {
    letter: 'w',
    name: 'weight',
    value: state => weightShown(state),
    does: 'leaves the share of the words to the runtime, or takes a half; left and right change it',
    run: state => weighed(state, state.settings.lexicalWeight === undefined ? weightMiddle : undefined),
  },
  {
    letter: 'r',
    name: 'rerank',
    value: state => (state.settings.rerank ? 'on' : 'off'),
    does: 'ranks what was found once more, by words alone',
    run: state => changed(state, { rerank: !state.settings.rerank }),
  },
  {
    letter: 'f',
    name: 'filter',
    value: state => state.settings.filter?.text ?? 'none',
    does: 'keeps passages by metadata: lang=en year=1960, or JSON',
    run: state => [
      {
        ...state,
        panel: { kind: 'filter', editor: editorOf(state.settings.filter?.text ?? ''), problem: '' },
      },
      [],
    ],
  },
  {
    letter: 'k',
    name: 'limit',
    value: state => String(state.settings.limit),
    does: 'says how many passages are wanted',
    run: state => [{ ...state, panel: { kind: 'limit', editor: emptyEditor, problem: '' } }, []],
  },
  {
    letter: 'e',
    name: 'scores',
    value: state => (state.hasNumbers ? 'numbers' : 'bars'),
    does: 'shows the scores as numbers too',
    run: state => [{ ...state, hasNumbers: !state.hasNumbers }, []],
  },
  { letter: 'b', name: 'base', does: 'chooses another knowledge base', run: switchTo },
  {
    letter: 'c',
    name: 'copy',
    does: 'copies what finds the same: wb, curl or TypeScript',
    run: state =>
      askedOf(state)
        ? [{ ...state, panel: { kind: 'copy', at: 0 } }, []]
        : [{ ...state, notice: 'type a question first' }, []],
  },
  {
    letter: '?',
    name: 'help',
    does: 'shows all keys',
    run: state => [{ ...state, panel: { kind: 'help', top: 0 } }, []],
  },
  { letter: 'q', name: 'quit', does: 'leaves', run: state => [state, [{ type: 'leave' }]] },
]

/** A key while letters go to the settings. */
export function set(state: State, key: Key): Step {
  if (key.type === 'left' || key.type === 'right') return slid(state, key.type === 'left' ? -1 : 1)
  if (key.type !== 'typed') return [state, []]
  if (key.text === 'i' || key.text === '/') return [{ ...state, isSetting: false }, []]
  const setting = settings.find(({ letter }) => letter === key.text.toLowerCase())
  return setting ? setting.run(state) : [{ ...state, notice: 'esc goes back to the question' }, []]
}

function next(mode: Settings['mode']): Settings['mode'] {
  return modeNames[(modeNames.indexOf(mode) + 1) % modeNames.length]!
}

/** Change the settings and ask once more. */
function changed(state: State, change: Partial<Settings>, delayMs = 0): Step {
  return ask({ ...state, settings: { ...state.settings, ...change } }, delayMs)
}

function weighed(state: State, lexicalWeight: number | undefined, delayMs?: number): Step {
  if (state.settings.mode !== 'hybrid')
    return [{ ...state, notice: 'the weight is for mode hybrid; h changes the mode' }, []]
  return changed(state, { lexicalWeight }, delayMs)
}

function slid(state: State, by: number): Step {
  const steps = Math.round((state.settings.lexicalWeight ?? weightMiddle) * weightSteps) + by
  return weighed(state, Math.max(0, Math.min(weightSteps, steps)) / weightSteps, typingMs)
}

function weightShown({ settings: { mode, lexicalWeight } }: State): string {
  if (mode !== 'hybrid') return '-'
  return lexicalWeight === undefined ? 'auto' : `${Math.round(lexicalWeight * 100)} % words`
}
