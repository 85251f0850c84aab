import type { Document } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { detailLines, formatElapsed } from '../ingest/summary.ts'
import { formatCount, formatCounted, type Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { SyncOutcome } from './apply-plan.ts'
import type { SyncPlan } from './sync-plan.ts'

/** Maximum number of names to print for each kind of change. `--json` prints all. */
const namesMax = 20

/** A comparison of a folder, and what was done. */
export interface SyncResult {
  /** Undefined in a dry run if the knowledge base does not exist yet. */
  readonly base: KnowledgeBase | undefined
  readonly folderId: string
  readonly plan: SyncPlan
  /** The part of the plan that was applied: without deletions that were not confirmed. */
  readonly applied: SyncPlan
  readonly outcome: SyncOutcome
  readonly isDryRun: boolean
  readonly elapsedMs: number
}

/** Prints each change of a plan, with a sign for its kind. */
export function printPlan(output: Output, plan: SyncPlan): void {
  const lines: [string, readonly string[]][] = [
    ['+', plan.added.map(({ name }) => plainLine(name))],
    ['~', plan.changed.map(({ file }) => plainLine(file.name))],
    ['→', plan.renamed.map(({ file, document }) => `${nameOf(document)} → ${plainLine(file.name)}`)],
    ['-', plan.deleted.map(nameOf)],
  ]
  for (const [sign, names] of lines) {
    for (const name of names.slice(0, namesMax)) output.note(`  ${sign} ${name}`)
    if (names.length > namesMax)
      output.note(`    and ${formatCount(names.length - namesMax)} more; --dry-run --json lists them`)
  }
}

/** Prints what a synchronization has changed, or would change with `--dry-run`. */
export function printSyncResult(output: Output, result: SyncResult): void {
  const { plan, outcome, isDryRun } = result
  if (output.json) {
    output.value(syncResultJson(result))
    return
  }
  if (isDryRun) printPlan(output, plan)
  const counts = Object.entries(countsOf(result))
  if (output.interactive) output.result(summaryLine(output, result, counts))
  else for (const [name, value] of counts) output.result(`${name}\t${value}`)
  for (const line of detailLines(output, outcome.tally, false)) output.warn(line)
  for (const { file, sameAs } of plan.duplicates.slice(0, namesMax))
    output.note(`  = ${plainLine(file.name)}   same content as ${plainLine(sameAs)}`)
  for (const { name } of plan.taken.slice(0, namesMax))
    output.warn(
      `  ${output.errorStyle.bad('✗')} ${plainLine(name)}   a document that is not from this folder has this name`,
    )
  if (plan.taken.length > 0)
    output.note('    add --adopt to take over documents that you ingested without sync')
  printDeletionHint(output, result)
}

function printDeletionHint(output: Output, { base, plan, applied, outcome, isDryRun }: SyncResult): void {
  const kept = plan.deleted.length - applied.deleted.length
  if (!isDryRun && kept > 0)
    output.note(
      `  kept ${formatCounted(kept, 'document')} of files that are gone; add --delete to delete them`,
    )
  if (base && outcome.deleted > 0) output.suggest(`wb documents restore --kb ${base.name}`)
}

function countsOf({ plan, outcome, isDryRun }: SyncResult): Record<string, number> {
  const { added, replaced, duplicates, unchanged, skipped, failed } = outcome.tally
  const done = isDryRun
    ? {
        added: plan.added.length,
        changed: plan.changed.length,
        renamed: plan.renamed.length,
        deleted: plan.deleted.length,
      }
    : { added, changed: replaced, renamed: outcome.renamed, deleted: outcome.deleted }
  return {
    ...done,
    unchanged: plan.unchanged + unchanged,
    duplicates: plan.duplicates.length + duplicates,
    skipped,
    failed: failed + plan.taken.length,
  }
}

function summaryLine(
  { style }: Output,
  { isDryRun, elapsedMs }: SyncResult,
  counts: readonly [string, number][],
): string {
  const parts = counts
    .filter(([, value]) => value > 0)
    .map(([name, value]) => `${formatCount(value)} ${name}`)
  const text = parts.length > 0 ? parts.join('   ') : 'no files'
  if (isDryRun) return `  dry run: ${text}`
  return `  ${style.good('✓')} ${text}   in ${formatElapsed(elapsedMs)}`
}

function syncResultJson(result: SyncResult) {
  const { base, folderId, plan, applied, outcome, isDryRun, elapsedMs } = result
  const { unchanged, duplicates, skipped, failed } = countsOf(result)
  return {
    knowledgeBaseId: base?.knowledgeBaseId ?? null,
    folder: folderId,
    dryRun: isDryRun,
    plan: {
      added: plan.added.map(({ name }) => name),
      changed: plan.changed.map(({ file }) => file.name),
      renamed: plan.renamed.map(({ file, document }) => ({
        from: document.sourceFilename,
        to: file.name,
      })),
      deleted: plan.deleted.map(({ sourceFilename }) => sourceFilename),
      duplicates: plan.duplicates.map(({ file, sameAs }) => ({ name: file.name, sameAs })),
      taken: plan.taken.map(({ name }) => name),
    },
    added: outcome.tally.added,
    changed: outcome.tally.replaced,
    renamed: outcome.renamed,
    deleted: outcome.deleted,
    kept: isDryRun ? 0 : plan.deleted.length - applied.deleted.length,
    unchanged,
    duplicates,
    skipped,
    failed,
    failures: outcome.tally.failures,
    elapsedMs,
  }
}

function nameOf({ sourceFilename, documentId }: Document): string {
  return plainLine(sourceFilename ?? documentId)
}
