import { citationSource } from '../../cli/chat/citation-source.ts'
import { modelSetupLines, passagesHeading } from '../../cli/chat/model-setup.ts'
import { summarizePassage } from '../../cli/chat/passage-summary.ts'
import type { Passage } from '../../cli/passages/find-passages.ts'
import { formatCount, formatCounted } from '../../cli/terminal/output.ts'
import { displayWidth, pad, plain, plainLine, truncate } from '../../cli/terminal/terminal-text.ts'
import type { Citation } from '../../contract/chat.ts'
import type { Block } from '../markdown/blocks.ts'
import { type Highlight, renderBlock } from '../markdown/render.ts'
import { formatPreciseDuration } from '../parts/format-precise-duration.ts'
import { cutLine, type Line, lineWidth, type StyledSpan, span, wrap } from '../parts/spans.ts'
import { commands } from './commands.ts'
import type { ToolRun, TranscriptPart } from './types.ts'

/** Layout options of the transcript. `columns` is the width of the screen. */
export interface TranscriptOptions {
  readonly columns: number
  readonly agent: string
  readonly highlight?: Highlight
}

/** Maximum width of text, because longer lines are hard to read. */
const TEXT_CELLS_MAX = 100
/** Minimum screen width to show names to the left of messages; on narrower screens, they are above. */
const SIDE_NAMES_COLUMNS_MIN = 60
const NAME_CELLS_MAX = 12

interface TranscriptLayout {
  readonly hasSideNames: boolean
  /** Spaces before a message. */
  readonly indent: StyledSpan
  readonly width: number
}

function layoutOf({ columns, agent }: TranscriptOptions): TranscriptLayout {
  const hasSideNames = columns >= SIDE_NAMES_COLUMNS_MIN
  const indent = hasSideNames ? Math.min(NAME_CELLS_MAX, Math.max(3, displayWidth(agent))) + 3 : 2
  return {
    hasSideNames,
    indent: span(' '.repeat(indent)),
    width: Math.max(8, Math.min(TEXT_CELLS_MAX, columns - indent - 1)),
  }
}

/** Returns the lines of a part of the conversation, wrapped to the width of the screen. */
export function transcriptLines(printed: TranscriptPart, options: TranscriptOptions): Line[] {
  const layout = layoutOf(options)
  const inset = (lines: readonly Line[]): Line[] =>
    lines.map(line => (line.length === 0 ? [] : [layout.indent, ...line]))
  switch (printed.kind) {
    case 'question': {
      const { text, images = [] } = printed
      const lines = [
        ...wrap([span(plain(text))], layout.width),
        ...images.flatMap(image => wrap([span(plainLine(image), 'dim')], layout.width)),
      ]
      return [[], ...withName('you', ['accent'], lines, layout)]
    }
    case 'answer':
      return answerLines(printed, options)
    case 'tool':
      return inset([toolLine(printed.run, resultLine(printed.run), layout.width)])
    case 'sources':
      return sourceLines(printed.citations, printed.isUncited ?? false, options)
    case 'passages':
      return [[], ...inset(passageLines(printed, options.agent, layout.width))]
    case 'note': {
      const sign = { dim: '', good: '✓ ', bad: '✗ ' }[printed.tone]
      const tone = printed.tone
      return inset(wrap([span(sign + plain(printed.text), tone)], layout.width))
    }
    case 'help':
      return [[], ...inset(helpLines(layout.width))]
  }
}

/** Returns the lines that list the passages of an answer. If the answer does not cite them, they get a heading. */
export function sourceLines(
  citations: readonly Citation[],
  isUncited: boolean,
  options: TranscriptOptions,
): Line[] {
  const { indent, width } = layoutOf(options)
  const lines = citations.flatMap(citation => {
    const mark = span(`[${citation.number}] `, 'cite')
    return wrap([span(citationSource(citation), 'dim')], width, {
      first: [mark],
      rest: [span(' '.repeat(mark.text.length))],
    })
  })
  const heading: Line[] = isUncited ? [[span('passages used, without citations:', 'dim')]] : []
  return [[], ...[...heading, ...lines].map((line): Line => [indent, ...line])]
}

/** Adds the name of the speaker. */
function withName(
  name: string,
  tones: StyledSpan['tones'],
  lines: readonly Line[],
  { hasSideNames, indent }: TranscriptLayout,
): Line[] {
  const label: StyledSpan = { text: hasSideNames ? ` ${truncate(name, NAME_CELLS_MAX)}` : ` ${name}`, tones }
  const inset = lines.map((line): Line => (line.length === 0 ? [] : [indent, ...line]))
  if (!hasSideNames) return [[label], ...inset]
  const [first = [], ...rest] = lines
  return [
    [{ ...label, text: pad(label.text, indent.text.length) }, ...first],
    ...rest.map((line): Line => (line.length === 0 ? [] : [indent, ...line])),
  ]
}

/** Returns the lines of a block of an answer. The first block shows the name of the agent. */
export function answerLines(
  { block, isFirst, isAside }: { block: Block; isFirst: boolean; isAside: boolean },
  options: TranscriptOptions,
): Line[] {
  const layout = layoutOf(options)
  const rendered = renderBlock(block, layout.width, options.highlight)
  const lines = isAside ? rendered.map(line => line.map(({ text }) => span(text, 'dim'))) : rendered
  if (isFirst) return [[], ...withName(plainLine(options.agent), ['strong'], lines, layout)]
  const inset = lines.map((line): Line => (line.length === 0 ? [] : [layout.indent, ...line]))
  return block.gap ? [[], ...inset] : inset
}

/** Returns the line of a tool call in progress. `since` is the elapsed time. */
export function runningToolLines(run: ToolRun, elapsed: string, options: TranscriptOptions): Line[] {
  const { indent, width } = layoutOf(options)
  return [[indent, ...toolLine(run, [span(elapsed, 'dim')], width)]]
}

/** Returns a line with the name of a tool, its argument, and its outcome. The argument is truncated. */
function toolLine({ number, call }: ToolRun, outcome: Line, width: number): Line {
  const name: Line = [span(`⚙${number} `, 'dim'), span(plainLine(call.name))]
  const argument = mainArgument(call.arguments)
  const room = Math.min(48, width - lineWidth(name) - lineWidth(outcome) - 6)
  const shown = argument !== '' && room > 4 ? [span(`  “${truncate(argument, room)}”`, 'dim')] : []
  return cutLine([...name, ...shown, span('  '), ...outcome], width)
}

function resultLine({ result }: ToolRun): Line {
  return result ? [outcomeSpan(result), span(`  ${formatPreciseDuration(result.durationMs)}`, 'dim')] : []
}

/** Returns the most informative argument of a tool call: the query or the URL, otherwise the first string. */
export function mainArgument(json: string): string {
  try {
    const given = JSON.parse(json) as Record<string, unknown>
    const texts = Object.entries(given).filter(([, value]) => typeof value === 'string')
    const [, value] = texts.find(([name]) => /^(?:query|text|url|question|q)$/.test(name)) ?? texts[0] ?? []
    return value === undefined ? '' : plainLine(String(value))
  } catch {
    return plainLine(json)
  }
}

function outcomeSpan({ content, outcome }: NonNullable<ToolRun['result']>): StyledSpan {
  if (outcome === 'denied') return span('not allowed', 'bad')
  if (outcome === 'failure') return span(truncate(plainLine(content), 60), 'bad')
  try {
    const given = JSON.parse(content) as Record<string, unknown>
    if (Array.isArray(given.results)) return span(formatCounted(given.results.length, 'passage'), 'dim')
    const [name, list] = Object.entries(given).find(([, value]) => Array.isArray(value)) ?? []
    if (name !== undefined && Array.isArray(list))
      return span(`${formatCount(list.length)} ${plainLine(name)}`, 'dim')
  } catch {
    // The result is not JSON.
  }
  return span(formatCounted(content.length, 'character'), 'dim')
}

function passageLines(
  { question, passages, hasSetup }: Extract<TranscriptPart, { kind: 'passages' }>,
  agent: string,
  width: number,
): Line[] {
  const setup = hasSetup ? modelSetupLines(agent) : []
  const setupLines = setup.flatMap(line => wrap([span(line, 'dim')], width))
  const gap: Line[] = hasSetup ? [[]] : []
  if (passages.length === 0) return [...setupLines, ...gap, [span('no passages were found either', 'dim')]]
  return [
    ...setupLines,
    ...gap,
    ...wrap([span(passagesHeading, 'strong')], width),
    ...passages.flatMap(passage => [[], ...passageCardLines(passage, question, width)]),
    [],
  ]
}

function passageCardLines(passage: Passage, question: string, width: number): Line[] {
  const mark = span(`[${passage.number}] `, 'cite')
  const hang = span(' '.repeat(mark.text.length))
  const { title, lines, location } = summarizePassage(passage, question, width - hang.text.length)
  return [
    ...wrap([span(title, 'strong')], width, { first: [mark], rest: [hang] }),
    ...lines.map((line): Line => cutLine([hang, span(line)], width)),
    ...(location === '' ? [] : [cutLine([hang, span(location, 'dim')], width)]),
  ]
}

const keyHelp: readonly (readonly [string, string])[] = [
  ['alt+enter, ctrl+j', 'insert a line break; \\ before enter does, too'],
  ['up, down, ctrl+r', 'recall earlier input'],
  ['alt+1 … alt+9', 'open a source'],
  ['alt+left, alt+right', 'previous or next version of the last question with several versions'],
  ['ctrl+c', 'stop the answer; pressed twice, leave the chat'],
]

function helpLines(width: number): Line[] {
  const rows = [
    ...commands.map(
      ({ name, argument, summary }) => [`/${name}${argument ? ` ${argument}` : ''}`, summary] as const,
    ),
    ...keyHelp,
  ]
  const wide = Math.max(...rows.map(([name]) => name.length)) + 2
  return rows.flatMap(([name, does]) =>
    wide * 2 > width
      ? [[span(name, 'strong')], ...wrap([span(does)], width, { first: [span('  ')], rest: [span('  ')] })]
      : wrap([span(does)], width, {
          first: [span(pad(name, wide), 'strong')],
          rest: [span(' '.repeat(wide))],
        }),
  )
}
