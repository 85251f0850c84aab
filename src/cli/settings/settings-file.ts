import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { isObject } from '../../base/is-object.ts'
import { writePrivateFile } from '../../base/private-file.ts'
import { shellWord } from '../../base/shell-word.ts'
import { UsageError } from '../faults.ts'

/** What a file of this person's settings holds. It has no prototype, as its keys are names that people give. */
export type Settings = Record<string, unknown>

/**
 * A JSON object of the settings folder.
 *
 * @returns `none` where there is no such file, `broken` where it holds something else
 * @throws UsageError  another user can write it, it is not a regular file, or it cannot be read
 */
export function readSettings(path: string): Settings | 'none' | 'broken' {
  try {
    refuseOpen(dirname(path))
    refuseOpen(path)
    // Who reads a pipe waits for ever, and hears no signal.
    if (!statSync(path).isFile()) throw new UsageError(`${path} is not a regular file`, [awayLine(path)])
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isObject(content) ? bare(content) : 'broken'
  } catch (error) {
    if (error instanceof SyntaxError) return 'broken'
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    if (code === 'ENOENT') return 'none'
    throw code === undefined
      ? error
      : new UsageError(`${path} cannot be read (${code})`, [mending(path, code)])
  }
}

/** The line after which a file can be read, or is out of the way. */
function mending(path: string, code: string): string {
  const folder = dirname(path)
  if (code === 'ENOTDIR') return awayLine(folder)
  if (code !== 'EACCES') return awayLine(path)
  try {
    const isOwn = statSync(path).uid === hostFacts.uid
    return isOwn ? `chmod u+rw ${shellWord(path)}` : awayLine(path)
  } catch {
    return `chmod u+rwx ${shellWord(folder)}`
  }
}

/** Keeps what stands there, under another name. */
export function awayLine(path: string): string {
  return `mv ${shellWord(path)} ${shellWord(`${path}.old`)}`
}

/** Write one, in one step, for its owner alone. */
export function writeSettings(path: string, value: object): void {
  writePrivateFile(path, `${JSON.stringify(value, null, 2)}\n`)
}

/** Addresses that credentials are sent to stand there. */
function refuseOpen(path: string): void {
  if (hostFacts.platform === 'win32' || (statSync(path).mode & 0o022) === 0) return
  throw new UsageError(`${path} can be written by others, so that its words are not believed`, [
    `chmod go-w ${shellWord(path)}`,
  ])
}

/** The same without a prototype. */
export function bare<T extends object>(value: T): T {
  return Object.assign(Object.create(null), value)
}
