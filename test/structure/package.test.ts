import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const { dependencies, devDependencies, version } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  version: string
}

/** Every built file that a built file loads at once, itself included; what it loads later is left out. */
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

describe('what starting loads', () => {
  test.each([
    'src/cli/main.js',
    'commands/kb/list.js',
    'commands/kb/search.js',
    'commands/documents/show.js',
  ])('%s loads no schema, no server, no store and no prompt', entry => {
    const files = [...loadedWith(join('dist', entry))]
    expect(files.length).toBeGreaterThan(1)
    const heavy = files.filter(file =>
      /ZodError|from"(?:better-sqlite3|@inquirer|undici|openai)|toNodeHandler/.test(
        readFileSync(file, 'utf8'),
      ),
    )
    expect(heavy).toEqual([])
  })

  test('the walk sees what it looks for', () => {
    const runtime = [...loadedWith('dist/src/runtime.js')].map(file => readFileSync(file, 'utf8')).join('\n')
    expect(runtime).toMatch(/ZodError/)
    expect(runtime).toMatch(/from"better-sqlite3"/)
  })
})

describe('the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wb-pack-'))
  const installed = join(folder, 'node_modules', 'workbase')
  let files: string[] = []

  beforeAll(() => {
    const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [{ filename, files: listed }] = JSON.parse(packed.toString()) as [
      { filename: string; files: { path: string }[] },
    ]
    files = listed.map(({ path }) => path)
    execFileSync('tar', ['-xzf', join(folder, filename), '-C', folder])
    mkdirSync(dirname(installed), { recursive: true })
    execFileSync('mv', [join(folder, 'package'), installed])
    for (const name of Object.keys(dependencies)) {
      mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
      symlinkSync(resolve('node_modules', name), join(folder, 'node_modules', name))
    }
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  function wb(...args: string[]): string {
    return execFileSync(process.execPath, [join(installed, 'bin', 'run.js'), ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, WB_DATA_DIR: join(folder, 'data') },
      stdio: ['ignore', 'pipe', 'inherit'],
    }).toString()
  }

  test('S7.1-03: ships what runs and what is read, the page of error codes too, and no source, test or tool', () => {
    for (const path of [
      'bin/run.js',
      'dist/src/cli/main.js',
      'dist/scan.wasm',
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

  test('runs from an empty folder with its dependencies alone', () => {
    expect(
      Object.keys(devDependencies).filter(name => existsSync(join(folder, 'node_modules', name))),
    ).toEqual([])
    expect(wb('--version')).toContain(`workbase/${version}`)
    expect(wb('kb', 'create', 'notes')).toMatch(/^[0-9a-f-]{36}\n$/)
    expect(wb('kb', 'list', '--json')).toContain('"name":"notes"')
  })

  test('answers its first question from the documents that it ships', () => {
    wb('quickstart', '--quiet')
    const [first] = wb('kb', 'search', 'handbook', 'where is my data stored', '-w', 'demo').split('\n')
    expect(first).toContain('\tdocs/storage.md\t')
  })

  test('has both executables', () => {
    const { bin } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
      bin: Record<string, string>
    }
    expect(bin).toEqual({ wb: 'bin/run.js', workbase: 'bin/run.js' })
  })
})
