import type { StoreCheck } from '../storage-driver.ts'
import type Database from './driver.ts'

/** A check for one type of problem. Each SQL statement returns a row for each problem, with the string `example`. */
export interface ProblemQuery {
  readonly check: string
  readonly selects: readonly string[]
}

/** Maximum number of examples of a problem. */
export const examplesMax = 3

export function runProblemQuery(database: Database.Database, { check, selects }: ProblemQuery): StoreCheck {
  let count = 0
  const examples: string[] = []
  for (const select of selects)
    for (const { example } of database.prepare<[], { example: string }>(select).iterate()) {
      count++
      if (examples.length < examplesMax) examples.push(example)
    }
  return { check, count, examples }
}
