import { filled } from '../parts/cells.ts'
import type { Key } from '../parts/keys.ts'
import { type Line, span, wrap } from '../parts/spans.ts'
import { type Frame, frameOf } from './frame.ts'
import { settings } from './settings.ts'
import type { Panel, State, Step } from './types.ts'

const keys: readonly (readonly [key: string, does: string])[] = [
  ['enter', 'shows the passage whole, or no longer'],
  ['up, down', 'choose a passage; page up and page down go faster'],
  ['alt+1 ...', 'shows the passage of that number'],
  ['tab', 'chooses another knowledge base'],
  ['esc', 'goes to the settings, and back to the question'],
  ['ctrl+c', 'leaves'],
]

/** All keys, with what they do. */
export function helpLines({ width }: Pick<Frame, 'width'>): Line[] {
  const told = (all: readonly (readonly [string, string])[], wide: number) =>
    all.flatMap(([key, does]) =>
      wrap([span(does)], width - 1, {
        first: [span(`  ${filled(key, wide)}  `, 'accent')],
        rest: [span(filled('', wide + 4))],
      }),
    )
  return [
    ...told(keys, 9),
    [],
    [span('  in the settings', 'dim')],
    ...told(
      settings.map(({ letter, does }) => [letter, does]),
      9,
    ),
  ]
}

const scrolls: Partial<Record<Key['type'], number>> = { up: -1, down: 1, pageUp: -8, pageDown: 8 }

/** A key in the help: what does not move in it leaves it. */
export function reading(state: State, panel: Extract<Panel, { kind: 'help' }>, key: Key): Step {
  const by = scrolls[key.type]
  if (by === undefined) return [{ ...state, panel: undefined }, []]
  const frame = frameOf(state)
  const top = Math.max(0, Math.min(helpLines(frame).length - frame.room, panel.top + by))
  return [{ ...state, panel: { ...panel, top } }, []]
}
