/**
 * A setup file of vitest: records the functions of the product that each test file calls in its process.
 *
 * Writes one JSON file per test file ({@link ExecutedFunctions}) to the folder `WB_FUNCTION_RECORDS`. Calls in worker
 * threads and in child processes are not recorded.
 *
 * @see scripts/test-mutation.ts
 */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { type Profiler, Session } from 'node:inspector/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect } from 'vitest'

/** The functions that a test file calls. Paths are relative to the root. */
export interface ExecutedFunctions {
  readonly test: string
  /** Names of functions by source file. */
  readonly functions: Readonly<Record<string, readonly string[]>>
}

const session = new Session()

beforeAll(async () => {
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true })
})

afterAll(async () => {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  const record: ExecutedFunctions = {
    test: relative('.', expect.getState().testPath!),
    functions: Object.fromEntries(result.flatMap(script => calledFunctions(script))),
  }
  writeFileSync(join(process.env.WB_FUNCTION_RECORDS!, `${randomUUID()}.json`), JSON.stringify(record))
})

/** Returns the path of a script of the product with its called functions, or nothing. */
function calledFunctions({ url, functions }: Profiler.ScriptCoverage): [string, string[]][] {
  const path = relative('.', url.startsWith('file:') ? fileURLToPath(url) : url)
  if (!/^(?:src|commands)\//.test(path)) return []
  const called = functions.filter(({ functionName, ranges }) => functionName !== '' && ranges[0]!.count > 0)
  return called.length === 0 ? [] : [[path, called.map(({ functionName }) => functionName)]]
}
