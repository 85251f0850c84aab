import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { formatCount, type Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { wrapLine } from '../terminal/wrap.ts'
import { listedByNameMax, type Tally } from './tally.ts'

/** Result of an ingest. */
export interface IngestSummary {
  readonly base: KnowledgeBase
  readonly tally: Tally
  readonly elapsedMs: number
  /** Documents that an interrupted ingest did not process; `count` is undefined if unknown. */
  readonly remaining: { readonly count: number | undefined } | undefined
}

/** Maximum number of failures, and of duplicates, to print as lines. `--verbose` and `--json` print more. */
const listedLinesMax = 20
/** Maximum number of skipped files of a category to name. `--verbose` and `--json` name more. */
const skippedNamesMax = 3

/** Returns the summary as JSON. */
export function ingestSummaryJson({ base, tally, elapsedMs, remaining }: IngestSummary) {
  return {
    knowledgeBaseId: base.knowledgeBaseId,
    added: tally.added,
    replaced: tally.replaced,
    unchanged: tally.unchanged,
    duplicates: tally.duplicates,
    skipped: tally.skipped,
    failed: tally.failures,
    jobs: tally.queued.map(({ job }) => job.jobId),
    sameText: tally.sameText,
    skippedAs: skippedAs(tally),
    skippedFiles: [...tally.skippedByCategory.values()].flatMap(({ reason, paths }) =>
      paths.map(path => ({ path, reason })),
    ),
    interrupted: remaining !== undefined,
    elapsedMs,
  }
}

/** Returns the number of skipped files of each category. */
export function skippedAs({ skippedByCategory }: Tally): Record<string, number> {
  return Object.fromEntries([...skippedByCategory].map(([category, { count }]) => [category, count]))
}

/** Prints the result in one line, then details, then a suggested command. In a pipe, prints one line per count or job. */
export function printIngestSummary(output: Output, summary: IngestSummary, isVerbose: boolean): void {
  const { base, tally } = summary
  if (output.json) {
    output.value(ingestSummaryJson(summary))
    return
  }
  if (output.interactive)
    for (const line of wrapLine(summaryLine(output, summary), output.width, 4)) output.result(line)
  else if (tally.queued.length > 0) for (const { job } of tally.queued) output.result(job.jobId)
  else for (const [name, value] of countsByOutcome(tally, true)) output.result(`${name}\t${value}`)
  for (const line of detailLines(output, tally, isVerbose)) output.warn(line)
  if (summary.remaining)
    output.warn(`  ${describeRemaining(summary.remaining.count)}; run the command again to continue`)
  else if (tally.queued.length > 0) output.suggest('wb jobs list')
  else if (tally.processedCount > tally.failed) output.suggest(`wb kb search ${base.name} "…"`)
}

function summaryLine({ style }: Output, { tally, elapsedMs }: IngestSummary): string {
  const parts = countsByOutcome(tally, false).map(([name, value]) => `${formatCount(value)} ${name}`)
  const mark = tally.failed > 0 && tally.processedCount === tally.failed ? style.bad('✗') : style.good('✓')
  const text = parts.length > 0 ? parts.join('   ') : 'nothing to ingest'
  return `  ${mark} ${text}   in ${formatElapsed(elapsedMs)}`
}

function countsByOutcome(tally: Tally, includesZeros: boolean): [string, number][] {
  const all: [string, number][] = [
    ...(tally.queued.length > 0 ? [['queued', tally.queued.length] satisfies [string, number]] : []),
    ['added', tally.added],
    ['replaced', tally.replaced],
    ['unchanged', tally.unchanged],
    ['duplicates', tally.duplicates],
    ['skipped', tally.skipped],
    ['failed', tally.failed],
  ]
  return includesZeros
    ? all
    : all.filter(([, value]) => value > 0).map(([name, value]) => [singular(name, value), value])
}

function singular(name: string, value: number): string {
  return value === 1 && name === 'duplicates' ? 'duplicate' : name
}

/** Yields lines for failures, duplicates and skipped files, with all names if `isVerbose`. */
export function* detailLines({ errorStyle }: Output, tally: Tally, isVerbose: boolean): Generator<string> {
  const linesMax = isVerbose ? listedByNameMax : listedLinesMax
  for (const { path, code, message } of tally.failures.slice(0, linesMax))
    yield `  ${errorStyle.bad('✗')} ${plainLine(path)}   ${plainLine(message)} ${errorStyle.dim(`(${code})`)}`
  yield* moreLine(tally.failed, linesMax)
  for (const { path, sameAs } of tally.sameText.slice(0, linesMax))
    yield `  = ${plainLine(path)}   same text as ${plainLine(sameAs)}`
  yield* moreLine(tally.duplicates, linesMax)
  for (const line of skippedLines(tally, isVerbose ? listedByNameMax : skippedNamesMax))
    yield errorStyle.dim(`  – ${line}`)
}

function* moreLine(total: number, linesMax: number): Generator<string> {
  if (total > linesMax) yield `    and ${formatCount(total - linesMax)} more; --verbose lists them`
}

/** Returns a line for each category of skipped files, the most frequent one first. */
function skippedLines({ skippedByCategory }: Tally, namesMax: number): string[] {
  const sorted = [...skippedByCategory].sort((a, b) => b[1].count - a[1].count)
  return sorted.map(([category, { count, reason, paths }]) => {
    const noun = count === 1 ? category.replace(/\b(file|link|line|page)s\b/, '$1') : category
    const named = paths.slice(0, namesMax)
    const more = count > named.length ? ` and ${formatCount(count - named.length)} more` : ''
    return `skipped ${formatCount(count)} ${plainLine(noun)}: ${named.map(plainLine).join(', ')}${more} (${reason})`
  })
}

function describeRemaining(count: number | undefined): string {
  return count === undefined ? 'some documents were not confirmed' : `${formatCount(count)} not confirmed`
}

/** Formats a duration as `2.1 s`, or as `3 min 12 s` if it is at least one minute. */
export function formatElapsed(elapsedMs: number): string {
  const tenths = Math.round(elapsedMs / 100)
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`
  const seconds = Math.round(elapsedMs / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
