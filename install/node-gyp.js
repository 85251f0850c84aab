#!/usr/bin/env node
/**
 * The `node-gyp` that compiles dependencies in a clone, because npm puts `node_modules/.bin` before its own. Starts npm's own
 * node-gyp with the folder of Node's headers. If something is missing, it says so and does not start.
 */
import { spawnSync } from 'node:child_process'
import { findToolchain, hasCompiledSqlite } from './toolchain.js'

const { npm_package_name: name, npm_package_version: version, npm_config_node_gyp: nodeGyp } = process.env

/** Compiles the package in this folder, and returns the exit status. */
function compile() {
  const { nodedir, missing } = findToolchain(nodeGyp)
  if (missing) {
    console.error(missing)
    return 1
  }
  const args = [nodeGyp, ...process.argv.slice(2), ...(nodedir ? [`--nodedir=${nodedir}`] : [])]
  return spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1
}

if (name !== 'better-sqlite3') process.exitCode = compile()
// npm compiles every package with a `binding.gyp`, also this one, which holds what it would compile.
else if (version.startsWith('13.')) process.exitCode = 0
else process.exitCode = hasCompiledSqlite ? 1 : compile()
