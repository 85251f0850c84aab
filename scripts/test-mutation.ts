/**
 * Changes random lines of the product, one at a time, and reports which changes the tests detect.
 *
 *     npm run test:mutation [-- SEED [COUNT]]     defaults: 1, 40
 *
 * Works in a copy of the repository. Runs all tests once to record the functions that each test file calls, then runs
 * the tests that call the changed function. Ends with `N killed, N survived`. A seed always selects the same changes of
 * the same sources.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Node, parseSync } from 'oxc-parser'
import { globSync } from 'tinyglobby'
import type { ExecutedFunctions } from './record-functions.ts'

/** A change of the source text from `start` to `end`. */
interface Mutation {
  /** Name of the innermost named function around the change; empty at the top level of the file. */
  readonly functionName: string
  readonly start: number
  readonly end: number
  readonly replacement: string
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
/** Time for the tests of one change, in ms. A change that makes them hang is detected, too. */
const TIMEOUT_MS = 240_000
/** Test files that run for one change. Those that call the fewest functions come first. */
const TESTS_MAX = 20

const [seed = 1, count = 40] = process.argv.slice(2).map(Number)
const random = randomFrom(seed)
const folder = mkdtempSync(join(tmpdir(), 'workbase-mutation-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
execFileSync('git', ['clone', '--quiet', '.', folder])
symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'inherit' })

const testFiles = recordTestFiles()
const files = globSync(['src/**/*.{ts,tsx}', 'commands/**/*.ts'], { ignore: ['**/*.d.ts'] }).sort()
const lines = files.flatMap(file => mutableLines(file))
let killed = 0
for (let done = 0; done < count; done++) {
  const { file, line, mutations } = lines.splice(Math.floor(random() * lines.length), 1)[0]!
  const mutation = mutations[Math.floor(random() * mutations.length)]!
  const isKilled = isDetected(file, mutation)
  if (isKilled) killed++
  const source = readFileSync(file, 'utf8')
  console.log(
    `${isKilled ? 'killed  ' : 'SURVIVED'} ${file}:${line}  ${source.slice(mutation.start, mutation.end).split('\n')[0]}  →  ${mutation.replacement}`,
  )
}
console.log(`${killed} killed, ${count - killed} survived`)

/** Runs the tests that call the changed function, and returns true if one of them fails. */
function isDetected(file: string, { start, end, replacement, functionName }: Mutation): boolean {
  const tests = testsOf(file, functionName)
  if (tests.length === 0) return false
  const source = readFileSync(file, 'utf8')
  writeFileSync(join(folder, file), source.slice(0, start) + replacement + source.slice(end))
  const status = runTests(['--bail', '1', ...tests])
  writeFileSync(join(folder, file), source)
  return status !== 0
}

/** Returns the test files that call a function of a source file, or else any function of it. */
function testsOf(file: string, functionName: string): string[] {
  const callers = testFiles.filter(({ functions }) => functions[file]?.includes(functionName))
  const tests = callers.length > 0 ? callers : testFiles.filter(({ functions }) => functions[file])
  return tests.slice(0, TESTS_MAX).map(({ test }) => test)
}

/** Runs all tests, and returns the test files that pass with the functions that they call, the fewest first. */
function recordTestFiles(): ExecutedFunctions[] {
  const records = mkdtempSync(join(folder, 'records-'))
  const report = join(folder, 'report.json')
  runTests(['--reporter', 'json', '--outputFile', report], { WB_FUNCTION_RECORDS: records })
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: { name: string; status: string }[]
  }
  const passed = new Set(testResults.filter(({ status }) => status === 'passed').map(({ name }) => name))
  const size = ({ functions }: ExecutedFunctions) => Object.values(functions).flat().length
  return readdirSync(records)
    .map(name => JSON.parse(readFileSync(join(records, name), 'utf8')) as ExecutedFunctions)
    .filter(({ test }) => passed.has(join(folder, test)))
    .sort((a, b) => size(a) - size(b))
}

function runTests(args: string[], env: Record<string, string> = {}): number | null {
  const { status } = spawnSync('npx', ['vitest', 'run', '--project', 'product', ...args], {
    cwd: folder,
    stdio: 'ignore',
    env: { ...process.env, ...env },
    ...(args.includes('--bail') && { timeout: TIMEOUT_MS }),
  })
  return status
}

interface MutableLine {
  readonly file: string
  /** From 1. */
  readonly line: number
  readonly mutations: readonly Mutation[]
}

function mutableLines(file: string): MutableLine[] {
  const source = readFileSync(file, 'utf8')
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

/** Returns a generator of numbers from 0 to 1 (mulberry32). */
function randomFrom(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
