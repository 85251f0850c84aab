import { type FSWatcher, watch } from 'node:fs'
import { pause } from '../../base/pause.ts'

/** Time without changes after which a folder is compared. Editors and tools write several files at once. */
const quietMs = 300
/** Maximum time from a change to the comparison, while changes continue. */
const delayMaxMs = 3_000
/** Time after which a folder is compared without a change, because the system can lose notifications. */
const fullComparisonMs = 60_000

/**
 * Yields whenever a folder should be compared: after changes below it, and at least every minute.
 *
 * @param onUnwatched  called if the system cannot watch the folder, for example because there are too many subfolders
 */
export async function* folderChanges(
  folder: string,
  { signal, onUnwatched }: { signal: AbortSignal; onUnwatched: (error: unknown) => void },
): AsyncGenerator<void> {
  let lastChangeMs: number | undefined
  let wake = new AbortController()
  const watcher = watchFolder(folder, onUnwatched, () => {
    lastChangeMs = performance.now()
    wake.abort()
  })
  try {
    while (!signal.aborted) {
      await pause(fullComparisonMs, AbortSignal.any([signal, wake.signal]))
      const firstMs = performance.now()
      while (lastChangeMs !== undefined && !signal.aborted) {
        const nowMs = performance.now()
        const waitMs = Math.min(lastChangeMs + quietMs, firstMs + delayMaxMs) - nowMs
        if (waitMs <= 0) break
        await pause(waitMs, signal)
      }
      lastChangeMs = undefined
      wake = new AbortController()
      if (!signal.aborted) yield
    }
  } finally {
    watcher?.close()
  }
}

function watchFolder(
  folder: string,
  onUnwatched: (error: unknown) => void,
  onChange: () => void,
): FSWatcher | undefined {
  try {
    return watch(folder, { recursive: true }, onChange).on('error', onUnwatched)
  } catch (error) {
    onUnwatched(error)
    return undefined
  }
}
