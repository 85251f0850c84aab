import { join } from 'node:path'

/** Folder of the bundled programs, by the name of its variable. */
export const programsVariable = 'WB_TEST_PROGRAMS'

/**
 * A program below `test/fixtures`, for a process of its own. It is bundled when the tests begin, as loading the sources
 * one by one takes a process two seconds.
 *
 * @param name  path without its ending
 */
export function program(name: string): string {
  return join(process.env[programsVariable]!, `${name}.mjs`)
}
