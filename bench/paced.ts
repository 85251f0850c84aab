import { runBenchProgram } from './bench-program.ts'
import type { Pace, Paced } from './pace.ts'

/** Sends requests at a fixed rate from a separate process. */
export function paced(pace: Pace): Promise<Paced> {
  return runBenchProgram<Paced>('pace.ts', pace).result
}
