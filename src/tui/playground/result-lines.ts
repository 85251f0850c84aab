import { displayWidth, pad } from '../../cli/terminal/terminal-text.ts'
import { type Line, span, wrap, wrapExact } from '../parts/spans.ts'
import { equivalents } from './equivalents.ts'
import { helpLines } from './help.ts'
import { type PlaygroundLayout, showsPassages } from './layout.ts'
import { matchingBases } from './panel.ts'
import { passageLines } from './passages.ts'
import { requestOf } from './request.ts'
import type { PlaygroundPanel, PlaygroundState } from './types.ts'

const indent: Line = [span('  ')]

/** Returns the lines of the results, or of the panel that replaces them. */
export function resultLines(state: PlaygroundState, layout: PlaygroundLayout): readonly Line[] {
  const { panel, results, question } = state
  if (panel && !showsPassages(panel)) return panelLines(state, panel, layout)
  if (results && results.passages.length > 0) return passageLines(state, layout)
  if (results)
    return wrap([span(describeNoResults(state), 'dim')], layout.resultColumns, {
      first: indent,
      rest: indent,
    })
  return question.text === '' ? introLines(state, layout) : []
}

function introLines({ base }: PlaygroundState, { resultColumns }: PlaygroundLayout): Line[] {
  if (!base) return []
  const about = base.description === '' ? [] : [span(base.description), span('\n\n')]
  const intro = [...about, span('Type a question. Results appear while you type.', 'dim')]
  return wrap(intro, resultColumns - 1, { first: indent, rest: indent })
}

function describeNoResults({ base, settings: { filter, mode } }: PlaygroundState): string {
  const message = `nothing found in ${base?.name}`
  if (filter) return `${message}; press f in the settings to change the filter`
  if (mode === 'lexical') return `${message}; press h in the settings to find related words`
  return `${message}; try other words, or fewer of them`
}

function panelLines(
  state: PlaygroundState,
  panel: PlaygroundPanel,
  layout: PlaygroundLayout,
): readonly Line[] {
  switch (panel.kind) {
    case 'bases':
      return baseLines(state, panel, layout)
    case 'copy':
      return copyLines(state, panel.selectedIndex, layout)
    case 'help':
      return helpLines(layout).slice(panel.top)
    default:
      return []
  }
}

/** Returns a line of a list to choose from. */
function choiceLine(
  name: string,
  description: string,
  { isChosen, nameWidth }: { isChosen: boolean; nameWidth: number },
): Line {
  const tones = isChosen ? (['strong', 'accent'] as const) : []
  return [
    span(isChosen ? '› ' : '  ', 'accent'),
    span(pad(name, nameWidth), ...tones),
    span(`  ${description}`, 'dim'),
  ]
}

function baseLines(
  state: PlaygroundState,
  panel: Extract<PlaygroundPanel, { kind: 'bases' }>,
  { resultRows }: PlaygroundLayout,
): Line[] {
  const items = matchingBases(state, panel)
  if (items.length === 0) return [[span('  no matching knowledge base', 'dim')]]
  const nameWidth = Math.max(...items.map(({ name }) => displayWidth(name)))
  const selectedIndex = Math.min(panel.selectedIndex, items.length - 1)
  const top = Math.max(0, selectedIndex - resultRows + 1)
  return items
    .map(({ name, description }, row) =>
      choiceLine(name, description, { isChosen: row === selectedIndex, nameWidth }),
    )
    .slice(top, top + resultRows)
}

function copyLines(
  state: PlaygroundState,
  selectedIndex: number,
  { resultColumns }: PlaygroundLayout,
): Line[] {
  const request = requestOf(state)
  if (!request) return []
  const items = equivalents(state, request)
  return [
    ...items.map(({ letter, name }, row) =>
      choiceLine(`${letter}  ${name}`, '', { isChosen: row === selectedIndex, nameWidth: 0 }),
    ),
    [],
    ...(items[selectedIndex]?.text ?? '')
      .split('\n')
      .flatMap(line => wrapExact([span(line, 'code')], resultColumns - 1, indent)),
  ]
}
