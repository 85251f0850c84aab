/**
 * Runs the tests that are nearest to the files that changed since a commit.
 *
 *     npm run test:changed [-- COMMIT]     COMMIT defaults to HEAD: what is not committed yet
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { readImportGraph, relatedTests } from './related-tests.ts'

const [commit = 'HEAD'] = process.argv.slice(2)
const changed = [
  ...linesOf('git', ['diff', '--name-only', '--diff-filter=d', commit]),
  ...linesOf('git', ['ls-files', '--others', '--exclude-standard']),
]
const importers = readImportGraph()
const tests = [...new Set(changed.flatMap(file => relatedTests(file, importers)))]
if (tests.length === 0) {
  console.log(`No test is near the ${changed.length} changed files.`)
} else {
  const { status } = spawnSync('npx', ['vitest', 'run', '--project', '!docs', ...tests], {
    stdio: 'inherit',
  })
  process.exitCode = status ?? 1
}

function linesOf(command: string, args: string[]): string[] {
  return execFileSync(command, args, { encoding: 'utf8' }).split('\n').filter(Boolean)
}
