import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Returns true if this Node loads the prebuilt SQLite of a package, see `src/storage/sqlite/driver.ts`. */
export const hasCompiledSqlite = Number(process.versions.napi) >= 10

/**
 * Returns the folder whose `include/node` holds the headers of a Node binary, as Node's own archives, images and
 * system packages have it, or undefined when they are not there or belong to another Node.
 *
 * @param {string} binary   path of the Node binary
 * @param {string} modules  version of its binary interface, as in `process.versions.modules`
 */
export function headersBeside(binary, modules) {
  const prefix = dirname(dirname(realpathSync(binary)))
  const version = join(prefix, 'include/node/node_version.h')
  if (!existsSync(version)) return undefined
  const [, found] = /#define NODE_MODULE_VERSION (\d+)/.exec(readFileSync(version, 'utf8')) ?? []
  return found === modules ? prefix : undefined
}

/**
 * Ensures that node-gyp's cache has the headers of this Node, and downloads them if necessary.
 *
 * @param {string} nodeGyp      path of npm's own node-gyp
 * @param {string[]} [options]  further options of `node-gyp install`
 * @returns {boolean} true if the headers are in the cache
 */
export function cacheHeaders(nodeGyp, options = []) {
  const args = [nodeGyp, 'install', '--ensure', ...options]
  return spawnSync(process.execPath, args, { stdio: 'ignore' }).status === 0
}

/**
 * Checks for everything that compiling SQLite needs.
 *
 * @param {string} nodeGyp  path of npm's own node-gyp
 * @returns {{nodedir?: string, missing?: string}} the folder above `include/node`, unless node-gyp has the headers in
 *   its cache; and in one line what is missing, unless nothing is
 */
export function findToolchain(nodeGyp) {
  const nodedir = process.env.npm_config_nodedir ?? headersBeside(process.execPath, process.versions.modules)
  return { nodedir, missing: missingFrom(missingPrograms(), nodedir !== undefined || cacheHeaders(nodeGyp)) }
}

/** Says in one line what is missing, or returns undefined when nothing is. */
function missingFrom(programs, hasHeaders) {
  const missing = [...programs, ...(hasHeaders ? [] : [`the headers of Node ${process.versions.node}`])]
  if (missing.length === 0) return undefined
  const steps = [
    ...(programs.length > 0 ? [`install ${packagesOf(programs)}`] : []),
    ...(hasHeaders ? [] : ['set npm_config_nodedir to the folder that holds include/node']),
  ]
  return `workbase: cannot compile SQLite without ${missing.join(', ')}: ${steps.join(', ')}, then retry.`
}

/** Returns the programs that compiling needs and that are not installed. On Windows node-gyp looks for its own. */
function missingPrograms() {
  if (process.platform === 'win32') return []
  const { CC = 'gcc', CXX = 'g++', MAKE = 'make', npm_config_python, PYTHON } = process.env
  const runs = command => spawnSync(`${command} --version`, { shell: true, stdio: 'ignore' }).status === 0
  const python = [npm_config_python, PYTHON, 'python3', 'python'].filter(Boolean)
  return [...[CC, CXX, MAKE].filter(command => !runs(command)), ...(python.some(runs) ? [] : ['python3'])]
}

function packagesOf(programs) {
  if (process.platform === 'darwin') return 'the command line tools (xcode-select --install)'
  return existsSync('/usr/bin/apt-get') ? 'them (apt-get install g++ make python3)' : programs.join(', ')
}
