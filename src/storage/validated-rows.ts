import { LRUCache } from 'lru-cache'
import { damagedStore } from './damaged-store.ts'
import { rowSchemas } from './row-schemas.ts'
import type { AnyTable, RowStore, Stored } from './rows.ts'
import { tables } from './tables.ts'

const schemas = new Map(
  Object.entries(tables).map(([key, { name }]) => [name, rowSchemas[key as keyof typeof tables]]),
)

/** Maximum length of one cached row and of all cached rows, in UTF-16 units. */
const cachedCharsMax = { row: 16_384, all: 2_000_000 }

/** Valid rows as JSON strings, each with its table. */
type ValidRowCache = LRUCache<string, AnyTable>

/**
 * Wraps a row store, and validates each row that is read against the schema of its table. An invalid row is reported as
 * damage, because only a change on disk can cause it. Valid rows are cached by their JSON and not validated again,
 * because each turn of a conversation reads the same agent, workspace and services.
 */
export function withValidatedRows(rows: RowStore): RowStore {
  const validRows: ValidRowCache = new LRUCache({
    maxSize: cachedCharsMax.all,
    maxEntrySize: cachedCharsMax.row,
    sizeCalculation: (_table, json) => json.length + 1,
  })
  return {
    ...rows,
    async get(table, key, tags) {
      const stored = await rows.get(table, key, tags)
      return stored && requireValid(table, stored, validRows)
    },
    async list(table, query) {
      const storedRows = await rows.list(table, query)
      for (const stored of storedRows) requireValid(table, stored, validRows)
      return storedRows
    },
    feed: {
      ...rows.feed,
      async read(table, query) {
        const slice = await rows.feed.read(table, query)
        for (const stored of slice.rows) requireValid(table, stored, validRows)
        return slice
      },
    },
  }
}

/** @throws control_plane_unavailable  the row is damaged */
function requireValid<S extends Stored<object>>(table: AnyTable, stored: S, validRows: ValidRowCache): S {
  if (validRows.get(stored.text) === table) return stored
  const problem = rowProblem(table, stored.row)
  if (problem === undefined) {
    validRows.set(stored.text, table)
    return stored
  }
  throw damagedStore(`row ${stored.ordinal} of ${table.name}`, new Error(problem))
}

/** Returns the name of the first invalid field and the reason; undefined for a valid row. */
export function rowProblem({ name }: AnyTable, row: unknown): string | undefined {
  const result = schemas.get(name)?.safeParse(row)
  if (!result || result.success) return undefined
  const { path, message } = result.error.issues[0]!
  return `${path.map(String).join('.') || 'the row'}: ${message}`
}
