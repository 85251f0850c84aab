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
    return wrap([span(describeNoResults(state), 'dim')], layout.width, { first: indent, rest: indent })
  return question.text === '' ? introLines(state, layout) : []
}

function introLines({ base }: PlaygroundState, { width }: PlaygroundLayout): Line[] {
  if (!base) return []
  const about = base.description === '' ? [] : [span(base.description), span('\n\n')]
  const intro = [...about, span('Type a question. Results appear while you type.', 'dim')]
  return wrap(intro, width - 1, { first: indent, rest: indent })
}

function describeNoResults({ base, settings: { filter, mode } }: PlaygroundState): string {
  const fact = `nothing found in ${base?.name}`
  if (filter) return `${fact}; f in the settings changes the filter`
  if (mode === 'lexical') return `${fact}; h in the settings also finds related words`
  return `${fact}; try other words, or fewer of them`
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
      return copyLines(state, panel.at, layout)
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
  { isChosen, wide }: { isChosen: boolean; wide: number },
): Line {
  const tones = isChosen ? (['strong', 'accent'] as const) : []
  return [
    span(isChosen ? '› ' : '  ', 'accent'),
    span(pad(name, wide), ...tones),
    span(`  ${description}`, 'dim'),
  ]
}

function baseLines(
  state: PlaygroundState,
  panel: Extract<PlaygroundPanel, { kind: 'bases' }>,
  { room }: PlaygroundLayout,
): Line[] {
  const all = matchingBases(state, panel)
  if (all.length === 0) return [[span('  no matching knowledge base', 'dim')]]
  const wide = Math.max(...all.map(({ name }) => displayWidth(name)))
  const at = Math.min(panel.at, all.length - 1)
  const top = Math.max(0, at - room + 1)
  return all
    .map(({ name, description }, row) => choiceLine(name, description, { isChosen: row === at, wide }))
    .slice(top, top + room)
}

function copyLines(state: PlaygroundState, at: number, { width }: PlaygroundLayout): Line[] {
  const request = requestOf(state)
  if (!request) return []
  const all = equivalents(state, request)
  return [
    ...all.map(({ letter, name }, row) =>
      choiceLine(`${letter}  ${name}`, '', { isChosen: row === at, wide: 0 }),
    ),
    [],
    ...(all[at]?.text ?? '').split('\n').flatMap(line => wrapExact([span(line, 'code')], width - 1, indent)),
  ]
}
