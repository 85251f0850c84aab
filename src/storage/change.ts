import { WbError } from '../contract/errors.ts'
import type { Outcome, RowStore, Table, Value, Write } from './rows.ts'

const attemptsMax = 8

/** How a change ended: the row as it now stands, that there is none, or which check refused it. */
export type Changed<Row> = { row: Row } | { absent: true } | { refused: Outcome & { ok: false } }

/**
 * Read a row, change it and write it back if nobody changed it in between; else again from the start.
 *
 * @param also  further checks of the same unit; a refusal of one of them is returned, counted from 0
 * @throws conflict  others kept changing the row
 */
export async function changeRow<Row extends object>(
  rows: RowStore,
  table: Table<Row>,
  key: readonly Value[],
  change: (row: Row) => Row,
  also: (before: Row, after: Row) => readonly Write[] = () => [],
): Promise<Changed<Row>> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = await rows.get(table, key)
    if (!before) return { absent: true }
    const row = change(before.row)
    const checks = also(before.row, row)
    const outcome = await rows.atomic([...checks, { op: 'replace', table, row, version: before.version }])
    if (outcome.ok) return { row }
    const moved = outcome.at === checks.length && (outcome.reason === 'stale' || outcome.reason === 'absent')
    if (!moved) return { refused: outcome }
  }
  throw new WbError('conflict', 'the resource keeps changing; nothing was written')
}
