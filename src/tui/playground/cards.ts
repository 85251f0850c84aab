import { explanationLines, summarizeExplanation } from '../../cli/passages/explanation-lines.ts'
import type { Passage } from '../../cli/passages/find-passages.ts'
import { matchesIn, stemsOf, type TextRange } from '../../cli/passages/matches.ts'
import {
  coverageBar,
  excerptWithSection,
  formatScores,
  isMarkdownDocument,
  passageLocation,
  passageTitle,
} from '../../cli/passages/print-passages.ts'
import { pad, plain } from '../../cli/terminal/terminal-text.ts'
import { renderText } from '../markdown/render.ts'
import { cutLine, type Line, lineWidth, type StyledSpan, span, type Tone, wrap } from '../parts/spans.ts'
import { gradeOf } from './judge.ts'
import type { PlaygroundResults, PlaygroundState } from './types.ts'

/** Maximum width of text, because longer lines are hard to read. */
const TEXT_CELLS_MAX = 100
const TEXT_CELLS_MIN = 8
const EXCERPT_LINES = 2
const INDENT_CELLS = 5

export interface CardOptions {
  readonly width: number
  readonly isChosen: boolean
  /** True to show the whole passage instead of an excerpt. */
  readonly isOpen: boolean
  readonly showsNumbers: boolean
  /** True to explain the rank in a table instead of a line. */
  readonly showsReasons: boolean
  readonly grades: PlaygroundState['grades']
}

/** Returns the lines of a passage: its title and score, text, and location. */
export function cardLines(results: PlaygroundResults, index: number, options: CardOptions): readonly Line[] {
  const passage = results.passages[index]!
  const { width } = options
  const indent = span(' '.repeat(INDENT_CELLS))
  const { section, lines } = passageText(passage, results.request.body.text ?? '', options)
  const source = passageLocation(passage)
  return [
    headLine(results, index, section, options),
    ...lines.map((line): Line => cutLine([indent, ...line], width)),
    ...(source === '' ? [] : [cutLine([indent, span(source, 'dim')], width)]),
    ...reasonLines(passage, options).map((line): Line => cutLine([indent, line], width)),
    [],
  ]
}

/** Returns the number of lines of {@link cardLines}. */
export function cardHeight(
  { passages, request }: PlaygroundResults,
  index: number,
  options: CardOptions,
): number {
  const passage = passages[index]!
  const { lines } = passageText(passage, request.body.text ?? '', options)
  return lines.length + reasonLines(passage, options).length + (passageLocation(passage) === '' ? 2 : 3)
}

/** Returns why a passage is in the results. */
function reasonLines({ explanation }: Passage, { width, showsReasons }: CardOptions): StyledSpan[] {
  if (!explanation) return []
  if (!showsReasons) return [span(summarizeExplanation(explanation), 'dim')]
  const lines = explanationLines(explanation, Math.max(TEXT_CELLS_MIN, width - INDENT_CELLS - 1))
  return lines.map(({ text, isDim }) => span(text, ...(isDim ? (['dim'] as const) : [])))
}

function headLine(
  results: PlaygroundResults,
  index: number,
  section: string | undefined,
  options: CardOptions,
): Line {
  const passage = results.passages[index]!
  const name = passageTitle(passage)
  const right = scoreLine(results, index, options)
  const left: Line = [
    span(options.isChosen ? '›' : ' ', 'accent'),
    span(`${String(index + 1).padStart(INDENT_CELLS - 2)} `, 'dim'),
  ]
  const titleWidth = Math.max(1, options.width - INDENT_CELLS - lineWidth(right) - 2)
  const title = cutLine([span(section ? `${name} › ${section}` : name, ...titleTones(options))], titleWidth)
  const gap = span(pad('', titleWidth - lineWidth(title) + 2))
  return cutLine([...left, ...title, gap, ...right], options.width)
}

function titleTones({ isChosen }: CardOptions): readonly ('strong' | 'accent')[] {
  return isChosen ? ['strong', 'accent'] : ['strong']
}

function scoreLine(results: PlaygroundResults, index: number, { showsNumbers, grades }: CardOptions): Line {
  const { passages, rankChanges } = results
  const passage = passages[index]!
  const rankChange = rankChanges.get(passage.id)
  const rankLabel =
    rankChange === undefined
      ? ''
      : rankChange === 'new'
        ? 'new '
        : `${rankChange > 0 ? '+' : ''}${rankChange} `
  const [filled, empty] = passage.coverage === undefined ? ['', ''] : coverageBar(passage.coverage)
  const grade = gradeOf(grades, results, passage)
  return [
    span(grade === undefined ? '' : `grade ${grade} `, 'accent'),
    span(rankLabel, 'dim'),
    ...(showsNumbers ? [span(`${formatScores(passage)} `)] : []),
    span(filled, 'good'),
    span(empty, 'dim'),
  ]
}

interface PassageText {
  readonly section?: string
  readonly lines: readonly Line[]
}

/** Caches the rendered text of each passage, because the same passage is drawn many times. */
const textCache = new WeakMap<Passage, { readonly key: string; readonly text: PassageText }>()

function passageText(passage: Passage, question: string, { width, isOpen }: CardOptions): PassageText {
  const textWidth = Math.max(TEXT_CELLS_MIN, Math.min(TEXT_CELLS_MAX, width - INDENT_CELLS - 1))
  const cacheKey = `${textWidth} ${isOpen} ${question}`
  const cached = textCache.get(passage)
  if (cached?.key === cacheKey) return cached.text
  const rendered = isOpen
    ? renderWhole(passage, question, textWidth)
    : renderExcerpt(passage, question, textWidth)
  textCache.set(passage, { key: cacheKey, text: rendered })
  return rendered
}

function renderExcerpt(passage: Passage, question: string, width: number): PassageText {
  const { lines, section } = excerptWithSection(passage, stemsOf(question), { width, lines: EXCERPT_LINES })
  return { section, lines: lines.map(({ text, marks }) => markedSpans(text, marks)) }
}

function renderWhole(passage: Passage, question: string, width: number): PassageText {
  const stems = stemsOf(question)
  const { section } = excerptWithSection(passage, stems, { width, lines: EXCERPT_LINES })
  const text = plain(passage.text).trim()
  const lines = isMarkdownDocument(passage)
    ? renderText(text, width)
    : wrap([span(text.replace(/\n\s*\n/g, '\n\n'))], width)
  const addMarks = ({ text, tones }: StyledSpan) => markedSpans(text, matchesIn(text, stems), tones)
  return { section, lines: lines.map(line => line.flatMap(addMarks)) }
}

function markedSpans(text: string, marks: readonly TextRange[], tones: readonly Tone[] = []): StyledSpan[] {
  const spans: StyledSpan[] = []
  let position = 0
  for (const { start, end } of marks) {
    if (start > position) spans.push(span(text.slice(position, start), ...tones))
    spans.push(span(text.slice(start, end), ...tones, 'strong', 'cite'))
    position = end
  }
  return [...spans, span(text.slice(position), ...tones)]
}
