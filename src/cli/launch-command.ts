import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, relative, sep } from 'node:path'
import { hostFacts } from '../base/host-facts.ts'
import { once } from '../base/once.ts'
import { packageRoot } from '../base/package.ts'
import { shellWord } from '../base/shell-word.ts'
import { type Environment, pathFolders } from './environment.ts'
import type { Io } from './io.ts'

/** A program, and the arguments that precede the arguments of `wb`. */
export interface LaunchCommand {
  readonly command: string
  readonly args: readonly string[]
}

/**
 * Returns the command with which other programs start `wb`: `npx` if npx started this process, `wb` if it is on the
 * PATH, otherwise the absolute paths of Node.js and the script.
 */
export function launchCommand({ env, script }: Pick<Io, 'env' | 'script'>): LaunchCommand {
  const program = join(packageRoot(), 'bin', 'run.js')
  if (isInFolder('_npx', [program, script])) return { command: 'npx', args: ['-y', 'workbase'] }
  if (isOnPathAsWb(program, env)) return { command: 'wb', args: [] }
  return { command: hostFacts.nodePath, args: [program] }
}

/**
 * Returns the words that a user types to start this program in the working directory: `wb` if it is on the PATH,
 * `npx workbase` if it is in a `node_modules` folder, otherwise `node` and the script.
 */
export function typedProgram({ env, script, cwd }: Pick<Io, 'env' | 'script' | 'cwd'>): string {
  const program = join(packageRoot(), 'bin', 'run.js')
  if (isOnPathAsWb(program, env)) return 'wb'
  if (isInFolder('node_modules', [program, script])) return 'npx workbase'
  const relativePath = relative(cwd, program)
  return `node ${shellWord(relativePath.startsWith('..') ? program : relativePath)}`
}

/**
 * Replaces `wb` with the words that start this program, in lines of a message that start with a command or suggest one.
 */
export function withTypedProgram(text: string, io: Pick<Io, 'env' | 'script' | 'cwd'>): string {
  const program = once(() => typedProgram(io))
  return text.replace(
    /(^ *|\bdid you mean |&& )wb (?=[a-z-])/gm,
    (_, before: string) => `${before}${program()} `,
  )
}

function isInFolder(folder: string, paths: readonly string[]): boolean {
  return paths.some(path => path.split(sep).includes(folder))
}

/**
 * Returns true if `wb` on the PATH is this program. Folders that npm adds to the PATH for a project are ignored.
 */
function isOnPathAsWb(program: string, environment: Environment): boolean {
  const name = hostFacts.platform === 'win32' ? 'wb.cmd' : 'wb'
  const folder = pathFolders(environment).find(
    path => isAbsolute(path) && !path.endsWith(join('node_modules', '.bin')) && existsSync(join(path, name)),
  )
  if (folder === undefined) return false
  // On Windows, `wb.cmd` is in the folder that contains the `node_modules` of global packages.
  const script =
    hostFacts.platform === 'win32'
      ? join(folder, 'node_modules', 'workbase', 'bin', 'run.js')
      : join(folder, name)
  return existsSync(script) && (realpathSync(script) === realpathSync(program) || isWrapper(script, program))
}

const wrapperBytesMax = 8_192

/** Returns true for a script that starts this program. pnpm installs such scripts instead of links. */
function isWrapper(path: string, program: string): boolean {
  try {
    const stats = statSync(path)
    if (!stats.isFile() || stats.size > wrapperBytesMax) return false
    const text = readFileSync(path, 'utf8')
    return text.includes(program) || text.includes('/workbase/bin/run.js')
  } catch {
    // A script that the user cannot read is not a wrapper of this program.
    return false
  }
}
