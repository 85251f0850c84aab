/**
 * Changes random lines of the product, one at a time, and reports which changes the nearest tests notice.
 *
 *     npm run test:mutation [-- SEED [COUNT]]     defaults: 1, 40
 *
 * Works in a copy of the repository, and ends with `N killed, N survived`. A seed always selects the same changes of the
 * same sources.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Node, parseSync } from 'oxc-parser'
import { globSync } from 'tinyglobby'
import { readImportGraph, relatedTests } from './related-tests.ts'

/** A change of the source text from `start` to `end`. */
interface Mutation {
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
/** Time for the tests of one change, in ms. A change that makes them hang is noticed, too. */
const TIMEOUT_MS = 240_000

const [seed = 1, count = 40] = process.argv.slice(2).map(Number)
const random = randomFrom(seed)
const folder = mkdtempSync(join(tmpdir(), 'workbase-mutation-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
execFileSync('git', ['clone', '--quiet', '.', folder])
symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'inherit' })

const importers = readImportGraph()
const files = globSync(['src/**/*.{ts,tsx}', 'commands/**/*.ts'], { ignore: ['**/*.d.ts'] }).sort()
const lines = files.flatMap(file => mutableLines(file))
let killed = 0
for (let done = 0; done < count; done++) {
  const { file, line, mutations } = lines.splice(Math.floor(random() * lines.length), 1)[0]!
  const mutation = mutations[Math.floor(random() * mutations.length)]!
  const isKilled = isNoticed(file, mutation)
  if (isKilled) killed++
  const source = readFileSync(file, 'utf8')
  console.log(
    `${isKilled ? 'killed  ' : 'SURVIVED'} ${file}:${line}  ${source.slice(mutation.start, mutation.end).split('\n')[0]}  →  ${mutation.replacement}`,
  )
}
console.log(`${killed} killed, ${count - killed} survived`)

/** Runs the nearest tests of a file with a change, and returns true if one of them fails. */
function isNoticed(file: string, { start, end, replacement }: Mutation): boolean {
  const tests = relatedTests(file, importers)
  if (tests.length === 0) return false
  const source = readFileSync(file, 'utf8')
  writeFileSync(join(folder, file), source.slice(0, start) + replacement + source.slice(end))
  const args = ['vitest', 'run', '--project', 'product', '--bail', '1', ...tests]
  const { status } = spawnSync('npx', args, { cwd: folder, stdio: 'ignore', timeout: TIMEOUT_MS })
  writeFileSync(join(folder, file), source)
  return status !== 0
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

/** Returns the changes of a program: opposite operators and conditions, other literals, and calls that are left out. */
function mutationsIn(node: unknown, source: string): Mutation[] {
  if (Array.isArray(node)) return node.flatMap(child => mutationsIn(child, source))
  if (!isNode(node) || isTypeOnly(node)) return []
  return [...mutationsOf(node, source), ...Object.values(node).flatMap(child => mutationsIn(child, source))]
}

function mutationsOf(node: Node, source: string): Mutation[] {
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
      if (typeof node.value === 'boolean') return replaced(node, String(!node.value))
      return typeof node.value === 'number' ? replaced(node, String(node.value + 1)) : []
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
