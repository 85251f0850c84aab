import { join } from 'node:path'

/** Name of the environment variable with the folder of bundled programs. */
export const programsVariable = 'WB_TEST_PROGRAMS'

/**
 * Returns the path of a program in `test/fixtures` for a child process. Programs are bundled when the tests start,
 * because loading their sources takes two seconds per process.
 *
 * @param name  path without its ending
 */
export function programPath(name: string): string {
  return join(process.env[programsVariable]!, `${name}.mjs`)
}
