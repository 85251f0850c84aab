/**
 * Changes random lines of the product, one at a time, and reports which changes the tests detect.
 *
 *     npm run test:mutation [-- SEED [COUNT]]     defaults: 1, 40
 *
 * Works in a clone of the last commit. Records the functions that each test file calls, then runs all test files that
 * call the changed function until one fails: the nearest first, by folder and name, then those that call the fewest
 * functions. Ends with `N killed, N survived`. A seed always selects the same changes of the same sources.
 *
 * Records are kept in `node_modules/.cache/workbase`. The first run for a version of the sources takes about ten
 * minutes of CPU time to record all test files; later runs record changed test files only.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { type Node, parseSync } from 'oxc-parser'
import { globSync } from 'tinyglobby'
import { randomNumbers } from '../src/base/random-numbers.ts'
import { type ExecutedFunctions, type FunctionNames, takeProcessRecords } from './record-functions.ts'

/** A change of the source text from `start` to `end`. */
interface Mutation {
  /** Name of the innermost named function around the change; empty at the top level of the file. */
  readonly functionName: string
  readonly start: number
  readonly end: number
  readonly replacement: string
}

/** The record of a test file. */
interface TestRecord {
  /** Git's hash of the test file. */
  readonly hash: string
  /** False if the test file also fails without a change of the product. */
  readonly isPassing: boolean
  readonly durationMs: number
  readonly functions: FunctionNames
}

interface FileResult {
  readonly name: string
  readonly status: string
  readonly startTime: number
  readonly endTime: number
}

const opposites: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '>=',
  '>': '<=',
  '<=': '>',
  '>=': '<',
  '&&': '||',
  '||': '&&',
  '??': '&&',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
}
/** Test files that run for a change before all others. Most changes are detected by these. */
const NEAREST_COUNT = 8
/** Limit of the recorded time of the test files that run for one change, in ms. It is reported if it is reached. */
const TESTS_MS_MAX = 300_000
/** Processes that run tests. */
const WORKERS = '2'

const [seed = 1, count = 40] = process.argv.slice(2).map(Number)
const random = randomNumbers(seed)
const folder = mkdtempSync(join(tmpdir(), 'workbase-mutation-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
execFileSync('git', ['clone', '--quiet', '.', folder])
symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))

const records = recordTestFiles()
const files = globSync(['src/**/*.{ts,tsx}', 'commands/**/*.ts'], {
  cwd: folder,
  ignore: ['**/*.d.ts'],
}).sort()
const lines = files.flatMap(file => mutableLines(file))
let killed = 0
for (let done = 0; done < count; done++) {
  const { file, line, mutations } = lines.splice(Math.floor(random() * lines.length), 1)[0]!
  const mutation = mutations[Math.floor(random() * mutations.length)]!
  const source = readFileSync(join(folder, file), 'utf8')
  const change = `${source.slice(mutation.start, mutation.end).split('\n')[0]}  →  ${mutation.replacement}`
  const tests = testsOf(file, mutation.functionName)
  const tried = withinLimit(tests)
  const isKilled = isDetected(file, mutation, tried)
  if (isKilled) killed++
  const extent = isKilled ? '' : `  (${tried.length} of ${tests.length} test files)`
  console.log(`${isKilled ? 'killed  ' : 'SURVIVED'} ${file}:${line}  ${change}${extent}`)
}
console.log(`${killed} killed, ${count - killed} survived`)

/** Runs tests with a change, in two batches, and returns true if one of them fails or hangs. */
function isDetected(file: string, { start, end, replacement }: Mutation, tests: readonly string[]): boolean {
  const path = join(folder, file)
  const source = readFileSync(path, 'utf8')
  writeFileSync(path, source.slice(0, start) + replacement + source.slice(end))
  const batches = [tests.slice(0, NEAREST_COUNT), tests.slice(NEAREST_COUNT)]
  const isFailing = batches.some(
    batch => batch.length > 0 && runTests(['--bail', '1', ...batch], timeoutOf(batch)) !== 0,
  )
  writeFileSync(path, source)
  return isFailing
}

/** Time after which tests hang, in ms. The machine may be much slower than while the tests were recorded. */
function timeoutOf(tests: readonly string[]): number {
  return 120_000 + 4 * Math.ceil(durationOf(tests))
}

function durationOf(tests: readonly string[]): number {
  return tests.reduce((total, test) => total + records[test]!.durationMs, 0)
}

function withinLimit(tests: readonly string[]): string[] {
  return tests.filter((_, index) => durationOf(tests.slice(0, index)) < TESTS_MS_MAX)
}

/**
 * Returns the test files that call a function of a source file, the nearest first. Returns all that load the file if
 * none calls the function, for example because the change is at the top level.
 */
function testsOf(file: string, functionName: string): string[] {
  const passing = Object.keys(records).filter(test => records[test]!.isPassing)
  const calling = passing.filter(test => records[test]!.functions[file]?.includes(functionName))
  const tests = calling.length > 0 ? calling : passing.filter(test => records[test]!.functions[file])
  const sizes = new Map(tests.map(test => [test, Object.values(records[test]!.functions).flat().length]))
  return tests.sort((a, b) => distance(file, a) - distance(file, b) || sizes.get(a)! - sizes.get(b)!)
}

/** Returns 0 if a test file has the folder and the name of a source file, 1 or 2 if it has one of them, or else 3. */
function distance(file: string, test: string): number {
  const isSameName = stem(file) === stem(test)
  const isSameFolder = dirname(file).replace(/^src\//, '') === dirname(test).replace(/^test\//, '')
  if (isSameName) return isSameFolder ? 0 : 1
  return isSameFolder ? 2 : 3
}

function stem(path: string): string {
  return basename(path).replace(/\..*/, '')
}

/** Returns the records of all test files by path. Records those that have no record for these sources. */
function recordTestFiles(): Record<string, TestRecord> {
  const trees = execFileSync('git', ['rev-parse', 'HEAD:src', 'HEAD:commands'], { encoding: 'utf8' })
  const name = createHash('sha256').update(trees).digest('hex').slice(0, 12)
  const cache = resolve(`node_modules/.cache/workbase/functions-${name}.json`)
  const known: Record<string, TestRecord> = existsSync(cache) ? JSON.parse(readFileSync(cache, 'utf8')) : {}
  const hashes = testHashes()
  const changed = Object.keys(hashes).filter(test => known[test]?.hash !== hashes[test])
  const kept = Object.entries(known).filter(([test, { hash }]) => hashes[test] === hash)
  const all = { ...Object.fromEntries(kept), ...(changed.length > 0 && record(changed, hashes)) }
  mkdirSync(dirname(cache), { recursive: true })
  writeFileSync(cache, JSON.stringify(all))
  return all
}

/** Returns git's hash of each test file of the product. */
function testHashes(): Record<string, string> {
  const rows = execFileSync('git', ['ls-tree', '-r', 'HEAD', 'test'], { encoding: 'utf8' }).trim().split('\n')
  return Object.fromEntries(
    rows
      .map(row => row.split(/\s/))
      .filter(([, , , path]) => path!.endsWith('.test.ts') && !path!.startsWith('test/docs/'))
      .map(([, , hash, path]) => [path!, hash!]),
  )
}

/** Runs test files to record them. Those that fail run again without recording, which slows processes down. */
function record(
  tests: readonly string[],
  hashes: Readonly<Record<string, string>>,
): Record<string, TestRecord> {
  console.log(`recording ${tests.length} test files`)
  const calls = mkdtempSync(join(folder, 'records-'))
  // Comments in a readable build name the source file of each function.
  execFileSync(process.execPath, ['scripts/build.mjs', '--readable'], { cwd: folder, stdio: 'inherit' })
  const results = resultsOf(['--isolate', ...tests], { WB_FUNCTION_RECORDS: calls })
  const failed = tests.filter(test => results[test]?.status !== 'passed')
  const repeated = failed.length > 0 ? resultsOf(failed, {}) : {}
  const functions: Record<string, FunctionNames> = {}
  for (const file of readdirSync(calls).filter(name => name.endsWith('.json'))) {
    const executed = JSON.parse(readFileSync(join(calls, file), 'utf8')) as ExecutedFunctions
    takeProcessRecords(join(calls, basename(file, '.json')), executed.functions)
    functions[executed.test] = executed.functions
  }
  return Object.fromEntries(
    tests.map(test => {
      const { status, startTime = 0, endTime = 0 } = repeated[test] ?? results[test] ?? {}
      const isPassing = status === 'passed'
      if (!isPassing) console.log(`left out, because it fails without a change: ${test}`)
      const durationMs = endTime - startTime
      return [test, { hash: hashes[test]!, isPassing, durationMs, functions: functions[test] ?? {} }]
    }),
  )
}

/** Runs test files, and returns their results by path. */
function resultsOf(args: readonly string[], env: Record<string, string>): Record<string, FileResult> {
  const report = join(folder, 'report.json')
  runTests(['--reporter', 'json', '--outputFile', report, ...args], undefined, env)
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as { testResults: FileResult[] }
  return Object.fromEntries(testResults.map(result => [result.name.slice(folder.length + 1), result]))
}

/** Runs tests, and returns their status; null if they exceed the timeout. Also ends their processes. */
function runTests(
  args: readonly string[],
  timeout?: number,
  env: Record<string, string> = {},
): number | null {
  const vitest = ['vitest', 'run', '--project', '!docs', '--maxWorkers', WORKERS, ...args]
  const options = {
    cwd: folder,
    stdio: 'ignore',
    env: { ...process.env, ...env },
    timeout,
    detached: true,
  } as const
  const { status, pid } = spawnSync('npx', vitest, options)
  try {
    // A worker in an endless loop survives the main process.
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All have ended.
  }
  return status
}

interface MutableLine {
  readonly file: string
  /** From 1. */
  readonly line: number
  readonly mutations: readonly Mutation[]
}

function mutableLines(file: string): MutableLine[] {
  const source = readFileSync(join(folder, file), 'utf8')
  const byLine = new Map<number, Mutation[]>()
  for (const mutation of mutationsIn(parseSync(file, source).program, source)) {
    const line = source.slice(0, mutation.start).split('\n').length
    byLine.set(line, [...(byLine.get(line) ?? []), mutation])
  }
  return [...byLine].map(([line, mutations]) => ({ file, line, mutations }))
}

/** Returns the changes of a program: opposite operators, conditions and booleans, and calls that are left out. */
function mutationsIn(node: unknown, source: string, functionName = ''): Mutation[] {
  if (Array.isArray(node)) return node.flatMap(child => mutationsIn(child, source, functionName))
  if (!isNode(node) || isTypeOnly(node)) return []
  const name = functionNameOf(node) ?? functionName
  const own = changesOf(node, source).map(change => ({ ...change, functionName: name }))
  return [...own, ...Object.values(node).flatMap(child => mutationsIn(child, source, name))]
}

/** Returns the name that V8 gives to a function or constructor that a node declares. */
function functionNameOf(node: Node): string | undefined {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
      return node.id?.name
    case 'VariableDeclarator':
      return isFunction(node.init) ? nameOf(node.id) : undefined
    case 'Property':
    case 'PropertyDefinition':
      return isFunction(node.value) ? nameOf(node.key) : undefined
    case 'MethodDefinition': {
      if (node.kind === 'constructor') return undefined
      return node.kind === 'method' ? nameOf(node.key) : `${node.kind} ${nameOf(node.key)}`
    }
    default:
      return undefined
  }
}

function nameOf(key: Node): string | undefined {
  if (key.type === 'PrivateIdentifier') return `#${key.name}`
  return key.type === 'Identifier' ? key.name : undefined
}

function isFunction(node: Node | null): boolean {
  return node?.type === 'FunctionExpression' || node?.type === 'ArrowFunctionExpression'
}

function changesOf(node: Node, source: string): Omit<Mutation, 'functionName'>[] {
  const replaced = ({ start, end }: { start: number; end: number }, replacement: string) => [
    { start, end, replacement },
  ]
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const opposite = opposites[node.operator]
      if (!opposite) return []
      const at = source.indexOf(node.operator, node.left.end)
      return replaced({ start: at, end: at + node.operator.length }, opposite)
    }
    case 'IfStatement':
    case 'ConditionalExpression':
      return replaced(node.test, `!(${source.slice(node.test.start, node.test.end)})`)
    case 'Literal':
      return typeof node.value === 'boolean' ? replaced(node, String(!node.value)) : []
    case 'ExpressionStatement':
      return /Call|Await|Assignment/.test(node.expression.type) ? replaced(node, ';') : []
    default:
      return []
  }
}

/** Returns true for types and imports, which do not run. */
function isTypeOnly({ type }: Node): boolean {
  return type.startsWith('TS') && !/TS(?:As|NonNull|Satisfies)/.test(type) ? true : type.startsWith('Import')
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}
