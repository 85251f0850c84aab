import { modeNames } from '../../cli/passages/ranking-options.ts'
import { limits } from '../../contract/limits.ts'
import { editorOf, emptyEditor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import { gradeKeys, judgeSelected } from './judge.ts'
import { openBases } from './panel.ts'
import { requestOf, searchNow, TYPING_DELAY_MS } from './request.ts'
import type { PlaygroundSettings, PlaygroundState, PlaygroundStep } from './types.ts'

/** Weight when the user starts to change it. */
const WEIGHT_START = 0.5
const WEIGHT_STEPS = 10
const diversities = [0, 0.3, 0.5, 0.7]

interface Setting {
  readonly letter: string
  /** Keys that run it; by default, its letter. */
  readonly keys?: string
  readonly name: string
  /** Current value; undefined for a command. */
  readonly value?: (state: PlaygroundState) => string
  readonly summary: string
  run(state: PlaygroundState, key: string): PlaygroundStep
}

/** Settings and commands by letter, in display order. */
export const settings: readonly Setting[] = [
  {
    letter: 'h',
    name: 'mode',
    value: state => state.settings.mode,
    summary: 'switches between hybrid, lexical and vector search',
    run: state => applySettings(state, { mode: nextOf(modeNames, state.settings.mode) }),
  },
  {
    letter: 'w',
    name: 'weight',
    value: state => formatWeight(state),
    summary: 'sets the weight of lexical search; left and right change it',
    run: state => setWeight(state, state.settings.lexicalWeight === undefined ? WEIGHT_START : undefined),
  },
  {
    letter: 'r',
    name: 'rerank',
    value: state => (state.settings.rerank ? 'on' : 'off'),
    summary: 'reranks the results',
    run: state => applySettings(state, { rerank: !state.settings.rerank }),
  },
  {
    letter: 'f',
    name: 'filter',
    value: state => state.settings.filter?.text ?? 'none',
    summary: 'filters by metadata: lang=en year=1960, or JSON',
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
    summary: 'sets the number of passages',
    run: state => [{ ...state, panel: { kind: 'limit', editor: emptyEditor, problem: '' } }, []],
  },
  {
    letter: 'e',
    name: 'scores',
    value: state => (state.showsNumbers ? 'numbers' : 'bars'),
    summary: 'also shows scores as numbers',
    run: state => [{ ...state, showsNumbers: !state.showsNumbers }, []],
  },
  {
    letter: 'x',
    name: 'explain',
    value: state => (state.showsReasons ? 'table' : 'line'),
    summary: 'explains the rank of the selected passage in a table',
    run: state => [{ ...state, showsReasons: !state.showsReasons }, []],
  },
  {
    letter: 'd',
    name: 'diverse',
    value: ({ settings: { diversity } }) => (diversity === 0 ? 'off' : String(diversity)),
    summary: 'moves down passages that resemble better ones',
    run: state => applySettings(state, { diversity: nextOf(diversities, state.settings.diversity) }),
  },
  {
    letter: 'g',
    name: 'group',
    value: state => (state.settings.isGrouped ? 'on' : 'off'),
    summary: 'shows only the best passage of each document',
    run: state => applySettings(state, { isGrouped: !state.settings.isGrouped }),
  },
  {
    letter: 'n',
    name: 'join',
    value: state => String(state.settings.neighbors),
    summary: 'joins up to 3 chunks before and after each passage',
    run: state =>
      applySettings(state, { neighbors: (state.settings.neighbors + 1) % (limits.neighborsMax + 1) }),
  },
  {
    letter: '0-4',
    keys: gradeKeys,
    name: 'judge',
    summary: 'judges the selected passage: 0 is irrelevant, 4 is the answer',
    run: (state, key) => judgeSelected(state, Number(key)),
  },
  { letter: 'b', name: 'base', summary: 'chooses another knowledge base', run: openBases },
  {
    letter: 'c',
    name: 'copy',
    summary: 'copies this search as a wb command, a curl command or TypeScript',
    run: state =>
      requestOf(state)
        ? [{ ...state, panel: { kind: 'copy', selectedIndex: 0 } }, []]
        : [{ ...state, notice: 'type a question first' }, []],
  },
  {
    letter: '?',
    name: 'help',
    summary: 'shows all keys',
    run: state => [{ ...state, panel: { kind: 'help', top: 0 } }, []],
  },
  { letter: 'q', name: 'quit', summary: 'leaves', run: state => [state, [{ type: 'leave' }]] },
]

/** Handles a key in the settings. */
export function pressSettingKey(state: PlaygroundState, key: Key): PlaygroundStep {
  if (key.type === 'left' || key.type === 'right') return moveWeight(state, key.type === 'left' ? -1 : 1)
  if (key.type !== 'typed') return [state, []]
  if (key.text === 'i' || key.text === '/') return [{ ...state, isInSettings: false }, []]
  const typed = key.text.toLowerCase()
  const setting = settings.find(({ letter, keys = letter }) => [...keys].includes(typed))
  return setting
    ? setting.run(state, typed)
    : [{ ...state, notice: 'press esc to go back to the question' }, []]
}

/** Returns the value after another one, and the first after the last. */
function nextOf<T>(values: readonly T[], value: T): T {
  return values[(values.indexOf(value) + 1) % values.length]!
}

/** Changes settings, and searches again. */
function applySettings(
  state: PlaygroundState,
  change: Partial<PlaygroundSettings>,
  delayMs = 0,
): PlaygroundStep {
  return searchNow({ ...state, settings: { ...state.settings, ...change } }, delayMs)
}

function setWeight(
  state: PlaygroundState,
  lexicalWeight: number | undefined,
  delayMs?: number,
): PlaygroundStep {
  if (state.settings.mode !== 'hybrid')
    return [{ ...state, notice: 'the weight applies to hybrid mode only; h changes the mode' }, []]
  return applySettings(state, { lexicalWeight }, delayMs)
}

function moveWeight(state: PlaygroundState, by: number): PlaygroundStep {
  const steps = Math.round((state.settings.lexicalWeight ?? WEIGHT_START) * WEIGHT_STEPS) + by
  return setWeight(state, Math.max(0, Math.min(WEIGHT_STEPS, steps)) / WEIGHT_STEPS, TYPING_DELAY_MS)
}

function formatWeight({ settings: { mode, lexicalWeight } }: PlaygroundState): string {
  if (mode !== 'hybrid') return '-'
  return lexicalWeight === undefined ? 'auto' : `${Math.round(lexicalWeight * 100)} % words`
}
