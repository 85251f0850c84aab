import { serveOperations } from '../../base/threads.ts'
import { SqliteConnection } from './connection.ts'
import { createReadOperations, createWriter } from './operations.ts'

/** Path of a migrated store, and whether the thread reads from the store or writes to it. */
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
