import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { globSync } from 'tinyglobby'
import { programsVariable } from '../harness/program.ts'

const sources = ['src', 'commands', 'package.json']

function newest(path: string): number {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  const inside = readdirSync(path, { recursive: true, withFileTypes: true })
  return Math.max(
    ...inside
      .filter(entry => entry.isFile())
      .map(entry => statSync(join(entry.parentPath, entry.name)).mtimeMs),
  )
}

/** Folder of what test files prepare for each other, by the name of its variable. It goes with the run. */
export const preparedVariable = 'WB_TEST_PREPARED'

export default async function setUp(): Promise<() => void> {
  requireBuild()
  const folder = mkdtempSync(join(tmpdir(), 'wb-prepared-'))
  process.env[preparedVariable] = folder
  const programs = await bundlePrograms()
  process.env[programsVariable] = programs
  return () => {
    for (const made of [folder, programs]) rmSync(made, { recursive: true, force: true })
  }
}

/** They lie within the package, where they find its dependencies. */
async function bundlePrograms(): Promise<string> {
  const outdir = resolve(`node_modules/.cache/workbase/programs-${process.pid}`)
  await build({
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

/** Workers, WebAssembly and the command line are tested as they are built: refuse to test an old build. */
function requireBuild(): void {
  const built = statSync('dist/build.json', { throwIfNoEntry: false })?.mtimeMs
  if (built === undefined)
    throw new Error('dist is missing: run `npm run build`, or `npm test`, which builds first')
  if (sources.some(path => newest(path) > built))
    console.warn('dist is older than the sources: run `npm run build`')
}
