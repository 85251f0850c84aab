import { serveOperations } from '../../base/threads.ts'
import { Connection } from './connection.ts'
import { readOps, writeOps } from './ops.ts'

/** Path of a store, and the operations that the thread runs on it. The store exists and is migrated. */
export interface WorkerData {
  readonly path: string
  readonly role: 'reader' | 'writer'
}

serveOperations(({ path, role }: WorkerData) => {
  const connection = new Connection(path)
  if (role === 'writer') connection.makeDurable()
  else connection.makeReadOnly()
  return {
    ops: role === 'writer' ? writeOps(connection) : readOps(connection),
    close: () => connection.close(),
  }
})
