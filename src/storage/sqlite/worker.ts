import { serveOperations } from '../../base/threads.ts'
import { SqliteConnection } from './connection.ts'
import { createReadOperations, createWriter } from './operations.ts'

/** Path of a store that exists and is migrated, and the operations that the thread runs on it. */
export interface WorkerData {
  readonly path: string
  readonly role: 'reader' | 'writer'
}

serveOperations(({ path, role }: WorkerData) => {
  const connection = new SqliteConnection(path)
  if (role === 'reader') {
    connection.makeReadOnly()
    return { ops: createReadOperations(connection), close: () => connection.close() }
  }
  connection.makeDurable()
  const writer = createWriter(connection)
  writer.operations.maintain({})
  return {
    ops: writer.operations,
    close: async () => {
      await writer.close()
      connection.close()
    },
  }
})
