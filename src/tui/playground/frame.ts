import { counted } from '../../cli/terminal/output.ts'
import { cells, cut, filled } from '../parts/cells.ts'
import { cutLine, type Line, lineWidth, type Span, span, wrap } from '../parts/spans.ts'
import { spinnerAt } from '../parts/spinner.ts'
import { askedOf } from './ask.ts'
import { wbLine } from './equivalents.ts'
import { type Field, fieldOf } from './field.ts'
import { settings } from './settings.ts'
import type { Panel, State } from './types.ts'

/** From so many columns on, the settings stand beside the passages. */
const sideFrom = 90
export const sideWidth = 27
/** Screens that are lower do without the command line below. */
const commandRows = 12
const fieldLines = 3
const noticeLines = 2
const settingsLines = 3
/** Answers that come sooner need no sign that they are on their way. */
const patienceMs = 150

/** What stands around the passages. */
export interface Frame {
  readonly above: readonly Line[]
  readonly below: readonly Line[]
  /** Lines of the screen that are left between them. */
  readonly room: number
  /** Columns of what stands there. */
  readonly width: number
  /** Beside it; none on a narrow screen, or where something else than passages is shown. */
  readonly side: readonly Line[] | undefined
  /** Where the person writes, from the top left; undefined where letters are no text. */
  readonly cursor: { readonly x: number; readonly y: number } | undefined
}

export function frameOf(state: State): Frame {
  const { columns, rows } = state.size
  const field = fieldShown(state)
  const isWide = columns >= sideFrom
  const head = headLine(state)
  const above = [head, ...field.lines, ...(isWide ? [] : settingsShort(state)), statusLine(state)].map(line =>
    cutLine(line, columns),
  )
  const below = [...(rows < commandRows ? [] : commandLines(state)), ...footer(state)].map(line =>
    cutLine(line, columns),
  )
  const hasSide = isWide && showsPassages(state.panel)
  return {
    above,
    below,
    // The last line is where the cursor comes to stand.
    room: Math.max(0, rows - 1 - above.length - below.length),
    width: hasSide ? columns - sideWidth : columns,
    side: hasSide ? sideLines(state) : undefined,
    cursor: isWritten(state)
      ? { x: Math.min(field.cursor.x, columns - 1), y: field.cursor.y + 1 }
      : undefined,
  }
}

/** True while letters are text. */
function isWritten({ panel, isSetting }: State): boolean {
  return panel ? panel.kind !== 'copy' && panel.kind !== 'help' : !isSetting
}

/** False where something else stands in place of the passages. */
export function showsPassages(panel: Panel | undefined): boolean {
  return panel === undefined || panel.kind === 'filter' || panel.kind === 'limit'
}

/** A sign that moves with time. */
function headLine(state: State): Line {
  const { base, about, size } = state
  const right = resultShown(state)
  const left: Line = [span(`  ${base?.name ?? 'playground'}`, 'strong'), span(`  ${about.workspace}`, 'dim')]
  const room = size.columns - cells(right) - 2
  const shown = cutLine(left, Math.max(1, room - 1))
  return [...shown, span(filled('', room - lineWidth(shown))), span(right, 'dim')]
}

function resultShown({ asking, answer, nowMs, tries }: State): string {
  const waitedMs = asking ? nowMs - asking.sinceMs : 0
  if (asking && tries === 0 && waitedMs > patienceMs) {
    const seconds = Math.floor(waitedMs / 1_000)
    return `${spinnerAt(nowMs)} searching${seconds > 0 ? ` ${seconds} s` : ''}`
  }
  return answer ? `${counted(answer.passages.length, 'hit')} · ${answer.tookMs} ms` : ''
}

/** The field that is written in: the question, or what stands in its place. */
function fieldShown(state: State): Field {
  const { panel, question, base, size } = state
  const look = { ...size, linesMax: fieldLines }
  switch (panel?.kind) {
    case 'bases':
      return fieldOf(panel.editor, { ...look, title: 'knowledge base', hint: 'type to find one' })
    case 'filter':
      return fieldOf(panel.editor, {
        ...look,
        title: 'filter',
        hint: 'lang=en year=1960, or JSON; empty is none',
      })
    case 'limit':
      return fieldOf(panel.editor, { ...look, title: 'limit', hint: String(state.settings.limit) })
    default:
      return fieldOf(question, { ...look, title: '', hint: base ? `ask ${base.name}` : '' })
  }
}

/** One line of what is wrong, or nothing. */
function statusLine({ failure, tries, panel, nowMs }: State): Line {
  if (panel && 'problem' in panel && panel.problem !== '') return [span(`  ✗ ${panel.problem}`, 'bad')]
  if (tries > 0)
    return [
      span(`  ${spinnerAt(nowMs)} the runtime is away, trying again`, 'bad'),
      span('; the question is kept', 'dim'),
    ]
  if (!failure) return []
  return [span('  ✗ ', 'bad'), span(failure.message), span(failure.code ? ` (${failure.code})` : '', 'dim')]
}

/** The settings above the passages, where there is no room beside them. */
function settingsShort(state: State): Line[] {
  const { isSetting, size } = state
  const items = settings.flatMap(({ letter, name, value }): Line[] => {
    if (!value) return []
    const label = `${name} ${cut(value(state), Math.max(4, Math.floor(size.columns / 2)))}`
    return [isSetting ? [span(letter, 'accent', 'strong'), span(` ${label}`)] : [span(label, 'dim')]]
  })
  return packed(items, size.columns).slice(0, isSetting ? settingsLines : 1)
}

/** Items in lines of a width, none of them broken. */
function packed(items: readonly Line[], columns: number): Line[] {
  const lines: Span[][] = []
  let used = columns
  for (const item of items) {
    const more = 2 + lineWidth(item)
    if (used + more > columns - 1 || lines.length === 0) {
      lines.push([])
      used = 0
    }
    lines.at(-1)!.push(span('  '), ...item)
    used += more
  }
  return lines
}

function sideLines(state: State): Line[] {
  const { isSetting } = state
  const key = (letter: string) =>
    span(letter, ...(isSetting ? (['accent', 'strong'] as const) : (['dim'] as const)))
  const [valued, others] = [settings.filter(({ value }) => value), settings.filter(({ value }) => !value)]
  const title = isSetting
    ? [span('settings', 'accent', 'strong')]
    : [span('esc', 'dim'), span(' settings', 'dim')]
  return [
    title,
    [],
    ...valued.map(
      ({ letter, name, value }): Line => [
        key(letter),
        span(` ${filled(name, 8)}`, 'dim'),
        span(value!(state)),
      ],
    ),
    [],
    ...others.map(({ letter, name }): Line => [key(letter), span(` ${name}`, 'dim')]),
  ]
}

/** What finds the same from a shell. */
function commandLines(state: State): Line[] {
  const asked = askedOf(state)
  return [[], asked ? [span(`  ${wbLine(state, asked)}`, 'dim')] : []]
}

function footer(state: State): Line[] {
  const { notice, size } = state
  if (notice !== '')
    return wrap([span(notice)], size.columns - 1, { first: [span('  ')], rest: [span('  ')] }).slice(
      0,
      noticeLines,
    )
  const items = keysOf(state).map(([key, does]): Line => [span(key), span(` ${does}`, 'dim')])
  return packed(items, size.columns).slice(0, state.isSetting ? noticeLines : 1)
}

function keysOf({ panel, isSetting, isOpen, base, answer }: State): readonly (readonly [string, string])[] {
  const opens = ['enter', isOpen ? 'closes' : 'opens'] as const
  const hasHits = answer !== undefined && answer.passages.length > 0
  switch (panel?.kind) {
    case 'bases':
      return [
        ['enter', 'takes it'],
        ['up/down', 'choose'],
        ['esc', base ? 'back' : 'leaves'],
      ]
    case 'filter':
    case 'limit':
      return [
        ['enter', 'takes it'],
        ['esc', 'back'],
      ]
    case 'copy':
      return [
        ['enter', 'copies'],
        ['up/down', 'choose'],
        ['esc', 'back'],
      ]
    case 'help':
      return [
        ['up/down', 'move'],
        ['other keys', 'back'],
      ]
  }
  const hits = hasHits ? [opens, ['up/down', 'choose'] as const] : []
  if (isSetting)
    return [
      ['esc', 'question'],
      ['left/right', 'weight'],
      ['c', 'copy'],
      ['?', 'help'],
      ...hits,
      ['q', 'quit'],
    ]
  return [['esc', 'settings'], ['tab', 'base'], ...hits, ['ctrl+c', 'leaves']]
}
