import { formatCounted } from '../../cli/terminal/output.ts'
import { displayWidth, pad, truncate } from '../../cli/terminal/terminal-text.ts'
import type { Editor } from '../parts/editor.ts'
import { cutLine, type Line, lineWidth, type StyledSpan, span, wrap } from '../parts/spans.ts'
import { spinnerAt } from '../parts/spinner.ts'
import { type FieldLayout, layoutField } from '../parts/text-field.tsx'
import { equivalentCommand } from './equivalents.ts'
import { requestOf } from './request.ts'
import { settings } from './settings.ts'
import type { PlaygroundPanel, PlaygroundState } from './types.ts'

/** Minimum width of a screen to show the settings beside the passages; on narrower screens, they are above. */
const SIDE_LAYOUT_COLUMNS_MIN = 90
/** Width of the settings beside the passages. */
export const SIDE_COLUMNS = 27
/** Minimum height of a screen to show the equivalent command. */
const COMMAND_ROWS_MIN = 12
/** Minimum size of a screen to frame the field. */
const FRAMED_ROWS_MIN = 14
const FRAMED_COLUMNS_MIN = 24
const FIELD_LINES_MAX = 3
const NOTICE_LINES_MAX = 2
const SETTINGS_LINES_MAX = 3
/** Duration of a search after which a spinner is shown. */
const SPINNER_AFTER_MS = 150

/** The parts of the screen around the results, and the size of the results. */
export interface PlaygroundLayout {
  readonly header: Line
  readonly field: FieldLayout
  /** Lines above the results: settings and errors. */
  readonly above: readonly Line[]
  /** Lines below the results: the equivalent command, and a notice or the keys. */
  readonly below: readonly Line[]
  /** Number of rows for results. */
  readonly resultRows: number
  /** Number of columns for results. */
  readonly resultColumns: number
  /** Lines beside the results; undefined on a narrow screen, or if a panel replaces the results. */
  readonly side: readonly Line[] | undefined
  /** Position of the cursor, from the top left of the screen; undefined while letters are commands. */
  readonly cursor: { readonly x: number; readonly y: number } | undefined
}

export function layoutPlayground(state: PlaygroundState): PlaygroundLayout {
  const { columns, rows } = state.size
  const field = layoutInput(state)
  const isWide = columns >= SIDE_LAYOUT_COLUMNS_MIN
  const fit = (lines: readonly Line[]) => lines.map(line => cutLine(line, columns))
  const above = fit([...(isWide ? [] : settingsAbove(state)), statusLine(state)])
  const below = fit([...(rows < COMMAND_ROWS_MIN ? [] : commandLines(state)), ...footer(state)])
  const hasSide = isWide && showsPassages(state.panel)
  const y = field.cursor.y + 1
  return {
    header: cutLine(headLine(state), columns),
    field,
    above,
    below,
    // Ink needs the last row.
    resultRows: Math.max(0, rows - 2 - field.height - above.length - below.length),
    resultColumns: hasSide ? columns - SIDE_COLUMNS : columns,
    side: hasSide ? sideLines(state) : undefined,
    cursor: acceptsText(state) && y < rows - 1 ? { x: field.cursor.x, y } : undefined,
  }
}

/** Returns true if typed letters are text rather than commands. */
function acceptsText({ panel, isInSettings }: PlaygroundState): boolean {
  return panel ? panel.kind !== 'copy' && panel.kind !== 'help' : !isInSettings
}

/** Returns false if a panel replaces the passages. */
export function showsPassages(panel: PlaygroundPanel | undefined): boolean {
  return panel === undefined || panel.kind === 'filter' || panel.kind === 'limit'
}

function headLine(state: PlaygroundState): Line {
  const { base, target, size } = state
  const right = describeResult(state)
  const left: Line = [span(`  ${base?.name ?? 'playground'}`, 'strong'), span(`  ${target.workspace}`, 'dim')]
  const titleWidth = size.columns - displayWidth(right) - 2
  const title = cutLine(left, Math.max(1, titleWidth - 1))
  return [...title, span(pad('', titleWidth - lineWidth(title))), span(right, 'dim')]
}

function describeResult({ pending, results, nowMs, failedAttempts }: PlaygroundState): string {
  const waitedMs = pending ? nowMs - pending.startedMs : 0
  if (pending && failedAttempts === 0 && waitedMs > SPINNER_AFTER_MS) {
    const seconds = Math.floor(waitedMs / 1_000)
    return `${spinnerAt(nowMs)} searching${seconds > 0 ? ` ${seconds} s` : ''}`
  }
  return results ? `${formatCounted(results.passages.length, 'hit')} · ${results.tookMs} ms` : ''
}

/** Lays out the field for the question, or for the input of a panel. */
function layoutInput({ panel, question, base, size, settings }: PlaygroundState): FieldLayout {
  const isFramed = size.columns >= FRAMED_COLUMNS_MIN && size.rows >= FRAMED_ROWS_MIN
  const options = { columns: size.columns, isFramed, linesMax: FIELD_LINES_MAX }
  const field = (editor: Editor, title: string, placeholder: string) =>
    layoutField(editor, { ...options, title, placeholder })
  switch (panel?.kind) {
    case 'bases':
      return field(panel.editor, 'knowledge base', 'type to filter the list')
    case 'filter':
      return field(panel.editor, 'filter', 'lang=en year=1960, or JSON; empty for no filter')
    case 'limit':
      return field(panel.editor, 'limit', String(settings.limit))
    default:
      return field(question, '', base ? `ask ${base.name}` : '')
  }
}

/** Returns the error of the last request, or an empty line. */
function statusLine({ failure, failedAttempts, panel, nowMs }: PlaygroundState): Line {
  if (panel && 'problem' in panel && panel.problem !== '') return [span(`  ✗ ${panel.problem}`, 'bad')]
  if (failedAttempts > 0)
    return [
      span(`  ${spinnerAt(nowMs)} the runtime is unreachable, retrying`, 'warning'),
      span('; the question is kept', 'dim'),
    ]
  if (!failure) return []
  return [span('  ✗ ', 'bad'), span(failure.message), span(failure.code ? ` (${failure.code})` : '', 'dim')]
}

/** Returns the lines of the settings above the passages, for a narrow screen. */
function settingsAbove(state: PlaygroundState): Line[] {
  const { isInSettings, size } = state
  const items = settings.flatMap(({ letter, name, value }): Line[] => {
    if (!value) return []
    const label = `${name} ${truncate(value(state), Math.max(4, Math.floor(size.columns / 2)))}`
    return [isInSettings ? [span(letter, 'accent', 'strong'), span(` ${label}`)] : [span(label, 'dim')]]
  })
  return packItems(items, size.columns).slice(0, isInSettings ? SETTINGS_LINES_MAX : 1)
}

/** Packs items into lines, without breaking an item. */
function packItems(items: readonly Line[], columns: number): Line[] {
  const lines: StyledSpan[][] = []
  let usedWidth = columns
  for (const item of items) {
    const itemWidth = 2 + lineWidth(item)
    if (usedWidth + itemWidth > columns - 1 || lines.length === 0) {
      lines.push([])
      usedWidth = 0
    }
    lines.at(-1)!.push(span('  '), ...item)
    usedWidth += itemWidth
  }
  return lines
}

function sideLines(state: PlaygroundState): Line[] {
  const { isInSettings } = state
  const key = (letter: string) =>
    span(letter, ...(isInSettings ? (['accent', 'strong'] as const) : (['dim'] as const)))
  const [valued, others] = [settings.filter(({ value }) => value), settings.filter(({ value }) => !value)]
  const title = isInSettings
    ? [span('settings', 'accent', 'strong')]
    : [span('esc', 'dim'), span(' settings', 'dim')]
  return [
    title,
    [],
    ...valued.map(
      ({ letter, name, value }): Line => [key(letter), span(` ${pad(name, 8)}`, 'dim'), span(value!(state))],
    ),
    [],
    ...others.map(({ letter, name }): Line => [key(letter), span(` ${name}`, 'dim')]),
  ]
}

/** Returns the shell command that gives the same results. */
function commandLines(state: PlaygroundState): Line[] {
  const request = requestOf(state)
  return [[], request ? [span(`  ${equivalentCommand(state, request)}`, 'dim')] : []]
}

function footer(state: PlaygroundState): Line[] {
  const { notice, size } = state
  if (notice !== '')
    return wrap([span(notice)], size.columns - 1, { first: [span('  ')], rest: [span('  ')] }).slice(
      0,
      NOTICE_LINES_MAX,
    )
  const items = keyHints(state).map(([key, action]): Line => [span(key), span(` ${action}`, 'dim')])
  return packItems(items, size.columns).slice(0, state.isInSettings ? NOTICE_LINES_MAX : 1)
}

function keyHints({
  panel,
  isInSettings,
  isOpen,
  base,
  results,
}: PlaygroundState): readonly (readonly [string, string])[] {
  const opens = ['enter', isOpen ? 'closes' : 'opens'] as const
  const hasHits = results !== undefined && results.passages.length > 0
  switch (panel?.kind) {
    case 'bases':
      return [
        ['enter', 'applies'],
        ['up/down', 'choose'],
        ['esc', base ? 'back' : 'leaves'],
      ]
    case 'filter':
    case 'limit':
      return [
        ['enter', 'applies'],
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
  if (isInSettings)
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
