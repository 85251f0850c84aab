import { pretty } from '../../cli/chat/approve.ts'
import { namedImageLine } from '../../cli/chat/images.ts'
import { count } from '../../cli/terminal/output.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { unfinished } from '../markdown/blocks.ts'
import type { Highlight } from '../markdown/render.ts'
import { cells, filled } from '../parts/cells.ts'
import { laidOut } from '../parts/laid-out.ts'
import { cutLine, type Line, lineWidth, type Span, span, wrap, wrapExact } from '../parts/spans.ts'
import { spinnerAt } from '../parts/spinner.ts'
import { answers, wholeKey } from './approval.ts'
import { offered } from './completion.ts'
import { lasted } from './lasted.ts'
import { runningLine, saidLines } from './shown.ts'
import { placed } from './turn.ts'
import type { Pending, State, Turn } from './types.ts'

/** The part of the screen that changes; it is always smaller than the screen. */
export interface Live {
  readonly lines: readonly Line[]
  /** Where the person types, from the top left of these lines. */
  readonly cursor: { readonly x: number; readonly y: number } | undefined
}

/** Screens that are narrower have no frame around the field. */
const framedMin = 24
/** Screens that are lower have the field alone. */
const footedMin = 6
const askedLines = 6

/** The lines that change, as high as the screen lets them be. */
export function liveOf(state: State, highlight?: Highlight): Live {
  const { columns, rows } = state.size
  const room = Math.max(1, rows - 1)
  const asked = state.turn?.pending[0]
  const field = asked ? approvalOf(state, asked) : fieldOf(state, Math.max(1, Math.floor(room / 3)))
  const below = rows < footedMin ? [] : belowField(state)
  const left = Math.max(0, room - field.lines.length - below.length - 1)
  const above = left === 0 ? [] : aboveField(state, highlight).slice(-left)
  const gap: Line[] = rows < footedMin ? [] : [[]]
  const lines = [...above, ...gap, ...field.lines, ...below].map(line => cutLine(line, columns))
  const shown = lines.slice(-room)
  const y = field.cursor.y + above.length + gap.length - (lines.length - shown.length)
  return {
    lines: shown,
    cursor: y >= 0 ? { x: Math.min(field.cursor.x, columns - 1), y } : undefined,
  }
}

/** What goes on: the block that is not finished, tools that run, and what is to be known. */
function aboveField(state: State, highlight: Highlight | undefined): Line[] {
  const { turn, nowMs, size, about } = state
  const look = { columns: size.columns, agent: about.agent, highlight }
  const known = [...fileTaskLines(state), ...noticeLines(state), ...imagesLines(state)]
  if (!turn) return known
  const open = placed(turn, unfinished(turn.reader)).flatMap(one =>
    saidLines({ ...one, isAside: false }, look),
  )
  const running = turn.running.flatMap(run =>
    runningLine(run, `${spinnerAt(nowMs)} ${lasted(nowMs - run.sinceMs)}`, look),
  )
  const isWaiting = turn.text === '' && running.length === 0
  const waiting = turn.isReconnecting ? reconnectingLines : isWaiting ? waitingLines : () => []
  return [...open, ...running, ...waiting(state, turn), ...known]
}

function waitingLines({ nowMs, about }: State, { sinceMs, thought }: Turn): Line[] {
  const seconds = Math.floor((nowMs - sinceMs) / 1_000)
  const since = seconds > 0 ? `  ${seconds} s` : ''
  return [
    [],
    [
      span(
        `  ${spinnerAt(nowMs)} ${plainLine(about.agent)} is ${thought ? 'thinking' : 'working'}${since}`,
        'dim',
      ),
    ],
  ]
}

function reconnectingLines({ nowMs }: State): Line[] {
  return [[], [span(`  ${spinnerAt(nowMs)} reconnecting…`, 'dim')]]
}

function fileTaskLines({ fileTask, nowMs, size }: State): Line[] {
  if (fileTask === undefined) return []
  const wide = { first: [span('  ')], rest: [span('    ')] }
  return [[], ...wrap([span(`${spinnerAt(nowMs)} ${fileTask}…`, 'dim')], size.columns, wide)]
}

/** Images that are sent with the next question. */
function imagesLines({ images, size }: State): Line[] {
  if (images.length === 0) return []
  const wide = { first: [span('  ')], rest: [span('  ')] }
  return [[], ...wrap([span(images.map(namedImageLine).join(' '), 'accent')], size.columns, wide)]
}

function noticeLines({ notice, away, size, nowMs }: State): Line[] {
  const wide = { first: [span('  ')], rest: [span('  ')] }
  const told = notice === '' ? [] : wrap([span(notice, 'dim')], size.columns, wide)
  if (!away) return told.length === 0 ? [] : [[], ...told]
  const kept = away.waiting ? '; your message is kept, and sent when it is back' : ''
  const words = `${spinnerAt(nowMs)} the runtime is away, trying again${kept}`
  return [[], ...wrap([span(words, 'bad')], size.columns, wide), ...told]
}

interface Field {
  readonly lines: readonly Line[]
  readonly cursor: { readonly x: number; readonly y: number }
}

function fieldOf(state: State, linesMax: number): Field {
  const { columns, rows } = state.size
  const { editor, search, replaces } = state.input
  const isFramed = columns >= framedMin && rows >= footedMin
  const width = Math.max(1, columns - (isFramed ? 4 : 2))
  const { lines, x, y } = laidOut(editor, width)
  const top = Math.max(0, Math.min(y - linesMax + 1, lines.length - linesMax))
  const seen = lines.slice(top, top + linesMax)
  const empty = editor.text === '' && !search ? hint(state, width) : undefined
  const body = empty ? [empty] : seen
  if (!isFramed)
    return {
      lines: body.map((line, at): Line => [span(at === 0 ? '> ' : '  '), ...line]),
      cursor: { x: x + 2, y: y - top },
    }
  const title = search ? ` search: ${search.query} ` : replaces ? ' instead of the last question ' : ''
  const rule = '─'.repeat(Math.max(0, columns - 2 - cells(title)))
  const side = span('│', 'dim')
  return {
    lines: [
      [span('╭', 'dim'), span(title, 'accent'), span(`${rule}╮`, 'dim')],
      ...body.map(
        (line): Line => [
          side,
          span(' '),
          ...line,
          span(' '.repeat(Math.max(0, width - lineWidth(line)) + 1)),
          side,
        ],
      ),
      [span(`╰${'─'.repeat(Math.max(0, columns - 2))}╯`, 'dim')],
    ],
    cursor: { x: x + 2, y: y - top + 1 },
  }
}

function hint({ last, about, turn }: State, width: number): Line {
  const isNew = last.question === undefined && !turn
  return isNew
    ? cutLine([span(`ask ${plainLine(about.agent)}, or type / for what else there is`, 'dim')], width)
    : []
}

/** The words that a command may be, or who answers from what. */
function belowField(state: State): Line[] {
  const { input, turn, size } = state
  const { words } = input.completion?.offer ?? (turn?.pending.length ? { words: [] } : offered(state))
  if (words.length === 0) return [footer(state)]
  return [wordsLine(words, input.completion?.at, size.columns)]
}

/** Words beside each other, from the one on that lets the chosen one be seen. */
function wordsLine(words: readonly string[], chosen: number | undefined, columns: number): Line {
  const from = (first: number): Span[] => [
    span(first > 0 ? '… ' : '  '),
    ...words
      .slice(first)
      .flatMap((word, at): Span[] => [span(word, first + at === chosen ? 'inverse' : 'dim'), span('  ')]),
  ]
  const isSeen = (first: number) =>
    lineWidth(from(first).slice(0, 2 * ((chosen ?? 0) - first + 1) + 1)) < columns
  let first = 0
  while (chosen !== undefined && first < chosen && !isSeen(first)) first++
  return from(first)
}

function footer({ about, spent, context, size, last, turn, fileTask, model: known }: State): Line {
  const model = known === null ? 'no model' : (known ?? '')
  const bases = about.knowledgeBases
  const from =
    bases.length === 0
      ? 'all knowledge bases'
      : bases.length > 2
        ? `${bases.length} knowledge bases`
        : plainLine(bases.join(', '))
  const tokens = spent.tokens > 0 ? `${count(spent.tokens)} tokens` : ''
  const share = context ? `ctx ${Math.min(100, Math.ceil((100 * context.tokens) / context.window))}%` : ''
  const cost = spent.costUsd === undefined ? '' : `$${spent.costUsd.toFixed(spent.costUsd < 0.1 ? 4 : 2)}`
  const isBusy = turn !== undefined || fileTask !== undefined
  const keys = isBusy ? 'ctrl+c stops' : last.citations.length > 0 ? '/help  alt+1 opens a source' : '/help'
  // What a person knows anyhow gives way first.
  const ways = [
    [[about.agent, from, model, tokens, share, cost], keys],
    [[about.agent, from, model, tokens, share, cost], isBusy ? keys : '/help'],
    [[from, model, tokens, share, cost], ''],
    [[model, tokens, share, cost], ''],
    [[tokens, share, cost], ''],
    [[share, cost], ''],
  ] as const
  for (const [told, help] of ways) {
    const left = `  ${told.filter(text => text !== '').join(' · ')}`
    const space = size.columns - cells(left) - cells(help) - 1
    if (space >= (help === '' ? 0 : 2))
      return [span(help === '' ? left : filled(left, cells(left) + space) + help, 'dim')]
  }
  return []
}

/** What a tool that waits would do, and how one says whether it may. */
function approvalOf({ size, about, nowMs }: State, { call, expiresMs }: Pending): Field {
  const width = Math.max(8, Math.min(100, size.columns - 4))
  const left = Math.max(0, Math.ceil((expiresMs - nowMs) / 1_000))
  const given = pretty(call.arguments)
    .split('\n')
    .flatMap(line => wrapExact([span(plainLine(line) === '' ? '' : line, 'code')], width - 2))
  const rest = given.length - askedLines + 1
  const more: Line = [
    span(`… ${rest} more lines  `, 'dim'),
    span(`[${wholeKey}]`, 'strong'),
    span(' shows all'),
  ]
  const shown = rest > 1 ? [...given.slice(0, askedLines - 1), more] : given
  const choices = answers.map(({ key, says }): Line => [span(`[${key}]`, 'strong'), span(` ${says}`)])
  const time: Line = [span(`${left} s left`, 'dim')]
  const inRow = [...choices, time].flatMap((line, at) => (at > 0 ? [span('   '), ...line] : line))
  const asks = `${plainLine(about.agent)} wants to use ${plainLine(call.name)}`
  const lines = [
    ...wrap([span(asks, 'strong')], width, { first: [span('? ', 'accent')], rest: [span('  ')] }),
    ...shown.map((line): Line => [span('  '), ...line]),
    [],
    ...(lineWidth(inRow) <= width ? [inRow] : [...choices, time]),
  ].map((line): Line => (line.length === 0 ? [] : [span('  '), ...line]))
  return { lines, cursor: { x: lineWidth(lines.at(-1)!) + 1, y: lines.length - 1 } }
}
