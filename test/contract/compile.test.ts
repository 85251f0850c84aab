import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const fixtures = fileURLToPath(new URL('compile-fail', import.meta.url))
const suffix = '.ts.txt'
const names = readdirSync(fixtures)
  .filter(file => file.endsWith(suffix))
  .map(file => file.slice(0, -suffix.length))

/** Two levels below the root, so that the imports of `../../src` in the fixtures resolve. */
mkdirSync(join(root, 'coverage'), { recursive: true })
const folder = mkdtempSync(join(root, 'coverage', 'compile-'))
let output = ''

beforeAll(async () => {
  for (const name of names)
    writeFileSync(join(folder, `${name}.ts`), readFileSync(join(fixtures, `${name}${suffix}`)))
  const settings = {
    extends: '../../tsconfig.json',
    compilerOptions: { rootDir: '../..' },
    include: ['*.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings))
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  output = await promisify(execFile)(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
  }).then(
    ({ stdout }) => stdout,
    (failed: { stdout: string }) => failed.stdout,
  )
}, 120_000)

afterAll(() => rmSync(folder, { recursive: true }))

/** Returns the errors of one file, each with its explanation lines. */
function errorsOf(name: string): string {
  const errors = output.split(/\n(?=\S)/)
  return errors.filter(error => error.startsWith(`${name}.ts(`)).join('\n')
}

test.each(names)('%s', name => {
  const [, expected] = /^\/\/ expects: (.+)$/m.exec(readFileSync(join(fixtures, `${name}${suffix}`), 'utf8'))!
  if (expected === 'nothing') expect(errorsOf(name)).toBe('')
  else expect(errorsOf(name)).toContain(expected)
})
