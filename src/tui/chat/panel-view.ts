import type { Highlight } from '../markdown/render.ts'
import { cells, filled } from '../parts/cells.ts'
import type { Paint } from '../parts/paint.ts'
import { type Size, sequences } from '../parts/screen.ts'
import { cutLine, type Line, span } from '../parts/spans.ts'
import { pageLines, panelRoom } from './panel.ts'
import type { ChoicePanel, Panel } from './types.ts'

/** A panel as what a terminal is sent to show it. */
export function panelScreen(panel: Panel, size: Size, paint: Paint, highlight?: Highlight): string {
  const lines = panelLines(panel, size, highlight).map(line => paint(cutLine(line, size.columns)))
  const drawn = lines.map(line => `${line}${sequences.eraseLine}`).join('\r\n')
  const { hold, release, top, eraseBelow } = sequences
  return hold + top + drawn + eraseBelow + release
}

/** All lines of the screen. */
export function panelLines(panel: Panel, size: Size, highlight?: Highlight): Line[] {
  const room = panelRoom(size)
  const body =
    panel.kind === 'text' ? pageLines(panel.page, size.columns, highlight) : choiceLines(panel, size)
  const top =
    panel.kind === 'text' ? panel.top : Math.max(0, Math.min(panel.at - room + 1, body.length - room))
  const seen = body.slice(top, top + room).map((line): Line => [span('  '), ...line])
  const blanks = Array.from({ length: Math.max(0, room - seen.length) }, (): Line => [])
  const share = body.length > room ? `${Math.min(top + room, body.length)} of ${body.length} lines` : ''
  const keys = keysOf(panel, size.columns - cells(share) - 6)
  const space = Math.max(2, size.columns - cells(keys) - cells(share) - 4)
  return [
    [span(`  ${panel.title}`, 'strong')],
    [],
    ...seen,
    ...blanks,
    [],
    [span(`  ${keys}${filled('', space)}${share}`, 'dim')],
  ]
}

/** The keys in the first words that there is room for. */
function keysOf(panel: Panel, width: number): string {
  const back = 'q goes back'
  const ways =
    panel.kind === 'text'
      ? [`up, down, page up, page down   ${back}`]
      : panel.purpose === 'kb'
        ? [`space marks   enter takes them   ${back}`, 'space marks, enter takes, q back']
        : [`enter takes it   ${back}`]
  return ways.find(words => cells(words) <= width) ?? (ways[1] || back)
}

function choiceLines({ items, at, purpose }: ChoicePanel, { columns }: Size): Line[] {
  if (items.length === 0) return [[span('there are none', 'dim')]]
  const widest = Math.max(...items.map(({ name }) => cells(name)))
  const wide = Math.min(widest, Math.max(12, Math.floor(columns / 2)))
  return items.map(({ name, about, isChosen }, row): Line => {
    const mark = purpose === 'kb' ? (isChosen ? '☑ ' : '☐ ') : isChosen ? '• ' : '  '
    const here = row === at
    return [
      span(here ? '› ' : '  ', 'accent'),
      span(mark, 'dim'),
      ...cutLine([span(filled(name, wide), ...(here ? (['strong'] as const) : []))], wide),
      span(`  ${about}`, 'dim'),
    ]
  })
}
