import { join } from 'node:path'
import Sqlite from '../../src/storage/sqlite/driver.ts'

/** Changes that no process of the runtime would make, straight in the file. */
export function change(dataDir: string, sql: string): void {
  const database = new Sqlite(join(dataDir, 'workbase.db'))
  database.prepare(sql).run()
  database.close()
}
