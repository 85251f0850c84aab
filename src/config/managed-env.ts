import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { WbError } from '../contract/errors.ts'

const sizeBytesMax = 65_536

/** The file in the data directory that holds provider keys. */
function managedEnvPath(dataDir: string): string {
  return join(dataDir, '.env')
}

/**
 * The variables of the managed file; none when it does not exist.
 *
 * @throws validation_error  over 64 KB, or a line that is no assignment (the line's number, never its text)
 */
export function readManagedEnv(dataDir: string): Map<string, string> {
  const path = managedEnvPath(dataDir)
  if (!existsSync(path)) return new Map()
  if (statSync(path).size > sizeBytesMax) throw new WbError('validation_error', `${path}: larger than 64 KB`)
  const { variables, badLine } = parseManagedEnv(readFileSync(path, 'utf8'))
  if (badLine !== undefined)
    throw new WbError('validation_error', `${path}: line ${badLine} is not NAME="value"`, {
      hint: 'Correct the line, or take it out.',
    })
  return variables
}

const assignment =
  /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^"'#\s][^#]*?)?)\s*(?:#.*)?$/

/** `NAME="value"` lines; a backslash escapes a backslash or a double quote, `\n` is a line feed. */
export function parseManagedEnv(text: string): { variables: Map<string, string>; badLine?: number } {
  const variables = new Map<string, string>()
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue
    const match = assignment.exec(line.trim())
    if (!match) return { variables, badLine: index + 1 }
    const [, name, quoted, literal, bare] = match
    variables.set(name!, quoted === undefined ? (literal ?? bare ?? '') : unescaped(quoted))
  }
  return { variables }
}

function unescaped(quoted: string): string {
  return quoted.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
}
