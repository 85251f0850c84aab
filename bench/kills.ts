/**
 * Runs the tests that kill processes (`kill -9`) with more rounds: during writes, merges, the creation of an index, jobs,
 * and deletions. The tests check the store after the kills, and fail if an acknowledged write is missing, if a check of the
 * store finds a problem, or if searches differ from those of a reference.
 *
 * npm run bench:kills -- [ROUNDS [FILE...]]     defaults: 200, all tests that read WB_TEST_KILLS
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { globSync } from 'tinyglobby'

const root = join(import.meta.dirname, '..')
const [rounds = '200', ...named] = process.argv.slice(2)
const files = named.length > 0 ? named : globSync('test/**/*.test.ts', { cwd: root }).filter(readsRounds)

function readsRounds(file: string): boolean {
  return readFileSync(join(root, file), 'utf8').includes('WB_TEST_KILLS')
}

// One file at a time, and only the tests of kills, which name them.
const projects = ['--project', 'product', '--project', 'endurance']
const vitest = ['vitest', 'run', ...projects, '--maxWorkers', '1', '--reporter', 'verbose']
const { status } = spawnSync('npx', [...vitest, '--testNamePattern', 'kill', ...files], {
  cwd: root,
  env: { ...process.env, WB_TEST_KILLS: rounds },
  stdio: 'inherit',
})
process.exitCode = status ?? 1
