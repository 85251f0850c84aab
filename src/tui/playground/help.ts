import { pad } from '../../cli/terminal/terminal-text.ts'
import type { Key } from '../parts/keys.ts'
import { type Line, span, wrap } from '../parts/spans.ts'
import { layoutPlayground, type PlaygroundLayout } from './layout.ts'
import { settings } from './settings.ts'
import type { PlaygroundPanel, PlaygroundState, PlaygroundStep } from './types.ts'

const keys: readonly (readonly [key: string, description: string])[] = [
  ['enter', 'shows the whole passage, or an excerpt'],
  ['up, down', 'select a passage; page up and page down go faster'],
  ['alt+1 ...', 'shows the passage of that number'],
  ['tab', 'chooses another knowledge base'],
  ['esc', 'goes to the settings, and back to the question'],
  ['ctrl+c', 'leaves'],
]

/** Returns the lines of the help. */
export function helpLines({ resultColumns }: Pick<PlaygroundLayout, 'resultColumns'>): Line[] {
  const rowsOf = (entries: readonly (readonly [string, string])[], keyWidth: number) =>
    entries.flatMap(([key, description]) =>
      wrap([span(description)], resultColumns - 1, {
        first: [span(`  ${pad(key, keyWidth)}  `, 'accent')],
        rest: [span(pad('', keyWidth + 4))],
      }),
    )
  return [
    ...rowsOf(keys, 9),
    [],
    [span('  in the settings', 'dim')],
    ...rowsOf(
      settings.map(({ letter, summary }) => [letter, summary]),
      9,
    ),
  ]
}

const rowsByKey: Partial<Record<Key['type'], number>> = { up: -1, down: 1, pageUp: -8, pageDown: 8 }

/** Handles a key in the help. Keys that do not scroll close the help. */
export function pressHelpKey(
  state: PlaygroundState,
  panel: Extract<PlaygroundPanel, { kind: 'help' }>,
  key: Key,
): PlaygroundStep {
  const rows = rowsByKey[key.type]
  if (rows === undefined) return [{ ...state, panel: undefined }, []]
  const layout = layoutPlayground(state)
  const top = Math.max(0, Math.min(helpLines(layout).length - layout.resultRows, panel.top + rows))
  return [{ ...state, panel: { ...panel, top } }, []]
}
