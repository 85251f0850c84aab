import { isObject } from '../../base/is-object.ts'
import { parseJson } from '../../base/parse-json.ts'
import { citationSource } from '../../cli/chat/citation-source.ts'
import { modelSetupLines, passagesHeading } from '../../cli/chat/model-setup.ts'
import { summarizePassage } from '../../cli/chat/passage-summary.ts'
import { unsupportedList } from '../../cli/chat/unsupported.ts'
import type { Passage } from '../../cli/passages/find-passages.ts'
import { formatCount, formatCounted } from '../../cli/terminal/output.ts'
import { displayWidth, pad, plain, plainLine, truncate } from '../../cli/terminal/terminal-text.ts'
import { dimSentences } from '../markdown/dim-sentences.ts'
import { type Highlight, plainMarkdown, renderBlock } from '../markdown/render.ts'
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
export function transcriptLines(part: TranscriptPart, options: TranscriptOptions): Line[] {
  const layout = layoutOf(options)
  const inset = (lines: readonly Line[]) => insetLines(lines, layout)
  switch (part.kind) {
    case 'question': {
      const { text, images = [] } = part
      const lines = [
        ...wrap([span(plain(text))], layout.width),
        ...images.flatMap(image => wrap([span(plainLine(image), 'dim')], layout.width)),
      ]
      return [[], ...withName('you', ['accent'], lines, layout)]
    }
    case 'answer':
      return answerLines(part, options)
    case 'tool':
      return inset([toolLine(part.run, resultLine(part.run), layout.width)])
    case 'sources':
      return [[], ...inset(sourceLines(part, layout.width))]
    case 'unsupported':
      return [[], ...inset(unsupportedLines(part.sentences, layout.width))]
    case 'passages':
      return [[], ...inset(passageLines(part, options.agent, layout.width))]
    case 'note': {
      const { text, tone } = part
      const sign = { dim: '', good: '✓ ', bad: '✗ ' }[tone]
      return inset(wrap([span(sign + plain(text), tone)], layout.width))
    }
    case 'help':
      return [[], ...inset(helpLines(layout.width))]
  }
}

/** Returns the lines that list the passages of an answer, with a heading if the answer does not cite them. */
function sourceLines(
  { citations, isUncited }: Extract<TranscriptPart, { kind: 'sources' }>,
  width: number,
): Line[] {
  const lines = citations.flatMap(citation => {
    const mark = span(`[${citation.number}] `, 'cite')
    return wrap([span(citationSource(citation), 'dim')], width, {
      first: [mark],
      rest: [span(' '.repeat(mark.text.length))],
    })
  })
  const heading: Line[] = isUncited ? [[span('passages used but not cited:', 'dim')]] : []
  return [...heading, ...lines]
}

function unsupportedLines(sentences: readonly string[], width: number): Line[] {
  const { heading, items } = unsupportedList(sentences)
  const mark = span('! ', 'warning')
  const indent = span(' '.repeat(mark.text.length))
  return [
    ...wrap([span(heading, 'dim')], width, { first: [mark], rest: [indent] }),
    ...items.map(item => cutLine([indent, span(plainMarkdown(item), 'dim')], width)),
  ]
}

/** Indents lines to the text of messages. */
function insetLines(lines: readonly Line[], { indent }: TranscriptLayout): Line[] {
  return lines.map(line => (line.length === 0 ? [] : [indent, ...line]))
}

/** Adds the name of the speaker to the lines of a message. */
function withName(
  name: string,
  tones: StyledSpan['tones'],
  lines: readonly Line[],
  layout: TranscriptLayout,
): Line[] {
  if (!layout.hasSideNames) return [[{ text: ` ${name}`, tones }], ...insetLines(lines, layout)]
  const [first = [], ...rest] = lines
  const label = pad(` ${truncate(name, NAME_CELLS_MAX)}`, layout.indent.text.length)
  return [[{ text: label, tones }, ...first], ...insetLines(rest, layout)]
}

/** Returns the lines of a block of an answer. The first block shows the name of the agent. */
export function answerLines(
  { block, isFirst, isAside, dimmed = [] }: Omit<Extract<TranscriptPart, { kind: 'answer' }>, 'kind'>,
  options: TranscriptOptions,
): Line[] {
  const layout = layoutOf(options)
  const rendered = renderBlock(block, layout.width, options.highlight)
  const lines = isAside
    ? rendered.map(line => line.map(({ text }) => span(text, 'dim')))
    : dimSentences(rendered, dimmed)
  if (isFirst) return [[], ...withName(plainLine(options.agent), ['strong'], lines, layout)]
  const inset = insetLines(lines, layout)
  return block.gap ? [[], ...inset] : inset
}

/** Returns the line of a tool call in progress. `elapsed` is shown as its outcome. */
export function runningToolLines(run: ToolRun, elapsed: string, options: TranscriptOptions): Line[] {
  const { indent, width } = layoutOf(options)
  return [[indent, ...toolLine(run, [span(elapsed, 'dim')], width)]]
}

/** Returns a line with the name of a tool, its argument, and its outcome. The argument is truncated. */
function toolLine({ number, call }: ToolRun, outcome: Line, width: number): Line {
  const name: Line = [span(`⚙${number} `, 'dim'), span(plainLine(call.name))]
  const argument = mainArgument(call.arguments)
  const argumentWidth = Math.min(48, width - lineWidth(name) - lineWidth(outcome) - 6)
  const argumentSpans =
    argument !== '' && argumentWidth > 4 ? [span(`  “${truncate(argument, argumentWidth)}”`, 'dim')] : []
  return cutLine([...name, ...argumentSpans, span('  '), ...outcome], width)
}

function resultLine({ result }: ToolRun): Line {
  return result ? [outcomeSpan(result), span(`  ${formatPreciseDuration(result.durationMs)}`, 'dim')] : []
}

/** Returns the most informative argument of a tool call: the query or the URL, otherwise the first string. */
export function mainArgument(json: string): string {
  const callArguments = parseJson(json)
  if (!isObject(callArguments)) return plainLine(json)
  const strings = Object.entries(callArguments).filter(([, argument]) => typeof argument === 'string')
  const main = strings.find(([name]) => /^(?:query|text|url|question|q)$/.test(name))
  const [, value] = main ?? strings[0] ?? []
  return value === undefined ? '' : plainLine(String(value))
}

function outcomeSpan({ content, outcome }: NonNullable<ToolRun['result']>): StyledSpan {
  if (outcome === 'denied') return span('not allowed', 'bad')
  if (outcome === 'failure') return span(truncate(plainLine(content), 60), 'bad')
  const value = parseJson(content)
  const fields = isObject(value) ? value : {}
  if (Array.isArray(fields.results)) return span(formatCounted(fields.results.length, 'passage'), 'dim')
  const [name, list] = Object.entries(fields).find(([, field]) => Array.isArray(field)) ?? []
  if (name !== undefined && Array.isArray(list))
    return span(`${formatCount(list.length)} ${plainLine(splitCamelCase(name))}`, 'dim')
  return span(formatCounted(content.length, 'character'), 'dim')
}

/** Returns the words of an identifier: `knowledge bases` for `knowledgeBases`. */
function splitCamelCase(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)
}

function passageLines(
  { question, passages, hasSetup }: Extract<TranscriptPart, { kind: 'passages' }>,
  agent: string,
  width: number,
): Line[] {
  const setup = hasSetup ? modelSetupLines(agent) : []
  const setupLines = setup.flatMap(line => wrap([span(line, 'dim')], width))
  const gap: Line[] = hasSetup ? [[]] : []
  if (passages.length === 0) return [...setupLines, ...gap, [span('no passages were found', 'dim')]]
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
  const hangingIndent = span(' '.repeat(mark.text.length))
  const { title, lines, location } = summarizePassage(passage, question, width - hangingIndent.text.length)
  return [
    ...wrap([span(title, 'strong')], width, { first: [mark], rest: [hangingIndent] }),
    ...lines.map((line): Line => cutLine([hangingIndent, span(line)], width)),
    ...(location === '' ? [] : [cutLine([hangingIndent, span(location, 'dim')], width)]),
  ]
}

const keyHelp: readonly (readonly [string, string])[] = [
  ['alt+enter, ctrl+j', 'insert a line break; so does \\ before enter'],
  ['up, down, ctrl+r', 'recall earlier input'],
  ['alt+1 … alt+9', 'open a source'],
  ['alt+left, alt+right', 'previous or next version of the last question with several versions'],
  ['ctrl+c', 'stop the answer; press twice to leave the chat'],
]

function helpLines(width: number): Line[] {
  const rows = [
    ...commands.map(
      ({ name, argument, summary }) => [`/${name}${argument ? ` ${argument}` : ''}`, summary] as const,
    ),
    ...keyHelp,
  ]
  const nameWidth = Math.max(...rows.map(([name]) => name.length)) + 2
  return rows.flatMap(([name, description]) =>
    nameWidth * 2 > width
      ? [
          [span(name, 'strong')],
          ...wrap([span(description)], width, { first: [span('  ')], rest: [span('  ')] }),
        ]
      : wrap([span(description)], width, {
          first: [span(pad(name, nameWidth), 'strong')],
          rest: [span(' '.repeat(nameWidth))],
        }),
  )
}
