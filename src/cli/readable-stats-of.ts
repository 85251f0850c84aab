import { type Stats, statSync } from 'node:fs'

/** Returns the properties of a file or folder; undefined if it does not exist, or if its path is invalid or not readable. */
export function readableStatsOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}
