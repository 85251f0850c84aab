import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { isObject } from '../../base/is-object.ts'
import { writePrivateFile } from '../../base/private-file.ts'
import { shellWord } from '../../base/shell-word.ts'
import { UsageError } from '../errors.ts'

/** Content of a settings file. It has no prototype, because its keys are user-defined names. */
export type Settings = Record<string, unknown>

/**
 * Reads a JSON object from the settings folder.
 *
 * @returns `none` if the file does not exist, `broken` if it does not contain a JSON object
 * @throws UsageError  other users can write to it or its folder, it is not a regular file, or it cannot be read
 */
export function readSettings(path: string): Settings | 'none' | 'broken' {
  try {
    requireWritableByOwnerOnly(dirname(path))
    requireWritableByOwnerOnly(path)
    // Reading a pipe could block forever, and signals would not be handled.
    if (!statSync(path).isFile())
      throw new UsageError(`${path} is not a regular file`, [moveAwayCommand(path)])
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isObject(content) ? withoutPrototype(content) : 'broken'
  } catch (error) {
    if (error instanceof SyntaxError) return 'broken'
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    if (code === 'ENOENT') return 'none'
    throw code === undefined
      ? error
      : new UsageError(`${path} cannot be read (${code})`, [repairCommand(path, code)])
  }
}

/** Returns the command that makes a file and its folder readable, or renames the one that cannot be read. */
function repairCommand(path: string, code: string): string {
  const folder = dirname(path)
  if (code === 'ENOTDIR') return moveAwayCommand(folder)
  if (code !== 'EACCES') return moveAwayCommand(path)
  try {
    const isOwner = statSync(path).uid === hostFacts.uid
    return isOwner ? `chmod u+rw ${shellWord(path)}` : moveAwayCommand(path)
  } catch {
    return `chmod u+rwx ${shellWord(folder)}`
  }
}

/** Returns the command that renames a file or folder, so that a new one can be created. */
export function moveAwayCommand(path: string): string {
  return `mv ${shellWord(path)} ${shellWord(`${path}.old`)}`
}

/** Writes a settings file atomically. Only its owner can read it. */
export function writeSettings(path: string, value: object): void {
  writePrivateFile(path, `${JSON.stringify(value, null, 2)}\n`)
}

/**
 * Checks that other users cannot write to a path, because settings contain addresses to which credentials are sent.
 *
 * @throws UsageError  when other users can write to it
 */
function requireWritableByOwnerOnly(path: string): void {
  if (hostFacts.platform === 'win32' || (statSync(path).mode & 0o022) === 0) return
  throw new UsageError(`${path} is not used because other users can write to it`, [
    `chmod go-w ${shellWord(path)}`,
  ])
}

/** Returns a copy without a prototype, so that it does not inherit keys such as `constructor`. */
export function withoutPrototype<T extends object>(value: T): T {
  return Object.assign(Object.create(null), value)
}
