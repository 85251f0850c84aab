import { serveOperations } from '../../base/threads.ts'
import { SqliteConnection } from './connection.ts'
import { createReadOperations, createWriteOperations } from './operations.ts'

/** Path of a migrated store, and whether the thread reads from the store or writes to it. */
export interface WorkerData {
  readonly path: string
  readonly role: 'reader' | 'writer'
}

serveOperations(({ path, role }: WorkerData) => {
  const connection = new SqliteConnection(path)
  if (role === 'writer') connection.makeDurable()
  else connection.makeReadOnly()
  return {
    ops: role === 'writer' ? createWriteOperations(connection) : createReadOperations(connection),
    close: () => connection.close(),
  }
})
