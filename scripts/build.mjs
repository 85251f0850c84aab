import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const outDir = join(root, 'dist')

/**
 * Packages that are not bundled: native packages, packages that load their own files, and large packages that few
 * commands use. All others are bundled, because reading many small files takes most of the startup time.
 */
const external = [
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
 * Returns an esbuild plugin that replaces a module of a package with an empty one. The build fails if no module matches,
 * which happens after the package has moved the module.
 */
function omitModule(filter) {
  return {
    name: 'omit-module',
    setup(build) {
      let isFound = false
      build.onLoad({ filter }, () => {
        isFound = true
        return { contents: '' }
      })
      build.onEnd(() => (isFound ? {} : { errors: [{ text: `no module matches ${filter}` }] }))
    },
  }
}

/**
 * Resolves the few parts of undici that the command line needs for HTTP/1.1, to bundle them: loading the whole
 * package takes longer than most commands run.
 */
const undiciParts = {
  name: 'undici-parts',
  setup(build) {
    build.onResolve({ filter: /^undici\/lib\// }, ({ path }) => ({ path: join(root, 'node_modules', path) }))
  },
}

const omittedModules = [
  // HTTP/2, which is never negotiated and loads `node:http2`.
  omitModule(/[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client-h2\.js$/),
  // Ink's connection to the React developer tools, which users do not have.
  omitModule(/[\\/]ink[\\/]build[\\/]devtools\.js$/),
  // Translations of zod's messages, which are half of its size.
  omitModule(/[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/),
]

/** Globals that bundled CommonJS packages use. */
const commonJs = `import{createRequire as $require}from'node:module';import{fileURLToPath as $path}from'node:url';\
const require=$require(import.meta.url),__filename=$path(import.meta.url),__dirname=$path(new URL('.',import.meta.url));`

/**
 * Returns true in a production install (`npm ci --omit=dev`), which runs `prepare` without the build tools.
 */
function areToolsMissing() {
  return !existsSync(join(root, 'node_modules', 'esbuild'))
}

/**
 * Returns the commands, the workers, and the modules that are loaded by name. Each becomes a file in `dist`.
 */
async function entryPoints() {
  const { glob } = await import('tinyglobby')
  return glob(['commands/**/*.ts', 'src/cli/bin.ts', 'src/runtime.ts', 'src/**/worker.ts'], {
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

/** Replaces a file atomically, so that a process that starts in the meantime reads a complete file. */
function replace(path, contents) {
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, contents)
  renameSync(draft, path)
}

/** Deletes files of earlier builds. Keeps chunks unless `clean`: a running process may still load them. */
function deleteOldFiles(written, clean) {
  const kept = new Set([...written, 'build.json'])
  for (const entry of readdirSync(outDir, { recursive: true, withFileTypes: true })) {
    const path = relative(outDir, join(entry.parentPath, entry.name))
    if (!entry.isFile() || kept.has(path) || path.endsWith('.wasm')) continue
    if (clean || !path.startsWith('chunks')) rmSync(join(outDir, path), { force: true })
  }
}

/**
 * Bundles commands, command line, runtime and workers together, so that they share code.
 *
 * @param {{clean: boolean, readable: boolean}} options clean: also delete chunks of earlier builds; readable: keep line
 *   breaks, and comments with the path of each source file
 */
async function build({ clean, readable }) {
  const [{ build: bundle }, { buildWasm }, { buildSentenceModel, sentenceModelFiles }, { wireContract }] =
    await Promise.all([
      import('esbuild'),
      import('./build-wasm.mjs'),
      import('./build-sentence-model.mjs'),
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
    minifyWhitespace: !readable,
    minifySyntax: true,
    legalComments: 'none',
    outbase: '.',
    outdir: 'dist',
    chunkNames: 'chunks/[hash]',
    external,
    banner: { js: commonJs },
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [wireContract(root), undiciParts, ...omittedModules],
    logLevel: 'warning',
    write: false,
  })
  for (const file of outputFiles) replace(file.path, file.contents)
  await buildWasm(outDir)
  buildSentenceModel(outDir)
  replace(join(outDir, sampleVectors), readFileSync(join(root, 'src/sentence-model', sampleVectors)))
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const written = [
    ...outputFiles.map(file => relative(outDir, file.path)),
    ...sentenceModelFiles,
    sampleVectors,
  ]
  deleteOldFiles(new Set(written), clean)
  const info = { version, commit: commit(), buildTime: new Date().toISOString() }
  replace(join(outDir, 'build.json'), `${JSON.stringify(info)}\n`)
}

/** Sentence vectors of the sample documents. See `write-sample-vectors.ts`. */
const sampleVectors = 'sample-vectors.bin'

const isSet = flag => process.argv.includes(flag)
if (!areToolsMissing()) await build({ clean: isSet('--clean'), readable: isSet('--readable') })
else if (existsSync(join(outDir, 'build.json')))
  console.error('build tools are not installed; dist stays as it is')
else {
  console.error('dist is missing and so are the build tools: run `npm ci` without --omit=dev')
  process.exitCode = 1
}
