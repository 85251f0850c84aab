/**
 * Makes sure that better-sqlite3 can be downloaded or compiled, or says in one line what is missing.
 *
 * When the package is installed from a registry or a tarball, npm runs this before the install scripts of all
 * dependencies. In a clone it runs after them; there `node-gyp.js` has done the same. A Node that has the compiled SQLite
 * of better-sqlite3 13 needs none of it.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { cacheHeaders, findToolchain, hasCompiledSqlite } from './toolchain.js'

function folderOfSqlite() {
  try {
    return dirname(createRequire(import.meta.url).resolve('better-sqlite3/package.json'))
  } catch {
    return undefined
  }
}

/** Downloads the compiled SQLite, which its own install script then takes from the cache. */
function download(folder) {
  const program = createRequire(join(folder, 'package.json')).resolve('prebuild-install/bin.js')
  return spawnSync(process.execPath, [program], { cwd: folder, stdio: 'ignore' }).status === 0
}

/** Copies headers to node-gyp's cache: nothing else reaches the node-gyp that the script of a dependency starts. */
function copyToCache(nodeGyp, nodedir) {
  const folder = mkdtempSync(join(tmpdir(), 'workbase-headers-'))
  const archive = join(folder, 'headers.tar')
  // On Debian the folder is a link, which is followed.
  spawnSync('tar', ['-chf', archive, '-C', dirname(nodedir), join(basename(nodedir), 'include/node')])
  cacheHeaders(nodeGyp, [`--tarball=${archive}`])
  rmSync(folder, { recursive: true })
}

/** Provides what compiling needs. Returns one line that names what is missing; undefined if nothing is. */
function prepare(folder, nodeGyp) {
  if (existsSync(join(folder, 'build/Release/better_sqlite3.node')) || download(folder)) return undefined
  const { nodedir, missing } = findToolchain(nodeGyp)
  if (!missing && !process.env.npm_config_nodedir && nodedir) copyToCache(nodeGyp, nodedir)
  return missing
}

/** Returns one line that says why the install cannot continue; undefined if it can. Other package managers report this themselves. */
function problem() {
  const {
    npm_config_node_gyp: nodeGyp,
    npm_config_user_agent: manager,
    npm_config_omit: omitted,
  } = process.env
  if (hasCompiledSqlite || !nodeGyp || !manager?.startsWith('npm/') || omitted?.includes('optional'))
    return undefined
  const folder = folderOfSqlite()
  if (folder) return prepare(folder, nodeGyp)
  // In a clone: npm has removed it, because it could not be compiled.
  return findToolchain(nodeGyp).missing ?? failed
}

const failed = 'workbase: SQLite was not compiled; npm install --foreground-scripts shows why.'
const found = problem()
if (found) {
  console.error(found)
  process.exitCode = 1
}
