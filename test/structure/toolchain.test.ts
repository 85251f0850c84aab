import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { headersBeside } from '../../install/toolchain.js'

function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'wb-toolchain-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Returns the folder of a Node installation with headers for an ABI version, or without headers. */
function nodeFolder(modules?: string): string {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin/node'), '')
  if (modules) writeHeaders(folder, modules)
  return folder
}

function writeHeaders(folder: string, modules: string): void {
  mkdirSync(join(folder, 'include/node'), { recursive: true })
  writeFileSync(join(folder, 'include/node/node_version.h'), `#define NODE_MODULE_VERSION ${modules}\n`)
}

/**
 * Runs an install script with only some programs installed. The `node-gyp` that npm passes to it cannot download
 * headers, and otherwise prints its arguments.
 *
 * @param script    path of the script
 * @param programs  installed programs, in addition to a shell
 */
function run(script: string, programs: readonly string[], env: Record<string, string> = {}) {
  const folder = temporaryFolder()
  const nodeGyp = join(folder, 'node-gyp.js')
  writeFileSync(
    nodeGyp,
    "if (process.argv[2] === 'install') process.exit(1)\nconsole.log(process.argv.slice(2).join(' '))",
  )
  symlinkSync('/bin/sh', join(folder, 'sh'))
  for (const name of programs) symlinkSync('/bin/true', join(folder, name))
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, 'rebuild', '--release'], {
    env: { PATH: folder, npm_config_node_gyp: nodeGyp, ...env },
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

const nodeGyp = resolve('install/node-gyp.js')
const nodedir = { npm_config_nodedir: '/opt/node' }
const compiler = ['gcc', 'g++', 'make', 'python3']

describe('headers of Node', () => {
  test('are found next to its binary, through links', () => {
    const folder = nodeFolder('115')
    const link = join(temporaryFolder(), 'node')
    symlinkSync(join(folder, 'bin/node'), link)
    expect(headersBeside(link, '115')).toBe(folder)
  })

  test('are not found if they are missing or belong to another version', () => {
    expect(headersBeside(join(nodeFolder(), 'bin/node'), '115')).toBeUndefined()
    expect(headersBeside(join(nodeFolder('127'), 'bin/node'), '115')).toBeUndefined()
  })
})

describe.runIf(process.platform === 'linux')('compiling in a clone of the repository', () => {
  test('npm installs the wrapper of node-gyp, which has priority for dependencies', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
      packages: Record<string, { bin?: object; link?: boolean }>
    }
    expect(packages['node_modules/workbase-node-gyp']).toMatchObject({ bin: { 'node-gyp': 'node-gyp.js' } })
    // npm creates the executable of a linked package only after it compiles dependencies.
    expect(packages['node_modules/workbase-node-gyp']).not.toHaveProperty('link')
    expect(readFileSync('.npmrc', 'utf8')).toContain('install-links=true\n')
  })

  test('passes the folder of the headers to node-gyp', () => {
    expect(run(nodeGyp, compiler, nodedir)).toEqual({
      status: 0,
      stdout: 'rebuild --release --nodedir=/opt/node\n',
      stderr: '',
    })
  })

  test('lists missing programs in one line and compiles nothing', () => {
    const { status, stdout, stderr } = run(nodeGyp, ['gcc', 'python3'], nodedir)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(
      /^workbase: cannot compile SQLite without g\+\+, make: install .+, then retry\.\n$/,
    )
  })

  test('skips the driver that is available precompiled', () => {
    const env = { npm_package_name: 'better-sqlite3', npm_package_version: '13.2.0' }
    expect(run(nodeGyp, [], env)).toEqual({ status: 0, stdout: '', stderr: '' })
  })

  test('the install fails with that line if no driver was compiled and Node cannot load a precompiled one', () => {
    const folder = temporaryFolder()
    cpSync('install', folder, { recursive: true })
    const env = { ...nodedir, npm_config_user_agent: 'npm/10.9.9' }
    const { status, stderr } = run(join(folder, 'preinstall.js'), ['gcc', 'g++', 'make'], env)
    const comesCompiled = Number(process.versions.napi) >= 10
    expect(status).toBe(comesCompiled ? 0 : 1)
    expect(stderr).toMatch(comesCompiled ? /^$/ : /^workbase: cannot compile SQLite without python3: .+\n$/)
  })
})
