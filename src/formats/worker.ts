import { serveOperations } from '../base/threads.ts'
import { readNatively } from './native.ts'
import { readFileText } from './read-file.ts'

/** Operations of the thread that reads files. */
const operations = {
  read: ({ path, name, canBeText }: { path: string; name: string; canBeText: boolean }) =>
    readFileText(path, name, canBeText),
  readNatively,
}
export type FileOperations = typeof operations

serveOperations(() => ({ ops: operations, close: () => {} }))
