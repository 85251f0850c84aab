import type { QueryInsights } from '../../contract/insights.ts'
import { limits } from '../../contract/limits.ts'
import { type Column, formatCount, formatCounted, type Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Width of the bar of the day with the most searches, in cells. */
const BAR_WIDTH = 24

/** Columns that all lists of questions begin and end with. */
const question = { value: (row: { question: string }) => row.question, format: 'flexible' } as const
const searches = { value: (row: { searches: number }) => row.searches, format: 'count' } as const
const last = { value: (row: { lastAt: string }) => row.lastAt, format: 'time' } as const

/**
 * Prints what was searched for: tables in a terminal, the questions with the name of their list in a pipe; the summary with
 * `--json`.
 */
export function printInsights(output: Output, name: string, insights: QueryInsights): void {
  if (output.json) output.value(insights)
  else if (output.interactive) printTables(output, name, insights)
  else printQuestions(output, insights)
  printNotes(output, name, insights)
}

function printTables(output: Output, name: string, insights: QueryInsights): void {
  const { days, unanswered, repeated, slow, duration } = insights
  if (!duration) return
  output.fields(insights, {
    'knowledge base': name,
    searches: `${formatCount(insights.searches)}${insights.callers > 0 ? ` by ${formatCounted(insights.callers, 'caller')}` : ''}`,
    'without good results': `${formatCount(insights.withoutGoodResults)} (${Math.round((100 * insights.withoutGoodResults) / insights.searches)}%)`,
    time: `p50 ${formatMs(duration.p50Ms)}  p95 ${formatMs(duration.p95Ms)}  slowest ${formatMs(duration.maxMs)}`,
  })
  const most = Math.max(...days.map(day => day.searches))
  printTable(output, days, {
    day: { value: row => row.day },
    searches,
    'no good results': { value: row => row.withoutGoodResults, format: 'count' },
    '': { value: row => '▮'.repeat(Math.ceil((BAR_WIDTH * row.searches) / most)) },
  })
  printTable(output, unanswered, {
    'without good results': question,
    searches,
    passages: { value: row => row.hits, format: 'count' },
    words: { value: row => formatShare(row.coverage) },
    meaning: { value: row => row.similarity?.toFixed(2) },
    last,
  })
  printTable(output, repeated, {
    repeated: question,
    searches,
    callers: { value: row => (row.callers === 0 ? null : row.callers), format: 'count' },
    last,
  })
  printTable(output, slow, {
    slowest: question,
    time: { value: row => formatMs(row.maxMs) },
    mode: { value: row => row.mode },
    last,
  })
}

/** A question of any list. */
type ListedQuestion = QueryInsights['unanswered' | 'repeated' | 'slow'][number]

/** Prints a table below an empty line; nothing without rows. */
function printTable<T>(
  output: Output,
  rows: readonly T[],
  columns: Record<string, Column<NoInfer<T>>>,
): void {
  if (rows.length === 0) return
  output.result('')
  output.list(rows, { columns, empty: [] })
}

function printQuestions(output: Output, { unanswered, repeated, slow }: QueryInsights): void {
  for (const [list, questions] of Object.entries({ unanswered, repeated, slow }))
    for (const row of questions)
      output.row<ListedQuestion>(row, { list: { value: () => list }, searches, last, question })
}

function printNotes(output: Output, name: string, insights: QueryInsights): void {
  const { queryLog, searches: count, complete, ownOnly, since } = insights
  const day = since.slice(0, 'YYYY-MM-DD'.length)
  if (count === 0) output.note(`  no recorded searches in ${plainLine(name)} since ${day}`)
  if (!complete)
    output.note(`  only the latest ${formatCount(limits.loggedSearchesRead)} searches since ${day} were read`)
  if (ownOnly)
    output.note('  only your own searches; to see all, ask a workspace administrator for manage:access')
  if (queryLog) return
  output.note(`  searches in ${plainLine(name)} are not recorded; to record them:`)
  output.suggest(`wb kb update ${plainLine(name)} --query-log on`)
}

function formatShare(share: number | null): string | null {
  return share === null ? null : `${Math.round(100 * share)}%`
}

function formatMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : formatCount(Math.round(ms))} ms`
}
