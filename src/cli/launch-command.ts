import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, relative, sep } from 'node:path'
import { hostFacts } from '../base/host-facts.ts'
import { packageRoot } from '../base/package.ts'
import { shellWord } from '../base/shell-word.ts'
import { type Environment, pathFolders } from './environment.ts'
import type { Io } from './io.ts'

/** A program, and the arguments that precede those of `wb`. */
export interface LaunchCommand {
  readonly command: string
  readonly args: readonly string[]
}

/**
 * Returns how other programs start `wb`: by name if it is on the PATH, with npx if it was started that way,
 * else by the absolute paths of Node.js and the script.
 */
export function launchCommand({ env, script }: Pick<Io, 'env' | 'script'>): LaunchCommand {
  const program = join(packageRoot(), 'bin', 'run.js')
  if (isInFolder('_npx', [program, script])) return { command: 'npx', args: ['-y', 'workbase'] }
  if (isOnPathAsWb(program, env)) return { command: 'wb', args: [] }
  return { command: hostFacts.nodePath, args: [program] }
}

/**
 * Returns what a user types to start this program in the working directory: `wb` if it is on the PATH, `npx
 * workbase` if a package manager started it, else `node` and the script.
 */
export function typedProgram({ env, script, cwd }: Pick<Io, 'env' | 'script' | 'cwd'>): string {
  const program = join(packageRoot(), 'bin', 'run.js')
  if (isOnPathAsWb(program, env)) return 'wb'
  if (isInFolder('node_modules', [program, script])) return 'npx workbase'
  const near = relative(cwd, program)
  return `node ${shellWord(near.startsWith('..') ? program : near)}`
}

/**
 * Replaces `wb` where a line of a message starts with a command, or suggests one, by the words that start this program.
 */
export function withTypedProgram(text: string, io: Pick<Io, 'env' | 'script' | 'cwd'>): string {
  return text.replace(
    /(^ *|\bdid you mean |&& )wb (?=[a-z-])/gm,
    (_, before: string) => `${before}${typedProgram(io)} `,
  )
}

function isInFolder(folder: string, paths: readonly string[]): boolean {
  return paths.some(path => path.split(sep).includes(folder))
}

/**
 * Returns true if `wb` on the PATH is this program. Folders that npm adds to the PATH for one project are
 * ignored.
 */
function isOnPathAsWb(program: string, environment: Environment): boolean {
  const name = hostFacts.platform === 'win32' ? 'wb.cmd' : 'wb'
  const folder = pathFolders(environment).find(
    path => isAbsolute(path) && !path.endsWith(join('node_modules', '.bin')) && existsSync(join(path, name)),
  )
  if (folder === undefined) return false
  // On Windows it is a script beside the packages that are installed globally.
  const script =
    hostFacts.platform === 'win32'
      ? join(folder, 'node_modules', 'workbase', 'bin', 'run.js')
      : join(folder, name)
  return existsSync(script) && (realpathSync(script) === realpathSync(program) || isWrapper(script, program))
}

const wrapperBytesMax = 8_192

/** Returns true for a script that starts this program, as pnpm installs. */
function isWrapper(path: string, program: string): boolean {
  if (statSync(path).size > wrapperBytesMax) return false
  const text = readFileSync(path, 'utf8')
  return text.includes(program) || text.includes('/workbase/bin/run.js')
}
