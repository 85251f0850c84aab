import { foundCard } from '../../cli/chat/found.ts'
import { foundNotWritten, modelSetupLines } from '../../cli/chat/no-model.ts'
import { sourceOf } from '../../cli/chat/sources.ts'
import type { Passage } from '../../cli/passages/hits.ts'
import { count, counted } from '../../cli/terminal/output.ts'
import { plain, plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Block } from '../markdown/blocks.ts'
import { type Highlight, renderBlock } from '../markdown/render.ts'
import { cells, cut, filled } from '../parts/cells.ts'
import { cutLine, type Line, lineWidth, type Span, span, wrap } from '../parts/spans.ts'
import { commands } from './commands.ts'
import { lasted } from './lasted.ts'
import type { Printed, ToolRun } from './types.ts'

/** How wide the screen is, and who speaks on it. */
export interface Look {
  readonly columns: number
  readonly agent: string
  readonly highlight?: Highlight
}

/** Longer lines are hard to read. */
const textMax = 100
/** On a narrower screen a name stands above what is said, else beside it. */
const besideMin = 60
const nameMax = 12

interface Layout {
  readonly isBeside: boolean
  /** Blanks before what is said. */
  readonly indent: Span
  readonly width: number
}

function layoutOf({ columns, agent }: Look): Layout {
  const isBeside = columns >= besideMin
  const indent = isBeside ? Math.min(nameMax, Math.max(3, cells(agent))) + 3 : 2
  return {
    isBeside,
    indent: span(' '.repeat(indent)),
    width: Math.max(8, Math.min(textMax, columns - indent - 1)),
  }
}

/** Lines of what stays on the screen. */
export function shownLines(printed: Printed, look: Look): Line[] {
  const layout = layoutOf(look)
  const inset = (lines: readonly Line[]): Line[] =>
    lines.map(line => (line.length === 0 ? [] : [layout.indent, ...line]))
  switch (printed.kind) {
    case 'you': {
      const { text, images = [] } = printed
      const lines = [
        ...wrap([span(plain(text))], layout.width),
        ...images.flatMap(image => wrap([span(plainLine(image), 'dim')], layout.width)),
      ]
      return [[], ...named('you', ['accent'], lines, layout)]
    }
    case 'said':
      return saidLines(printed, look)
    case 'tool':
      return inset([toolLine(printed.run, doneWith(printed.run), layout.width)])
    case 'sources':
      return [
        [],
        ...printed.citations.flatMap(one => {
          const mark = span(`[${one.number}] `, 'cite')
          return inset(
            wrap([span(sourceOf(one), 'dim')], layout.width, {
              first: [mark],
              rest: [span(' '.repeat(mark.text.length))],
            }),
          )
        }),
      ]
    case 'found':
      return [[], ...inset(foundLines(printed, look.agent, layout.width))]
    case 'note': {
      const sign = { dim: '', good: '✓ ', bad: '✗ ' }[printed.tone]
      const tone = printed.tone
      return inset(wrap([span(sign + plain(printed.text), tone)], layout.width))
    }
    case 'help':
      return [[], ...inset(helpLines(layout.width))]
  }
}

/** Lines under a name. */
function named(
  name: string,
  tones: Span['tones'],
  lines: readonly Line[],
  { isBeside, indent }: Layout,
): Line[] {
  const label: Span = { text: isBeside ? ` ${cut(name, nameMax)}` : ` ${name}`, tones }
  const inset = lines.map((line): Line => (line.length === 0 ? [] : [indent, ...line]))
  if (!isBeside) return [[label], ...inset]
  const [first = [], ...rest] = lines
  return [
    [{ ...label, text: filled(label.text, indent.text.length) }, ...first],
    ...rest.map((line): Line => (line.length === 0 ? [] : [indent, ...line])),
  ]
}

/** A block of an answer; the first one under the name of the agent. */
export function saidLines(
  { block, isFirst, isAside }: { block: Block; isFirst: boolean; isAside: boolean },
  look: Look,
): Line[] {
  const layout = layoutOf(look)
  const made = renderBlock(block, layout.width, look.highlight)
  const lines = isAside ? made.map(line => line.map(({ text }) => span(text, 'dim'))) : made
  if (isFirst) return [[], ...named(plainLine(look.agent), ['strong'], lines, layout)]
  const inset = lines.map((line): Line => (line.length === 0 ? [] : [layout.indent, ...line]))
  return block.gap ? [[], ...inset] : inset
}

/** A tool that runs, where what it did will stand. */
export function runningLine(run: ToolRun, since: string, look: Look): Line[] {
  const { indent, width } = layoutOf(look)
  return [[indent, ...toolLine(run, [span(since, 'dim')], width)]]
}

/** A tool, what it was asked, and how it went; what it was asked gives way. */
function toolLine({ number, call }: ToolRun, how: Line, width: number): Line {
  const name: Line = [span(`⚙${number} `, 'dim'), span(plainLine(call.name))]
  const asked = gistOf(call.arguments)
  const room = Math.min(48, width - lineWidth(name) - lineWidth(how) - 6)
  const told = asked !== '' && room > 4 ? [span(`  “${cut(asked, room)}”`, 'dim')] : []
  return cutLine([...name, ...told, span('  '), ...how], width)
}

function doneWith({ result }: ToolRun): Line {
  return result ? [outcomeOf(result), span(`  ${lasted(result.durationMs)}`, 'dim')] : []
}

/** The argument that says most: the question, the address, else the first text. */
export function gistOf(json: string): string {
  try {
    const given = JSON.parse(json) as Record<string, unknown>
    const texts = Object.entries(given).filter(([, value]) => typeof value === 'string')
    const [, told] = texts.find(([name]) => /^(?:query|text|url|question|q)$/.test(name)) ?? texts[0] ?? []
    return told === undefined ? '' : plainLine(String(told))
  } catch {
    return plainLine(json)
  }
}

function outcomeOf({ content, outcome }: NonNullable<ToolRun['result']>): Span {
  if (outcome === 'denied') return span('not allowed', 'bad')
  if (outcome === 'failure') return span(cut(plainLine(content), 60), 'bad')
  try {
    const given = JSON.parse(content) as Record<string, unknown>
    if (Array.isArray(given.results)) return span(counted(given.results.length, 'passage'), 'dim')
    const [name, list] = Object.entries(given).find(([, value]) => Array.isArray(value)) ?? []
    if (name !== undefined && Array.isArray(list))
      return span(`${count(list.length)} ${plainLine(name)}`, 'dim')
  } catch {
    // Tools may answer in words.
  }
  return span(counted(content.length, 'character'), 'dim')
}

function foundLines(
  { question, passages, hasWays }: Extract<Printed, { kind: 'found' }>,
  agent: string,
  width: number,
): Line[] {
  const ways = hasWays ? modelSetupLines(agent) : []
  const told = ways.flatMap(line => wrap([span(line, 'dim')], width))
  const gap: Line[] = hasWays ? [[]] : []
  if (passages.length === 0) return [...told, ...gap, [span('nothing was found either', 'dim')]]
  return [
    ...told,
    ...gap,
    ...wrap([span(foundNotWritten, 'strong')], width),
    ...passages.flatMap(passage => [[], ...foundCardLines(passage, question, width)]),
    [],
  ]
}

function foundCardLines(passage: Passage, question: string, width: number): Line[] {
  const mark = span(`[${passage.number}] `, 'cite')
  const hang = span(' '.repeat(mark.text.length))
  const { title, lines, place } = foundCard(passage, question, width - hang.text.length)
  return [
    ...wrap([span(title, 'strong')], width, { first: [mark], rest: [hang] }),
    ...lines.map((line): Line => cutLine([hang, span(line)], width)),
    ...(place === '' ? [] : [cutLine([hang, span(place, 'dim')], width)]),
  ]
}

const keysHelp: readonly (readonly [string, string])[] = [
  ['alt+enter, ctrl+j', 'a further line; so does \\ before enter'],
  ['up, down, ctrl+r', 'what was sent before'],
  ['alt+1 … alt+9', 'open a source'],
  ['alt+left, alt+right', 'previous or next version of the last question that has several'],
  ['ctrl+c', 'stop the answer; twice, leave'],
]

function helpLines(width: number): Line[] {
  const rows = [
    ...commands.map(({ name, takes, does }) => [`/${name}${takes ? ` ${takes}` : ''}`, does] as const),
    ...keysHelp,
  ]
  const wide = Math.max(...rows.map(([name]) => name.length)) + 2
  return rows.flatMap(([name, does]) =>
    wide * 2 > width
      ? [[span(name, 'strong')], ...wrap([span(does)], width, { first: [span('  ')], rest: [span('  ')] })]
      : wrap([span(does)], width, {
          first: [span(filled(name, wide), 'strong')],
          rest: [span(' '.repeat(wide))],
        }),
  )
}
