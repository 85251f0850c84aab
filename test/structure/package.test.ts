import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { globSync } from 'tinyglobby'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

const { dependencies, devDependencies, optionalDependencies, version } = JSON.parse(
  readFileSync('package.json', 'utf8'),
) as {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies: Record<string, string>
  version: string
}

/** Installed SQLite drivers. */
const drivers = ['better-sqlite3', 'better-sqlite3-13'].filter(name => existsSync(join('node_modules', name)))

/** Returns all built files that a file loads statically, including itself. */
function loadedWith(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen
  seen.add(entry)
  const code = readFileSync(entry, 'utf8')
  for (const [, target] of code.matchAll(
    /(?:^|[;}\n])\s*(?:import|export)\s*(?:[\w$*{},\s]+?from)?\s*"(\.[^"]+)"/g,
  ))
    loadedWith(join(dirname(entry), target!), seen)
  return seen
}

describe('modules loaded at startup', () => {
  test.each(['src/cli/bin.js', 'commands/kb/list.js', 'commands/kb/search.js', 'commands/documents/show.js'])(
    '%s does not load schemas, the server, the store or prompts',
    entry => {
      const files = [...loadedWith(join('dist', entry))]
      expect(files.length).toBeGreaterThan(1)
      const heavy = files.filter(file =>
        /ZodError|"better-sqlite3"|from"(?:@inquirer|undici|openai)|toNodeHandler/.test(
          readFileSync(file, 'utf8'),
        ),
      )
      expect(heavy).toEqual([])
    },
  )

  test('the search recognizes modules that should not be loaded', () => {
    const runtime = [...loadedWith('dist/src/runtime.js')].map(file => readFileSync(file, 'utf8')).join('\n')
    expect(runtime).toMatch(/ZodError/)
    expect(runtime).toContain('"better-sqlite3"')
  })
})

/** Links installed packages into another node_modules folder. */
function link(names: readonly string[], modules: string): void {
  for (const name of names) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(resolve('node_modules', name), join(modules, name))
  }
}

describe('the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wb-pack-'))
  const installed = join(folder, 'node_modules', 'workbase')
  let files: string[] = []
  let packedBytes = 0

  beforeAll(() => {
    const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [{ filename, files: listed, size }] = JSON.parse(packed.toString()) as [
      { filename: string; files: { path: string }[]; size: number },
    ]
    files = listed.map(({ path }) => path)
    packedBytes = size
    execFileSync('tar', ['-xzf', join(folder, filename), '-C', folder])
    mkdirSync(dirname(installed), { recursive: true })
    execFileSync('mv', [join(folder, 'package'), installed])
    link([...Object.keys(dependencies), ...drivers], join(folder, 'node_modules'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  function wb(...args: string[]): string {
    return execFileSync(process.execPath, [join(installed, 'bin', 'run.js'), ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, WB_DATA_DIR: join(folder, 'data') },
      stdio: ['ignore', 'pipe', 'inherit'],
    }).toString()
  }

  test('S7.1-03: contains its code and documentation, including the page of error codes, and no sources, tests or tools', () => {
    for (const path of [
      'bin/run.js',
      'dist/src/cli/bin.js',
      'dist/scan.wasm',
      'dist/scan-shared.wasm',
      'dist/sentence-encoder.wasm',
      'dist/all-minilm-l6-v2.safetensors',
      'dist/all-minilm-l6-v2.LICENSE.txt',
      'oclif.manifest.json',
      'LICENSE',
      'docs/cli.md',
      'docs/errors.md',
    ])
      expect(files).toContain(path)
    expect(
      files.filter(path => /^(?:src|test|bench|scripts|commands)\/|\.tsx?$|^bin\/dev/.test(path)),
    ).toEqual([])
  })

  test('is smaller than 30 MB', () => {
    expect(packedBytes).toBeLessThan(30_000_000)
  })

  test('runs from an empty folder with only its dependencies', () => {
    expect(
      Object.keys(devDependencies).filter(name => existsSync(join(folder, 'node_modules', name))),
    ).toEqual([])
    expect(wb('--version')).toContain(`workbase/${version}`)
    expect(wb('kb', 'create', 'notes')).toMatch(/^[0-9a-f-]{36}\n$/)
    expect(wb('kb', 'list', '--json')).toContain('"name":"notes"')
  })

  test('answers a first question from the documents that it contains', () => {
    wb('quickstart', '--quiet')
    const [first] = wb('kb', 'search', 'handbook', 'where is my data stored', '-w', 'demo').split('\n')
    expect(first).toContain('\tdocs/storage.md\t')
  })

  test('can be type-checked without its optional packages', () => {
    const declared = globSync('src/**/*.d.ts').flatMap(file =>
      [...readFileSync(file, 'utf8').matchAll(/^declare module '(.+)'/gm)].map(([, name]) => name!),
    )
    const typed = [...declared, ...Object.keys(devDependencies).map(name => name.replace('@types/', ''))]
    // Both drivers use the type declarations of better-sqlite3.
    const optional = Object.keys(optionalDependencies).map(name => name.replace('sqlite3-13', 'sqlite3'))
    expect(optional.filter(name => !typed.includes(name))).toEqual([])
  })

  describe('without SQLite', () => {
    /** Returns the output of a command in a folder with the package, and with the driver files that `prepare` adds. */
    function printed(prepare: (modules: string) => void) {
      const other = mkdtempSync(join(tmpdir(), 'wb-without-'))
      onTestFinished(() => rmSync(other, { recursive: true, force: true }))
      const modules = join(other, 'node_modules')
      cpSync(installed, join(modules, 'workbase'), { recursive: true })
      link(Object.keys(dependencies), modules)
      prepare(modules)
      const { status, stderr } = spawnSync(
        process.execPath,
        [join(modules, 'workbase/bin/run.js'), 'kb', 'create', 'notes'],
        { env: { HOME: other, WB_DATA_DIR: join(other, 'data') }, encoding: 'utf8' },
      )
      return { status, lines: stderr.trimEnd().replaceAll(other, 'FOLDER').split('\n') }
    }

    test('explains how to compile a driver without its native module', () => {
      const driver = Number(process.versions.napi) >= 10 ? 'better-sqlite3-13' : 'better-sqlite3'
      const answer = printed(modules => {
        link(['bindings', 'file-uri-to-path'], modules)
        for (const part of ['package.json', 'lib'])
          cpSync(join('node_modules', driver, part), join(modules, driver, part), { recursive: true })
      })
      expect(answer).toEqual({
        status: 1,
        lines: [
          `  ✗ SQLite is not compiled for this Node (${process.version}, ${process.platform}-${process.arch}).`,
          `    cd FOLDER && npm rebuild ${driver}`,
          '    With npm 12 or later, run npm install-scripts approve better-sqlite3 there first.',
        ],
      })
    })

    test('explains how to install a missing driver', () => {
      expect(printed(() => {})).toEqual({
        status: 1,
        lines: [
          '  ✗ SQLite is not installed.',
          expect.stringMatching(
            /^ {4}Install Workbase again: npm install --include=optional( --ignore-scripts)?$/,
          ),
        ],
      })
    })
  })

  test('has both executables', () => {
    const { bin } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
      bin: Record<string, string>
    }
    expect(bin).toEqual({ wb: 'bin/run.js', workbase: 'bin/run.js' })
  })
})
