import { serveOperations } from '../../base/threads.ts'
import { ScanWorkers } from '../scan/scan-workers.ts'
import { SqliteConnection } from './connection.ts'
import { convertStoreError } from './faults.ts'
import { createReadOperations, createWriter } from './operations.ts'

/** Path of a migrated store, and whether the thread reads from the store or writes to it. */
export interface WorkerData {
  readonly path: string
  readonly role: 'reader' | 'writer'
}

serveOperations((data: WorkerData) => {
  try {
    return openOperations(data)
  } catch (error) {
    throw convertStoreError(error)
  }
})

function openOperations({ path, role }: WorkerData) {
  const connection = new SqliteConnection(path)
  if (role === 'reader') {
    connection.makeReadOnly()
    const workers = new ScanWorkers()
    return {
      ops: createReadOperations(connection, workers),
      close: async () => {
        await workers.close()
        connection.close()
      },
    }
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
}
