import { serveOperations } from '../base/threads.ts'
import { openEmbeddedStore } from '../storage/open.ts'
import { createPassageOperations } from './passage-operations.ts'

/** Serves the passage operations on a worker thread, with a separate connection to the store. */
serveOperations((data: { path: string }) => {
  const opening = openEmbeddedStore({ path: data.path, threads: false, isOpenElsewhere: true })
  return {
    ops: createPassageOperations(opening.then(store => store.content)),
    close: () => opening.then(store => store.close()),
  }
})
