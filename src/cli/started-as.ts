import { existsSync, realpathSync } from 'node:fs'
import { isAbsolute, join, relative, sep } from 'node:path'
import { hostFacts } from '../base/host-facts.ts'
import { packageRoot } from '../base/package.ts'
import { shellWord } from '../base/shell-word.ts'
import { type Environment, pathFolders } from './environment.ts'
import type { Io } from './io.ts'

/** A program and what comes before its own arguments. */
export interface Start {
  readonly command: string
  readonly args: readonly string[]
}

/**
 * How other programs start this one: by its name where that leads here, by npx where it came from there, else by the
 * absolute paths of Node.js and of its own file.
 */
export function startedAs({ env, script }: Pick<Io, 'env' | 'script'>): Start {
  const program = join(packageRoot(), 'bin', 'run.js')
  if (isWithin('_npx', [program, script])) return { command: 'npx', args: ['-y', 'workbase'] }
  if (isNamed(program, env)) return { command: 'wb', args: [] }
  return { command: hostFacts.nodePath, args: [program] }
}

/**
 * Returns the words with which a person starts this program in the working directory: `wb` where that is on the path,
 * `npx workbase` where a package manager started it from a folder that is not, and else `node` with its own file.
 */
export function typedAs({ env, script, cwd }: Pick<Io, 'env' | 'script' | 'cwd'>): string {
  const program = join(packageRoot(), 'bin', 'run.js')
  if (isNamed(program, env)) return 'wb'
  if (isWithin('node_modules', [program, script])) return 'npx workbase'
  const near = relative(cwd, program)
  return `node ${shellWord(near.startsWith('..') ? program : near)}`
}

function isWithin(folder: string, paths: readonly string[]): boolean {
  return paths.some(path => path.split(sep).includes(folder))
}

/** Whether `wb`, where another program looks for it, is this one; npm puts folders of a project first for itself alone. */
function isNamed(program: string, environment: Environment): boolean {
  const name = hostFacts.platform === 'win32' ? 'wb.cmd' : 'wb'
  const folder = pathFolders(environment).find(
    path => isAbsolute(path) && !path.endsWith(join('node_modules', '.bin')) && existsSync(join(path, name)),
  )
  if (folder === undefined) return false
  // On Windows it is a script beside the packages that are installed globally.
  const led =
    hostFacts.platform === 'win32'
      ? join(folder, 'node_modules', 'workbase', 'bin', 'run.js')
      : join(folder, name)
  return existsSync(led) && realpathSync(led) === realpathSync(program)
}
