import { readFileSync } from 'node:fs'
import { writePrivately } from '../base/private-file.ts'

/** What a file of this person's settings holds. Its objects have no prototype, as their keys are names that people give. */
export type Settings = Record<string, unknown>

/**
 * A JSON object of the settings folder.
 *
 * @returns `none` where there is no such file, `broken` where it holds something else
 * @throws Error  the system does not let it be read
 */
export function readSettings(path: string): Settings | 'none' | 'broken' {
  try {
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'), (_key, value) =>
      isObject(value) ? bare(value) : value,
    )
    return isObject(content) ? content : 'broken'
  } catch (error) {
    if (error instanceof SyntaxError) return 'broken'
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'none'
    throw error
  }
}

/** Write one, in one step, for its owner alone. */
export function writeSettings(path: string, value: object): void {
  writePrivately(path, `${JSON.stringify(value, null, 2)}\n`)
}

function isObject(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The same without a prototype. */
export function bare<T extends object>(value: T): T {
  return Object.assign(Object.create(null), value)
}
