import { WbError } from '../contract/errors.ts'
import {
  type ColumnValue,
  type RowStore,
  type RowTable,
  revisionOf,
  type Write,
  type WriteOutcome,
} from './rows.ts'

const attemptsMax = 8

/** Result of a change: the new row, `absent` if there is no such row, or the outcome of the extra check that failed. */
export type RowChange<Row> = { row: Row } | { absent: true } | { failedCheck: WriteOutcome & { ok: false } }

/**
 * Reads a row, changes it and writes it back. Retries if the row was changed in the meantime.
 *
 * @param change       returns the new row; called in each attempt
 * @param extraChecks  returns more writes and checks for the same transaction; if one of them fails, `failedCheck`
 *                     contains its index
 * @throws conflict  the row was changed during every attempt
 */
export async function changeRow<Row extends object>(
  rows: RowStore,
  table: RowTable<Row>,
  key: readonly ColumnValue[],
  change: (row: Row) => Row | Promise<Row>,
  extraChecks: (before: Row, after: Row) => readonly Write[] = () => [],
): Promise<RowChange<Row>> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = await rows.get(table, key)
    if (!before) return { absent: true }
    const row = await change(before.row)
    const checks = extraChecks(before.row, row)
    const outcome = await rows.atomic([...checks, { op: 'replace', table, row, ...revisionOf(before) }])
    if (outcome.ok) return { row }
    const isConflict =
      outcome.at === checks.length && (outcome.reason === 'stale' || outcome.reason === 'absent')
    if (!isConflict) return { failedCheck: outcome }
  }
  throw new WbError('conflict', 'the resource keeps changing; nothing was written')
}
