import type {
  ExplainedList,
  ExplainedWord,
  SearchExplanation,
  WhyNot,
} from '../../contract/search-explanation.ts'
import { formatCounted } from '../terminal/output.ts'
import { displayWidth, pad, plainLine, truncate } from '../terminal/terminal-text.ts'
import { wrapLine } from '../terminal/wrap.ts'

/** Names of the lists in messages for users. */
const listTitles = { lexical: 'words', vector: 'vectors', sentences: 'meaning' } as const

/** Maximum number of words that a line of {@link summarizeExplanation} lists. */
const summaryWordsMax = 4
const gap = '  '

/** A line of an explanation, which contains no styles. */
export interface ExplanationLine {
  readonly text: string
  /** True for a heading or a note. */
  readonly isDim: boolean
}

/** Returns a table of the lists that ranked a passage, and the words that it matches. */
export function explanationLines(explanation: SearchExplanation, width: number): ExplanationLine[] {
  const { rerank, knowledgeBaseWeight } = explanation
  const notes = [
    ...rerankNotes(rerank),
    ...(knowledgeBaseWeight === undefined
      ? []
      : [`knowledge base × ${formatScore(knowledgeBaseWeight)} of ${formatScore(explanation.fusedScore)}`]),
    ...shapingNotes(explanation),
  ]
  return [
    ...tableLines(explanation, width),
    ...wordLines(explanation.words, width),
    ...notes.flatMap(note => wrapLine(note, width, 0)).map(text => ({ text, isDim: true })),
  ]
}

function rerankNotes(rerank: SearchExplanation['rerank']): string[] {
  if (!rerank) return []
  return [plainLine(`reranked by ${rerank.service ?? 'words'} from ${rerank.from} to ${rerank.to}`)]
}

/** Describes the stages after ranking that changed a passage or its rank. */
function shapingNotes({ boost, diversity, group, neighbors }: SearchExplanation): string[] {
  const moved = ({ from, to }: { from: number; to: number }) => (from === to ? '' : ` from ${from} to ${to}`)
  return [
    ...(boost && (boost.factor !== 1 || boost.from !== boost.to)
      ? [`boosted × ${formatScore(boost.factor)}${moved(boost)}`]
      : []),
    ...(diversity && diversity.from !== diversity.to
      ? [
          `diversity moved it${moved(diversity)}${diversity.similarity === null ? '' : `; similarity with a better result ${formatScore(diversity.similarity)}`}`,
        ]
      : []),
    ...(neighbors && (neighbors.merged > 0 || neighbors.from !== neighbors.to)
      ? [`joined with ${formatCounted(neighbors.merged, 'other result')}${moved(neighbors)}`]
      : []),
    ...(group && (group.omitted > 0 || group.from !== group.to)
      ? [`grouped${moved(group)}; ${formatCounted(group.omitted, 'other passage')} of the document omitted`]
      : []),
  ]
}

function tableLines({ lists }: SearchExplanation, width: number): ExplanationLine[] {
  return alignColumns([['list', 'weight', 'rank', 'score', 'scaled', 'adds'], ...lists.map(listCells)], width)
}

/** Aligns the first column on the left, and the others on the right. The first row is a heading. */
function alignColumns(rows: readonly (readonly string[])[], width: number): ExplanationLine[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => displayWidth(row[column]!))))
  const lineOf = (row: readonly string[]) =>
    row.map((cell, column) => pad(cell, widths[column]!, column === 0 ? 'right' : 'left')).join(gap)
  return rows.map((row, index) => ({ text: truncate(lineOf(row), width), isDim: index === 0 }))
}

/** Returns a table with the place of a passage in each list, and the words that it matches. */
export function placeLines({ lists, words, topK, rerank }: WhyNot, width: number): ExplanationLine[] {
  const rows = lists.map(list => {
    const [title, weight, rank, score] = listCells(list)
    return [title!, weight!, rank!, score!, list.cutoffScore === null ? '–' : formatScore(list.cutoffScore)]
  })
  return [
    ...alignColumns([['list', 'weight', 'rank', 'score', `score at ${topK}`], ...rows], width),
    ...wordLines(words, width),
    ...rerankNotes(rerank)
      .flatMap(note => wrapLine(note, width, 0))
      .map(text => ({ text, isDim: true })),
  ]
}

function listCells({ name, weight, rank, score, scaledScore, contribution }: ExplainedList): string[] {
  const number = (value: number | null) => (value === null ? '–' : formatScore(value))
  return [
    listTitles[name],
    formatShare(weight),
    rank === null ? '–' : String(rank),
    number(score),
    number(scaledScore),
    number(contribution),
  ]
}

function wordLines(words: readonly ExplainedWord[], width: number): ExplanationLine[] {
  const [matched, missing] = [
    words.filter(({ score }) => score > 0),
    words.filter(({ score }) => score === 0),
  ]
  const lineOf = (title: string, items: readonly string[], isDim: boolean) =>
    items.length === 0
      ? []
      : wrapLine(`${title}${gap}${items.join(' · ')}`, width, displayWidth(title) + gap.length).map(text => ({
          text,
          isDim,
        }))
  return [
    ...lineOf(
      'matches',
      [...matched]
        .sort((a, b) => b.score - a.score)
        .map(word => `${formatWord(word)} ${formatScore(word.score)}`),
      false,
    ),
    ...lineOf(
      'lacks  ',
      missing.map(word => (word.passages === 0 ? `${formatWord(word)} (in no passage)` : formatWord(word))),
      true,
    ),
  ]
}

function formatWord({ word, match, terms }: ExplainedWord): string {
  if (match === 'similar') return plainLine(`${word} → ${terms.join(', ')}`)
  return plainLine(match === 'prefix' ? `${word}…` : word)
}

/** Returns one line: the lists that found a passage, with their parts of the score, and the best words. */
export function summarizeExplanation({ lists, fusedScore, words }: SearchExplanation): string {
  const found = lists
    .filter(({ rank }) => rank !== null)
    .map(({ name, rank, contribution }) => {
      const share = fusedScore > 0 && lists.length > 1 ? ` ${formatShare(contribution / fusedScore)}` : ''
      return `${listTitles[name]} #${rank}${share}`
    })
  const matched = words.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
  const shown = matched.slice(0, summaryWordsMax).map(formatWord)
  const more = matched.length > summaryWordsMax ? ` +${matched.length - summaryWordsMax}` : ''
  return [...found, ...(shown.length > 0 ? [shown.join(', ') + more] : [])].join(' · ')
}

/** Describes the weights of the lists, and how they were chosen. */
export function describeWeights({ lists, weighting, filtered }: SearchExplanation): string {
  const weights = lists.map(({ name, weight }) => `${listTitles[name]} ${formatShare(weight)}`).join(', ')
  const reasons = weighting
    ? [
        ...(weighting.coverage === null
          ? []
          : [`the best passages contain up to ${formatShare(weighting.coverage)} of the question's words`]),
        ...(weighting.knownShare < 1
          ? [`the embedder knows ${formatShare(weighting.knownShare)} of them`]
          : []),
        ...(weighting.requested ? [`--lexical-weight is ${weighting.lexicalWeight}`] : []),
      ]
    : []
  const filter = filtered ? '; only passages that match the filter' : ''
  return `ranked by ${weights}${reasons.length > 0 ? `, because ${reasons.join(' and ')}` : ''}${filter}`
}

function formatScore(value: number): string {
  return value.toFixed(3)
}

function formatShare(share: number): string {
  return `${Math.round(share * 100)} %`
}
