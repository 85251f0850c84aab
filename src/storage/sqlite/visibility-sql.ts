import type { Visibility } from '../visibility.ts'

/** Part of an SQL statement, with the values of its `?` placeholders in order. */
export interface SqlFragment {
  readonly sql: string
  readonly parameters: readonly (string | number)[]
}

/**
 * Returns an SQL condition that selects the rows that a caller may see; undefined if the caller may see all rows.
 */
export function visibilitySql({ principals }: Visibility, payloadColumn: string): SqlFragment | undefined {
  if (principals === 'all') return undefined
  return {
    sql: `EXISTS (SELECT 1 FROM json_each(${payloadColumn}, '$.visible_to') v WHERE typeof(v.key) = 'integer'
      AND v.type = 'text' AND (v.value = '*' OR v.value IN (SELECT p.value FROM json_each(?) p)))`,
    parameters: [JSON.stringify(principals)],
  }
}
