import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const outDir = join(root, 'dist')

/**
 * Native parts, parts that find files beside themselves, and large parts that few commands need.
 * The rest is bundled, as reading many small files is most of what starting costs.
 */
const external = [
  'openai',
  'pino',
  'listhen',
  'undici',
  'open',
  '@inquirer/prompts',
  '@modelcontextprotocol/client',
  '@modelcontextprotocol/server',
  'prom-client',
  '@napi-rs/keyring',
  'keytar',
  'jq-wasm',
]

/**
 * The command line speaks HTTP/1.1 through a few parts of undici, which are bundled: the package as a whole takes longer
 * to load than most commands run. Its HTTP/2 is left out, as it is never negotiated and loads `node:http2`.
 */
const undiciParts = {
  name: 'undici-parts',
  setup(build) {
    build.onResolve({ filter: /^undici\/lib\// }, ({ path }) => ({ path: join(root, 'node_modules', path) }))
    build.onLoad({ filter: /[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client-h2\.js$/ }, () => ({
      contents: '',
    }))
  },
}

/** Ink asks for the tools of React's developers, which nobody has who runs this. */
const withoutDevtools = {
  name: 'without-devtools',
  setup(build) {
    build.onLoad({ filter: /[\\/]ink[\\/]build[\\/]devtools\.js$/ }, () => ({ contents: '' }))
  },
}

/** What zod would say in other languages is half of it. */
const inEnglish = {
  name: 'in-english',
  setup(build) {
    build.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents: '' }))
  },
}

/** Bundled CommonJS packages call these. */
const commonJs = `import{createRequire as $require}from'node:module';import{fileURLToPath as $path}from'node:url';\
const require=$require(import.meta.url),__filename=$path(import.meta.url),__dirname=$path(new URL('.',import.meta.url));`

/** A production install (`npm ci --omit=dev`) runs `prepare` without the tools; a tree that is built stays as it is. */
function toolsMissing() {
  return !existsSync(join(root, 'node_modules', 'esbuild'))
}

/** Commands, workers and the two halves that are loaded by name; each is a file of its own in `dist`. */
async function entryPoints() {
  const { glob } = await import('tinyglobby')
  return glob(['commands/**/*.ts', 'src/cli/{main,node-io}.ts', 'src/runtime.ts', 'src/**/worker.ts'], {
    cwd: root,
  })
}

function commit() {
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .toString()
      .trim()
  } catch {
    return 'unknown'
  }
}

/** Replace a file in one step, so that a process that starts meanwhile reads the old or the new one whole. */
function replace(path, contents) {
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, contents)
  renameSync(draft, path)
}

/** Remove what an earlier build left. Chunks stay unless asked: a running process may still load one. */
function sweep(written, clean) {
  const kept = new Set([...written, 'scan.wasm', 'build.json'])
  for (const entry of readdirSync(outDir, { recursive: true, withFileTypes: true })) {
    const path = relative(outDir, join(entry.parentPath, entry.name))
    if (!entry.isFile() || kept.has(path) || path.endsWith('.wasm')) continue
    if (clean || !path.startsWith('chunks')) rmSync(join(outDir, path), { force: true })
  }
}

/**
 * Bundle commands, command line, runtime and workers in one run, so that they share one copy of everything.
 *
 * @param {{clean: boolean}} options  clean also removes chunks of earlier builds
 */
async function build({ clean }) {
  const [{ build: bundle }, { buildWasm }, { wireContract }] = await Promise.all([
    import('esbuild'),
    import('./build-wasm.mjs'),
    import('./wire-contract.mjs'),
  ])
  const { outputFiles } = await bundle({
    absWorkingDir: root,
    entryPoints: await entryPoints(),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    splitting: true,
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    outbase: '.',
    outdir: 'dist',
    chunkNames: 'chunks/[hash]',
    external,
    banner: { js: commonJs },
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [wireContract(root), undiciParts, withoutDevtools, inEnglish],
    logLevel: 'warning',
    write: false,
  })
  for (const file of outputFiles) replace(file.path, file.contents)
  await buildWasm(outDir)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  sweep(new Set(outputFiles.map(file => relative(outDir, file.path))), clean)
  const info = { version, commit: commit(), buildTime: new Date().toISOString() }
  replace(join(outDir, 'build.json'), `${JSON.stringify(info)}\n`)
}

if (!toolsMissing()) await build({ clean: process.argv.includes('--clean') })
else if (existsSync(join(outDir, 'build.json')))
  console.error('build tools are not installed; dist stays as it is')
else {
  console.error('dist is missing and so are the build tools: run `npm ci` without --omit=dev')
  process.exitCode = 1
}
