import { runApart } from './apart.ts'
import type { Pace, Paced } from './pace.ts'

/** Sends requests at a fixed pace from their own process. */
export function paced(pace: Pace): Promise<Paced> {
  return runApart<Paced>('pace.ts', pace).result
}
