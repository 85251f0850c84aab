import { WbError } from '../contract/errors.ts'
import type { ColumnValue, RowStore, RowTable, Write, WriteOutcome } from './rows.ts'

const attemptsMax = 8

/** Result of a change: the stored row, `absent` if there is no such row, or the check that failed. */
export type RowChange<Row> = { row: Row } | { absent: true } | { refused: WriteOutcome & { ok: false } }

/**
 * Reads a row, changes it and writes it back. Starts again if another caller changed the row in between.
 *
 * @param change  returns the new row; it is called again in each attempt
 * @param also  further checks of the same unit; if one fails, it is returned with its position, from 0
 * @throws conflict  other callers changed the row during every attempt
 */
export async function changeRow<Row extends object>(
  rows: RowStore,
  table: RowTable<Row>,
  key: readonly ColumnValue[],
  change: (row: Row) => Row | Promise<Row>,
  also: (before: Row, after: Row) => readonly Write[] = () => [],
): Promise<RowChange<Row>> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = await rows.get(table, key)
    if (!before) return { absent: true }
    const row = await change(before.row)
    const checks = also(before.row, row)
    const outcome = await rows.atomic([...checks, { op: 'replace', table, row, version: before.version }])
    if (outcome.ok) return { row }
    const moved = outcome.at === checks.length && (outcome.reason === 'stale' || outcome.reason === 'absent')
    if (!moved) return { refused: outcome }
  }
  throw new WbError('conflict', 'the resource keeps changing; nothing was written')
}
