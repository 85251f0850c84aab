import { serveOperations } from '../base/threads.ts'
import { limitUnpacking } from './limit-unpacking.ts'
import { readNatively } from './native.ts'
import { type ReadOptions, readFileText } from './read-file.ts'

/** Operations of the thread that reads files. */
const operations = {
  read: ({ path, name, ...options }: { path: string; name: string } & ReadOptions) =>
    readFileText(path, name, options),
  readNatively,
}
export type FileOperations = typeof operations

// PDF.js also rejects promises that it does not use, for damages that fail the call anyway. They would end the thread.
process.on('unhandledRejection', () => {})
limitUnpacking()

serveOperations(() => ({ ops: operations, close: () => {} }))
