import { serveOperations } from '../base/threads.ts'
import { openEmbeddedStore } from '../storage/open.ts'
import { createPassageOperations } from './passage-operations.ts'

/** Worker thread with its own connection to the store. */
serveOperations((data: { path: string }) => {
  const opening = openEmbeddedStore({ path: data.path, threads: false, isOpenElsewhere: true })
  return {
    ops: createPassageOperations(opening.then(store => store.content)),
    close: () => opening.then(store => store.close()),
  }
})
