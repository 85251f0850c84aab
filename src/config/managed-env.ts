import { isUtf8 } from 'node:buffer'
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writePrivateFile } from '../base/private-file.ts'
import { WbError } from '../contract/errors.ts'

const sizeBytesMax = 65_536

/** Returns the path of the managed file: the file in the data directory that contains provider keys. */
function managedEnvPath(dataDir: string): string {
  return join(dataDir, '.env')
}

/** State of the managed file. */
export interface ManagedEnv {
  readonly path: string
  readonly present: boolean
  /** True if the file can be created or replaced. */
  readonly writable: boolean
}

export function readManagedEnvState(dataDir: string): ManagedEnv {
  const path = managedEnvPath(dataDir)
  return { path, present: existsSync(path), writable: isWritable(dirname(path)) }
}

/** Returns true if files can be created in a folder, or in its nearest existing parent. */
function isWritable(folder: string): boolean {
  if (!existsSync(folder) && dirname(folder) !== folder) return isWritable(dirname(folder))
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Returns the variables of the managed file; empty if it does not exist.
 *
 * @throws validation_error  when it is larger than 64 KB, or a line is not an assignment; the message contains
 *   the number of the line, but never its text
 */
export function readManagedEnv(dataDir: string): Map<string, string> {
  const path = managedEnvPath(dataDir)
  if (!existsSync(path)) return new Map()
  if (statSync(path).size > sizeBytesMax) throw new WbError('validation_error', `${path}: larger than 64 KB`)
  const { variables, badLine } = parseManagedEnv(readFileSync(path, 'utf8'))
  if (badLine !== undefined)
    throw new WbError('validation_error', `${path}: line ${badLine} is not NAME="value"`, {
      hint: 'Correct the line, or remove it.',
    })
  return variables
}

/**
 * Sets variables in the managed file, and does not change its other lines. Reads and replaces the file synchronously.
 * The replacement is atomic.
 *
 * @param values  values by name, without control characters
 * @throws conflict  when the existing file cannot be parsed, or would become larger than 64 KB; it is not
 *   changed
 */
export function writeManagedEnv(dataDir: string, values: ReadonlyMap<string, string>): void {
  const path = managedEnvPath(dataDir)
  const stored = existsSync(path) ? readFileSync(path) : Buffer.alloc(0)
  if (!isUtf8(stored))
    throw unwritable('the file .env in the data directory is not UTF-8', 'Save it as UTF-8.')
  const before = stored.toString('utf8')
  const { badLine } = parseManagedEnv(before)
  if (badLine !== undefined)
    throw unwritable(
      `line ${badLine} of the file .env in the data directory is not NAME="value"`,
      'Correct the line by hand.',
    )
  const after = withAssignments(before, values)
  if (Buffer.byteLength(after) > sizeBytesMax)
    throw unwritable(
      'the file .env in the data directory would become larger than 64 KB',
      'Remove the variables that you do not need.',
    )
  if (values.size > 0) writePrivateFile(path, after)
}

function unwritable(message: string, hint: string): WbError {
  return new WbError('conflict', `${message}; nothing was written`, { hint })
}

/**
 * Sets variables in the content of a file. Each variable is assigned once: at its first assignment, or at the end if
 * the file does not assign it.
 */
export function withAssignments(text: string, values: ReadonlyMap<string, string>): string {
  const remaining = new Map(values)
  const lines = linesOf(text).flatMap(line => {
    const name = assignment.exec(line.trim())?.[1]
    if (name === undefined || !values.has(name)) return [line]
    const value = remaining.get(name)
    remaining.delete(name)
    return value === undefined ? [] : [assignmentLine(name, value)]
  })
  while (lines.at(-1) === '') lines.pop()
  return [...lines, ...[...remaining].map(([name, value]) => assignmentLine(name, value)), ''].join('\n')
}

function assignmentLine(name: string, value: string): string {
  return `${name}="${value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`
}

const assignment =
  /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^"'#\s][^#]*?)?)\s*(?:#.*)?$/

/**
 * Parses lines of the form `NAME="value"`. In double quotes, a backslash escapes the next character, and `\n`
 * is a line feed.
 *
 * @returns `badLine`: number of the first invalid line, at which parsing stops
 */
export function parseManagedEnv(text: string): { variables: Map<string, string>; badLine?: number } {
  const variables = new Map<string, string>()
  for (const [index, line] of linesOf(text).entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue
    const match = assignment.exec(line.trim())
    if (!match) return { variables, badLine: index + 1 }
    const [, name, doubleQuoted, singleQuoted, unquoted] = match
    const value = doubleQuoted === undefined ? (singleQuoted ?? unquoted ?? '') : unescapeValue(doubleQuoted)
    variables.set(name!, value)
  }
  return { variables }
}

function linesOf(text: string): string[] {
  return text.replace(/^\ufeff/, '').split(/\r?\n/)
}

function unescapeValue(quoted: string): string {
  return quoted.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
}
