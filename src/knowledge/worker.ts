import { serveOperations } from '../base/threads.ts'
import { openStore } from '../storage/open.ts'
import type { StoreLocation } from '../storage/storage-driver.ts'
import { createPassageOperations } from './passage-operations.ts'

/** Serves the passage operations on a worker thread, with a separate connection to the store. */
serveOperations((location: StoreLocation) => {
  const opening = openStore(location, { isOpenElsewhere: true })
  return {
    ops: createPassageOperations(opening.then(store => store.content)),
    close: () => opening.then(store => store.close()),
  }
})
