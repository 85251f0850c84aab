import type Database from './driver.ts'

/** One thing that was looked for. */
export interface Check {
  readonly check: string
  /** How often it was found; 0 is well. */
  readonly count: number
  /** Some of them, by key. */
  readonly examples: readonly string[]
}

/** What to look for: each statement selects some of it, as a text `example` a row. */
export interface Search {
  readonly check: string
  readonly selects: readonly string[]
}

const examplesMax = 3

export function lookFor(database: Database.Database, { check, selects }: Search): Check {
  let count = 0
  const examples: string[] = []
  for (const select of selects)
    for (const { example } of database.prepare<[], { example: string }>(select).iterate()) {
      count++
      if (examples.length < examplesMax) examples.push(example)
    }
  return { check, count, examples }
}
