/**
 * A setup file of vitest: records the functions of the product that each test file calls, in its process, in worker
 * threads and in child processes. Needs `--isolate`, because a module that several test files share would otherwise run
 * only in the first of them.
 *
 * Writes JSON files ({@link ExecutedFunctions}) to the folder `WB_FUNCTION_RECORDS`. Threads and processes that end
 * after the test file leave V8 coverage in a subfolder with the name of its record, for {@link takeProcessRecords}.
 * Processes that are killed are not recorded.
 *
 * @see scripts/test-mutation.ts
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type Profiler, Session } from 'node:inspector/promises'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Names of called functions by source file, relative to the root. The name '' means that the file was loaded. */
export type FunctionNames = Record<string, string[]>

/** The functions that a test file calls. Its path is relative to the root. */
export interface ExecutedFunctions {
  readonly test: string
  readonly functions: FunctionNames
}

const records = process.env.WB_FUNCTION_RECORDS

if (records) {
  const { afterAll, expect } = await import('vitest')
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true })
  const test = relative('.', expect.getState().testPath!)
  const record = join(records, createHash('sha256').update(test).digest('hex'))
  // Node.js also passes this variable to child processes that get an environment without it.
  process.env.NODE_V8_COVERAGE = record
  const pty = createRequire(import.meta.url)('@lydell/node-pty') as typeof import('@lydell/node-pty')
  const { spawn } = pty
  pty.spawn = (file, args, options) =>
    spawn(file, args, { ...options, env: { NODE_V8_COVERAGE: record, ...options.env } })

  afterAll(async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    session.disconnect()
    const functions: FunctionNames = {}
    for (const { url, functions: called } of result) {
      const path = relative('.', url.startsWith('file:') ? fileURLToPath(url) : url)
      if (isProduct(path)) addFunctions(functions, path, called.filter(isCalled))
    }
    takeProcessRecords(record, functions)
    writeFileSync(`${record}.json`, JSON.stringify({ test, functions } satisfies ExecutedFunctions))
  })
}

/** Adds the functions that processes and threads called, and deletes their coverage. */
export function takeProcessRecords(folder: string, functions: FunctionNames): void {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) {
    let scripts: Profiler.ScriptCoverage[]
    try {
      scripts = JSON.parse(readFileSync(join(folder, name), 'utf8')).result
    } catch {
      continue // A process is still writing it.
    }
    for (const { url, functions: called } of scripts) {
      const modules = bundledModules(url)
      if (modules.length === 0) continue
      for (const { path } of modules) if (isProduct(path)) addNames(functions, path, [])
      for (const call of called.filter(isCalled)) {
        const path = modules.findLast(({ start }) => start <= call.ranges[0]!.startOffset)?.path ?? ''
        if (isProduct(path)) addFunctions(functions, path, [call])
      }
    }
    rmSync(join(folder, name))
  }
}

const modulesByUrl = new Map<string, { start: number; path: string }[]>()

/** Returns the source files in a bundle of esbuild with their positions, which are comments in a readable build. */
function bundledModules(url: string): { start: number; path: string }[] {
  const known = modulesByUrl.get(url)
  if (known) return known
  const path = url.startsWith('file:') ? fileURLToPath(url) : ''
  const source = /\.m?js$/.test(path) && existsSync(path) ? readFileSync(path, 'utf8') : ''
  const modules = [...source.matchAll(/^\/\/ (\S+\.[cm]?[jt]sx?)$/gm)].map(match => ({
    start: match.index,
    path: match[1]!,
  }))
  modulesByUrl.set(url, modules)
  return modules
}

function isProduct(path: string): boolean {
  return /^(?:src|commands)\//.test(path)
}

function isCalled({ ranges }: Profiler.FunctionCoverage): boolean {
  return ranges[0]!.count > 0
}

/** Adds functions of a file. A bundle appends a number to a name that several modules declare. */
function addFunctions(all: FunctionNames, path: string, called: Profiler.FunctionCoverage[]): void {
  if (called.length === 0) return
  const names = called.flatMap(({ functionName }) => [functionName, functionName.replace(/\d+$/, '')])
  addNames(all, path, names)
}

function addNames(all: FunctionNames, path: string, names: readonly string[]): void {
  all[path] = [...new Set([...(all[path] ?? []), '', ...names])]
}
