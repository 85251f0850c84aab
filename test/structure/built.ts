import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build as bundle } from 'esbuild'
import { globSync } from 'tinyglobby'
import type { TestProject } from 'vitest/node'
import { programsVariable } from '../harness/program.ts'

/** Files that `scripts/build.mjs` reads. */
const sources = ['src', 'commands', 'scripts', 'package.json']

/** Returns when a file, or anything in a folder, was last changed. Removing a file changes its folder. */
function lastChange(path: string): number {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  const inside = readdirSync(path, { recursive: true, encoding: 'utf8' })
  return Math.max(mtimeMs, ...inside.map(name => statSync(join(path, name)).mtimeMs))
}

/** Returns true if the build of a package is missing or older than its sources. */
export function isStale(root: string): boolean {
  const built = statSync(join(root, 'dist/build.json'), { throwIfNoEntry: false })?.mtimeMs
  return built === undefined || sources.some(path => lastChange(join(root, path)) > built)
}

/**
 * Environment variable with a folder for files that tests share, which is deleted after the run. `wb` in its `bin`
 * is the built command line.
 */
export const preparedVariable = 'WB_TEST_PREPARED'

export default async function setUp(project: TestProject): Promise<() => void> {
  build()
  project.onTestsRerun(async () => build())
  const folder = mkdtempSync(join(tmpdir(), 'wb-prepared-'))
  process.env[preparedVariable] = folder
  mkdirSync(join(folder, 'bin'))
  symlinkSync(resolve('bin/run.js'), join(folder, 'bin', 'wb'))
  const programs = await bundlePrograms()
  process.env[programsVariable] = programs
  return () => {
    for (const made of [folder, programs]) rmSync(made, { recursive: true, force: true })
  }
}

/** Bundles test programs into the package folder, so they can import its dependencies. */
async function bundlePrograms(): Promise<string> {
  const outdir = resolve(`node_modules/.cache/workbase/programs-${process.pid}`)
  await bundle({
    entryPoints: globSync('test/fixtures/**/*.ts'),
    outbase: 'test/fixtures',
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  })
  return outdir
}

/** Workers, WebAssembly and the command line are tested as they are built, so an old build is replaced first. */
function build(): void {
  if (isStale('.')) execFileSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit' })
}
