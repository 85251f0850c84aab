/**
 * Finds the tests that are nearest to source files: those that import them directly or through a few other files,
 * and those that run a command by its name.
 *
 * @see scripts/test-changed.ts
 */
import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { globSync } from 'tinyglobby'

/** Maximum number of imports from a test to a changed file. More distant tests rarely detect a fault in the file. */
const HOPS_MAX = 3
/** Maximum number of tests for one file. The nearest tests are selected. */
const TESTS_MAX = 12

/** Returns true for tests that depend on the whole product and take minutes, such as those of the docs. */
const isSlow = (file: string) => file.startsWith('test/docs/')
const isTest = (file: string) => file.endsWith('.test.ts')

/** Importers of each file of the repository, by path relative to the root. */
export type ImportGraph = ReadonlyMap<string, ReadonlySet<string>>

/** Reads the static and dynamic imports of all TypeScript files. */
export function readImportGraph(): ImportGraph {
  const importers = new Map<string, Set<string>>()
  for (const file of globSync(['src/**/*.{ts,tsx}', 'commands/**/*.ts', 'test/**/*.ts', 'scripts/*.ts'])) {
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const imported = join(dirname(file), path!)
      importers.set(imported, (importers.get(imported) ?? new Set()).add(file))
    }
  }
  return importers
}

/**
 * Returns the nearest tests of one file: first those of the same name, then by imports, the nearest first. A test is its
 * own nearest test.
 */
export function relatedTests(file: string, importers: ImportGraph): string[] {
  const name = basename(file).replace(/\..*/, '')
  const command = /^commands\/(.+)\.ts$/.exec(file)?.[1]
  const tests = new Set(command ? testsOfCommand(command.split('/')) : [])
  const seen = new Set([file])
  for (let hops = 0, level = [file]; hops <= HOPS_MAX && level.length > 0; hops++) {
    for (const reached of level.filter(isTest)) if (!isSlow(reached)) tests.add(reached)
    level = level.flatMap(reached => [...(importers.get(reached) ?? [])]).filter(next => !seen.has(next))
    for (const next of level) seen.add(next)
    if (tests.size >= 2 * TESTS_MAX) break
  }
  const isNamesake = (test: string) => basename(test).startsWith(`${name}.`)
  return [...tests].sort((a, b) => Number(isNamesake(b)) - Number(isNamesake(a))).slice(0, TESTS_MAX)
}

/** Returns the tests that contain the words of a command next to each other, as arguments or as a typed line. */
function testsOfCommand(words: readonly string[]): string[] {
  const line = new RegExp(words.join("(?:', '| )"))
  const tests = globSync('test/**/*.test.ts')
  return tests.filter(file => !isSlow(file) && line.test(readFileSync(file, 'utf8')))
}
