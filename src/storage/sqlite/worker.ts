import { serveOperations } from '../../base/threads.ts'
import { SqliteConnection } from './connection.ts'
import { createReadOperations, createWriteOperations } from './operations.ts'

/** Path of a store, and the operations that the thread runs on it. The store exists and is migrated. */
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
