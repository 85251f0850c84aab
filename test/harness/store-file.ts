import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import Database from '../../src/storage/sqlite/driver.ts'

export type Row = Record<string, unknown>

/** Read-only access to the store file of a runtime. */
export interface StoreFile {
  all(sql: string, ...values: unknown[]): Row[]
  one(sql: string, ...values: unknown[]): Row
  /** Names of all tables except internal ones of SQLite. */
  tables(): string[]
  /** Returns the tables with a text in any column. */
  tablesContaining(text: string): string[]
  /** Returns every row of every table, for comparison. */
  dump(): string
  /** The columns of a collection and of its default space. */
  collection(workspaceId: string, name: string): Row | undefined
  /** Number of records in the active posting index of a collection. */
  indexedRecords(collection: unknown): number
  /** Vectors of the current space, by record ID. */
  vectors(workspaceId: string, name: string): Map<string, Float32Array>
  /** Reads from a single state of the store. */
  snapshot<T>(read: () => T): T
  close(): void
}

/*
 * Direct access to the file of the embedded store. Tests need it to see what is on disk, to damage a store, and to create
 * states that no runtime writes. Other tests open stores with `src/storage/open.ts`.
 */

/** Opens a database file, or a copy of its bytes in memory. The caller must close it. */
export function openDatabase(
  source: string | Buffer,
  options: { readonly?: boolean } = {},
): Database.Database {
  return new Database(source, options)
}

/** Runs SQL statements on the store file of a data directory. */
export function changeStoreFile(dataDir: string, sql: string): void {
  const database = openDatabase(join(dataDir, 'workbase.db'))
  try {
    database.exec(sql)
  } finally {
    database.close()
  }
}

/** Opens the store file of a data directory read-only. */
export function storeFile(dataDir: string): StoreFile {
  const database = new Database(join(dataDir, 'workbase.db'), { readonly: true })
  const close = () => void database.close()
  onTestFinished(close)
  const all = (sql: string, ...values: unknown[]) => database.prepare(sql).all(...values) as Row[]
  const tables = () =>
    all("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name").map(
      ({ name }) => String(name),
    )
  const contentsOf = (name: string) => {
    const [{ wr }] = all('SELECT wr FROM pragma_table_list WHERE name = ?', name) as [Row]
    return JSON.stringify(all(`SELECT * FROM ${name} ORDER BY ${wr ? 1 : 'rowid'}`), (_, value) =>
      value?.type === 'Buffer' ? Buffer.from(value.data).toString('base64') : value,
    )
  }
  const collection = (workspaceId: string, name: string) =>
    all(
      `SELECT s.*, s.id AS space, c.* FROM collection c JOIN vector_space s ON s.collection = c.id
        WHERE c.workspace_id = ? AND c.name = ? AND s.name = 'default'`,
      workspaceId,
      name,
    )[0]
  return {
    all,
    one: (sql, ...values) => all(sql, ...values)[0]!,
    tables,
    tablesContaining: text => tables().filter(name => contentsOf(name).includes(text)),
    dump: () =>
      tables()
        .map(name => `${name}: ${contentsOf(name)}`)
        .join('\n'),
    collection,
    indexedRecords: id =>
      Number(
        all(
          `SELECT coalesce(sum(slots - deleted), 0) AS n FROM posting_segment
            WHERE state = 1 AND posting_index = (SELECT id FROM posting_index WHERE collection = ? AND active = 1)`,
          id,
        )[0]!.n,
      ),
    vectors(workspaceId, name) {
      const { id, space, generation } = collection(workspaceId, name)!
      const rows = all(
        `SELECT r.id, v.data FROM record r JOIN vec_${space}_${generation} v USING (record) WHERE r.collection = ?`,
        id,
      )
      return new Map(
        rows.map(row => [String(row.id), new Float32Array(Uint8Array.from(row.data as Buffer).buffer)]),
      )
    },
    snapshot: read => database.transaction(read)(),
    close,
  }
}
