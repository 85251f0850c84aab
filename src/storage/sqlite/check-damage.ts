import type { AnyTable } from '../rows.ts'
import type { ReadableTable, StoreCheck } from '../storage-driver.ts'
import { tables } from '../tables.ts'
import { rowProblem } from '../validated-rows.ts'
import Database from './driver.ts'
import { migrations } from './migrations/index.ts'

export interface DamageReport {
  readonly checks: readonly StoreCheck[]
  readonly readable: readonly ReadableTable[]
}

const problemsMax = 20
const examplesMax = 3
const reasonChars = 80

/** Checks the structure of the file. @see https://www.sqlite.org/pragma.html#pragma_integrity_check */
export function checkIntegrity(database: Database.Database): StoreCheck {
  const wholeFile = problemsOf(database, String(problemsMax))
  const messages = wholeFile.isAborted ? checkEachTable(database) : wholeFile.problems
  const problems = (messages.length > 0 ? messages : wholeFile.problems).map(text =>
    withNames(database, text),
  )
  return { check: 'damage in the file', count: problems.length, examples: problems.slice(0, problemsMax) }
}

/** Checks one table at a time. Used if damage aborts the check of the whole file. */
function checkEachTable(database: Database.Database): string[] {
  const names = tryRead(() =>
    database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).pluck().all(),
  )
  if (!Array.isArray(names)) return []
  return names.flatMap(name => {
    const { problems, isAborted } = problemsOf(database, `'${name}'`)
    return isAborted ? problems.map(text => `${name}: ${text}`) : problems
  })
}

function problemsOf(database: Database.Database, argument: string) {
  try {
    const rows = database.pragma(`integrity_check(${argument})`) as { integrity_check: string }[]
    const problems = rows.flatMap(row => row.integrity_check.split('\n')).filter(text => text !== 'ok')
    return { problems, isAborted: false }
  } catch (error) {
    // Indexes are computed from JSON, so a row with invalid JSON aborts the check.
    if (error instanceof Database.SqliteError) return { problems: [error.message], isAborted: true }
    throw error
  }
}

/** Adds the name of a table or index to a message that identifies it only by the number of its root page. */
function withNames(database: Database.Database, problem: string): string {
  return problem.replace(/\bTree (\d+)\b/, (tree, page: string) => {
    const name = tryRead(() =>
      database.prepare('SELECT name FROM sqlite_schema WHERE rootpage = ?').pluck().get(Number(page)),
    )
    return typeof name === 'string' ? `${name} (tree ${page})` : tree
  })
}

/**
 * Compares tables and indexes with those of a new store. Ignores the tables of collections, which `contentChecks`
 * checks.
 */
export function checkSchema(database: Database.Database): StoreCheck {
  const fresh = new Database(':memory:')
  for (const step of migrations) fresh.exec(step)
  const [expected, actual] = [schemaOf(fresh), schemaOf(database)]
  fresh.close()
  const different = [...expected].filter(([name, sql]) => actual.get(name) !== sql).map(([name]) => name)
  return {
    check: 'tables and indexes that are missing or changed',
    count: different.length,
    examples: different.slice(0, examplesMax),
  }
}

function schemaOf(database: Database.Database): ReadonlyMap<string, string> {
  const rows = database
    .prepare<[], { name: string; sql: string }>(
      'SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name',
    )
    .all()
  return new Map(rows.map(({ name, sql }) => [name, sql]))
}

/** Reads and validates every control row, and counts the content records. */
export function checkRows(database: Database.Database): DamageReport {
  const results = (Object.values(tables) as AnyTable[]).map(table => readTable(database, table))
  const records = countReadable(database, 'record', 'record')
  return {
    checks: results.map(({ check }) => check),
    readable: [...results.map(({ readable }) => readable), records],
  }
}

function readTable(
  database: Database.Database,
  table: AnyTable,
): { check: StoreCheck; readable: ReadableTable } {
  const examples: string[] = []
  let [rows, problemCount] = [0, 0]
  const addProblem = (problem: string) => {
    if (problemCount++ < examplesMax) examples.push(problem)
  }
  const areAllVisited = visitRows(database, table.name, 'ordinal', 'body', ({ id, value }) => {
    const reason = damageReason(table, value)
    if (reason === undefined) rows++
    else addProblem(`row ${id}: ${reason.slice(0, reasonChars)}`)
  })
  if (!areAllVisited) addProblem('rows on pages that cannot be read')
  return {
    check: { check: `damaged rows in ${table.name}`, count: problemCount, examples },
    readable: { table: table.name, rows, isComplete: problemCount === 0 },
  }
}

function damageReason(table: AnyTable, body: unknown): string | undefined {
  try {
    return rowProblem(table, JSON.parse(String(body)))
  } catch {
    return 'not valid JSON'
  }
}

function countReadable(database: Database.Database, table: string, id: string): ReadableTable {
  let rows = 0
  const isComplete = visitRows(database, table, id, 'payload', () => {
    rows++
  })
  return { table, rows, isComplete }
}

/**
 * Visits the rows of a table without using an index. If a page cannot be read, continues with the rows after
 * that page, from the last row backward.
 *
 * @returns true if all pages could be read
 */
function visitRows(
  database: Database.Database,
  table: string,
  id: string,
  value: string,
  visit: (row: { id: number; value: unknown }) => void,
): boolean {
  let last: number | undefined
  for (const direction of ['ASC', 'DESC']) {
    try {
      const rows = database
        .prepare<[], { id: number; value: unknown }>(
          `SELECT ${id} AS id, ${value} AS value FROM ${table} NOT INDEXED ORDER BY ${id} ${direction}`,
        )
        .iterate()
      for (const row of rows) {
        if (direction === 'DESC' && last !== undefined && row.id <= last) return false
        visit(row)
        if (direction === 'ASC') last = row.id
      }
      return direction === 'ASC'
    } catch (error) {
      if (!(error instanceof Database.SqliteError)) throw error
    }
  }
  return false
}

function tryRead(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return undefined
  }
}
