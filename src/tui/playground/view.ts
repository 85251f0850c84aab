import { cells, filled } from '../parts/cells.ts'
import { cutLine, type Line, lineWidth, span, wrap, wrapExact } from '../parts/spans.ts'
import { askedOf } from './ask.ts'
import { passageLines } from './body.ts'
import { equivalents } from './equivalents.ts'
import { type Frame, frameOf, showsPassages, sideWidth } from './frame.ts'
import { helpLines } from './help.ts'
import { offered } from './panel.ts'
import type { Panel, State } from './types.ts'

/** The whole screen but its last line. */
export interface Screen {
  readonly lines: readonly Line[]
  /** Where the person types, from the top left. */
  readonly cursor: { readonly x: number; readonly y: number } | undefined
}

const indent: Line = [span('  ')]

export function screenOf(state: State): Screen {
  const frame = frameOf(state)
  const { above, below, room, side, cursor, width } = frame
  const seen = bodyOf(state, frame).slice(0, room)
  const body = Array.from({ length: room }, (_, row): Line => {
    const line = cutLine(seen[row] ?? [], width)
    if (!side) return line
    const blanks = span(filled('', width - lineWidth(line)))
    return [...line, blanks, span(' │ ', 'dim'), ...cutLine(side[row] ?? [], sideWidth - 3)]
  })
  const lines = [...above, ...body, ...below].slice(0, Math.max(1, state.size.rows - 1))
  return { lines, cursor: cursor && cursor.y < lines.length ? cursor : undefined }
}

function bodyOf(state: State, frame: Frame): readonly Line[] {
  const { panel, answer, question } = state
  if (panel && !showsPassages(panel)) return panelLines(state, panel, frame)
  if (answer && answer.passages.length > 0) return passageLines(state, frame)
  if (answer) return wrap([span(nothingFound(state), 'dim')], frame.width, { first: indent, rest: indent })
  return question.text === '' ? begin(state, frame) : []
}

function begin({ base }: State, { width }: Frame): Line[] {
  if (!base) return []
  const about = base.description === '' ? [] : [span(base.description), span('\n\n')]
  const told = [...about, span('Type a question: passages are found while you type.', 'dim')]
  return wrap(told, width - 1, { first: indent, rest: indent })
}

function nothingFound({ base, settings: { filter, mode } }: State): string {
  const fact = `nothing found in ${base?.name}`
  if (filter) return `${fact}; f in the settings changes the filter`
  if (mode === 'lexical') return `${fact}; h in the settings finds related words too`
  return `${fact}; try other words, or fewer of them`
}

function panelLines(state: State, panel: Panel, frame: Frame): readonly Line[] {
  switch (panel.kind) {
    case 'bases':
      return baseLines(state, panel, frame)
    case 'copy':
      return copyLines(state, panel.at, frame)
    case 'help':
      return helpLines(frame).slice(panel.top)
    default:
      return []
  }
}

/** A line of a list from which one is chosen. */
function choice(name: string, about: string, { isChosen, wide }: { isChosen: boolean; wide: number }): Line {
  const tones = isChosen ? (['strong', 'accent'] as const) : []
  return [
    span(isChosen ? '› ' : '  ', 'accent'),
    span(filled(name, wide), ...tones),
    span(`  ${about}`, 'dim'),
  ]
}

function baseLines(state: State, panel: Extract<Panel, { kind: 'bases' }>, { room }: Frame): Line[] {
  const all = offered(state, panel)
  if (all.length === 0) return [[span('  no knowledge base is called so', 'dim')]]
  const wide = Math.max(...all.map(({ name }) => cells(name)))
  const at = Math.min(panel.at, all.length - 1)
  const top = Math.max(0, at - room + 1)
  return all
    .map(({ name, description }, row) => choice(name, description, { isChosen: row === at, wide }))
    .slice(top, top + room)
}

function copyLines(state: State, at: number, { width }: Frame): Line[] {
  const asked = askedOf(state)
  if (!asked) return []
  const all = equivalents(state, asked)
  return [
    ...all.map(({ letter, what }, row) =>
      choice(`${letter}  ${what}`, '', { isChosen: row === at, wide: 0 }),
    ),
    [],
    ...(all[at]?.text ?? '').split('\n').flatMap(line => wrapExact([span(line, 'code')], width - 1, indent)),
  ]
}
