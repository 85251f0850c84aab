import { join } from 'node:path'
import Sqlite from '../../src/storage/sqlite/driver.ts'

/** Changes rows directly in the file, for states that no process of the runtime would write. */
export function changeDatabase(dataDir: string, sql: string): void {
  const database = new Sqlite(join(dataDir, 'workbase.db'))
  database.prepare(sql).run()
  database.close()
}
