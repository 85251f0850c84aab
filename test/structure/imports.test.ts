import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

/** Rooms that each room can import besides itself. Client and server share only layer 0. */
const allowed: Record<string, readonly string[]> = {
  contract: [],
  base: ['contract'],
  storage: ['contract', 'base'],
  locks: ['base', 'storage'],
  keychain: ['base'],
  config: ['contract', 'base'],
  auth: ['contract', 'base', 'storage', 'config', 'access'],
  access: ['contract', 'base', 'storage', 'config'],
  models: ['contract', 'base', 'config', 'local-models'],
  'local-models': ['base', 'sentence-model'],
  'sentence-model': ['base'],
  formats: ['contract', 'base'],
  jobs: ['contract', 'base', 'storage', 'config', 'access'],
  workspaces: ['contract', 'base', 'storage', 'config', 'access', 'models'],
  knowledge: [
    'contract',
    'base',
    'storage',
    'access',
    'models',
    'sentence-model',
    'workspaces',
    'jobs',
    'formats',
  ],
  agents: [
    'contract',
    'base',
    'storage',
    'config',
    'access',
    'models',
    'sentence-model',
    'workspaces',
    'knowledge',
  ],
  mcp: ['contract', 'base', 'storage', 'access', 'agents', 'http'],
  operation: ['contract', 'base', 'config', 'access', 'models'],
  http: ['contract', 'base', 'storage', 'config', 'access', 'auth'],
  drill: ['contract', 'base', 'access'],
  backup: ['contract', 'base', 'storage', 'locks'],
  client: ['contract', 'base'],
  evaluation: ['contract', 'base'],
  cli: ['contract', 'base', 'client', 'keychain', 'evaluation'],
  tui: ['contract', 'base', 'client', 'cli', 'evaluation'],
  commands: ['contract', 'base', 'client', 'cli', 'tui', 'evaluation'],
}

/**
 * Files without import limits: entry points, and by dynamic import or type the bridge between client and server.
 */
const roots = ['src/runtime.ts', 'src/rescue.ts', 'src/embedded.ts']
const bridge = 'src/cli/local.ts'
const bridged = [
  'embedded',
  'runtime',
  'rescue',
  'storage',
  'locks',
  'config',
  'http',
  'drill',
  'backup',
  'local-models',
  'models',
]

/** Packages with the only folders that can import them. */
const owners: Record<string, readonly string[]> = {
  h3: ['src/http/'],
  '@fastify/busboy': ['src/http/'],
  listhen: ['src/http/'],
  'better-sqlite3': ['src/storage/sqlite/driver.ts'],
  openai: ['src/models/'],
  'openid-client': ['src/auth/oidc/'],
  jose: ['src/auth/oidc/'],
  'lru-cache': [
    'src/access/',
    'src/auth/',
    'src/http/',
    'src/agents/tools/',
    'src/models/',
    'src/storage/',
    'src/knowledge/',
  ],
  undici: ['src/models/', 'src/client/node/'],
  'ipaddr.js': ['src/models/'],
  '@modelcontextprotocol/client': ['src/models/'],
  '@modelcontextprotocol/server': ['src/mcp/'],
  'prom-client': ['src/operation/'],
  '@napi-rs/keyring': ['src/keychain/libraries.ts'],
  keytar: ['src/keychain/libraries.ts'],
  pino: ['src/base/log.ts'],
  yaml: ['src/base/read-yaml.ts'],
  zod: [
    'src/contract/',
    'src/config/',
    'src/evaluation/',
    'src/http/',
    'src/agents/tools/',
    'src/mcp/',
    'src/storage/row-schemas.ts',
  ],
  '@oclif/core': ['src/cli/', 'commands/'],
  '@inquirer/prompts': ['src/cli/terminal/ask.ts'],
  'string-width': ['src/cli/terminal/terminal-text.ts'],
  'eventsource-parser': ['src/base/server-sent-events.ts'],
  'jq-wasm': ['src/cli/terminal/jq.ts'],
  open: ['src/cli/node-io.ts'],
  ink: ['src/tui/'],
  react: ['src/tui/'],
  marked: ['src/tui/markdown/'],
  lowlight: ['src/tui/markdown/'],
  '@e965/xlsx': ['src/formats/'],
  '@mixmark-io/domino': ['src/formats/', 'src/cli/web-sources/'],
  chardet: ['src/formats/'],
  mammoth: ['src/formats/'],
  'postal-mime': ['src/formats/'],
  'robots-parser': ['src/cli/web-sources/'],
  saxes: ['src/formats/', 'src/cli/web-sources/'],
  'modern-tar': ['src/cli/web-sources/'],
  turndown: ['src/formats/'],
  unpdf: ['src/formats/'],
  yauzl: ['src/formats/'],
}

/** Folders of storage drivers, and the registry, which is the only other file that can import them. */
const storageDrivers = ['src/storage/sqlite/', 'src/storage/memory/']
const driverRegistry = 'src/storage/open.ts'

/**
 * Files outside `test/storage` that can import the embedded store. They open its file directly: to damage it, to
 * create states that no runtime writes, to skip waits for the disk, or to run a part of it.
 */
const storeFileUsers = [
  'bench/durability.ts',
  'bench/filters.ts',
  'bench/postings.ts',
  'bench/tags.ts',
  'bench/vector-libraries.ts',
  'test/fixtures/store/migrate.ts',
  'test/harness/migrated-store.ts',
  'test/harness/store-file.ts',
  'test/harness/volatile-stores.ts',
]

/** Patterns of global state and of capabilities, with the only folders that can contain them. */
const ambient: [pattern: RegExp, places: readonly string[]][] = [
  [/process\.env\b/, ['src/cli/node-io.ts']],
  [/\bas Visibility\b/, ['src/access/row-access.ts']],
  [/\bas AuthContext\b/, ['src/access/subject.ts']],
  [/Date\.now\(|new Date\(\)|\brandomBytes\(|\brandomUUID\(|Math\.random\(/, ['src/base/']],
  [/AbortSignal\.timeout\(/, []],
]

/** `import type` from the server loads nothing, but is allowed in the bridge only. */
const statement =
  /(?:import|export)\s+(type\s)?(?:[^'"();]*?\sfrom\s*)?'([^']+)'|(import)\(\s*'([^']+)'\s*\)/g

interface Import {
  file: string
  target: string
  isType: boolean
  isDynamic: boolean
}

const files = ['src', 'commands'].flatMap(folder =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.tsx?$/.test(name))
    .map(name => join(folder, name)),
)

const imports: Import[] = files.flatMap(file =>
  [...code(file).matchAll(statement)].map(([, type, from, dynamic, loaded]) => ({
    file,
    target: (from ?? loaded)!,
    isType: type !== undefined,
    isDynamic: dynamic !== undefined,
  })),
)

/** Returns the code of a file without comments. */
function code(file: string): string {
  return readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}

function roomOf(file: string): string {
  const [top, room] = file.split('/')
  return top === 'src' ? room!.replace(/\.ts$/, '') : top!
}

/** Returns the rooms at both ends of a local import. */
function edgeOf({ file, target }: Import): [from: string, to: string] {
  return [roomOf(file), roomOf(relative('.', resolve(dirname(file), target)))]
}

function isAllowed(one: Import): boolean {
  const { file, target, isType, isDynamic } = one
  if (!target.startsWith('.') || roots.includes(file)) return true
  const [from, to] = edgeOf(one)
  if (from === to || allowed[from]?.includes(to)) return true
  return file === bridge && bridged.includes(to) && (isDynamic || isType)
}

function packageOf(target: string): string {
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/')
}

/** Returns import cycles. */
function circles(placeOf: (file: string) => string): string[] {
  const needs = new Map(files.map(file => [placeOf(file), new Set<string>()]))
  for (const { file, target } of imports) {
    const place = placeOf(relative('.', resolve(dirname(file), target)))
    if (target.startsWith('.') && place !== placeOf(file)) needs.get(placeOf(file))!.add(place)
  }
  const done = new Set<string>()
  const found: string[] = []
  const visit = (place: string, way: readonly string[]) => {
    if (way.includes(place)) found.push([...way.slice(way.indexOf(place)), place].join(' → '))
    if (way.includes(place) || done.has(place)) return
    for (const next of needs.get(place) ?? []) visit(next, [...way, place])
    done.add(place)
  }
  for (const place of needs.keys()) visit(place, [])
  return found
}

describe('import rules', () => {
  test('rooms import only allowed rooms, and client and server share only layer 0', () => {
    expect(imports.length).toBeGreaterThan(100)
    expect(imports.filter(one => !isAllowed(one)).map(one => `${one.file} → ${one.target}`)).toEqual([])
  })

  test('every allowed import is in use', () => {
    const local = imports.filter(({ file, target }) => target.startsWith('.') && !roots.includes(file))
    const edges = (some: Import[]) => new Set(some.map(one => edgeOf(one).join(' → ')))
    const needed = edges(local)
    const arrows = Object.entries(allowed).flatMap(([from, rooms]) => rooms.map(to => `${from} → ${to}`))
    expect(arrows.filter(arrow => !needed.has(arrow))).toEqual([])
    const crossed = edges(local.filter(({ file }) => file === bridge))
    expect(bridged.filter(to => !crossed.has(`cli → ${to}`))).toEqual([])
  })

  test('S1-10: the command line imports the server through its bridge only', () => {
    const crossings = imports.filter(
      one =>
        roomOf(one.file) === 'cli' && /\/(embedded|runtime|http|storage|locks|config)[/.]/.test(one.target),
    )
    expect([...new Set(crossings.map(one => one.file))]).toEqual([bridge])
    expect(crossings.filter(one => !one.isType && !one.isDynamic)).toEqual([])
  })

  test('no import cycles exist between files', () => {
    expect(circles(file => file)).toEqual([])
  })

  test('no import cycles exist between folders of the command line', () => {
    const isOutside = (file: string) => !file.startsWith('src/cli/') || dirname(file) === 'src/cli'
    expect(circles(file => (isOutside(file) ? file : dirname(file)))).toEqual([])
  })

  test('the table contains every room', () => {
    const rooms = new Set(files.filter(file => !roots.includes(file)).map(roomOf))
    expect([...rooms].filter(room => !(room in allowed))).toEqual([])
  })

  test.each(Object.entries(owners))('%s is imported only by %j', (name, places) => {
    const strangers = imports.filter(
      one => packageOf(one.target) === name && !places.some(place => one.file.startsWith(place)),
    )
    expect(strangers.map(one => one.file)).toEqual([])
  })

  test.each(ambient)('%s occurs only in %j', (pattern, places) => {
    const strangers = files.filter(
      file => pattern.test(code(file)) && !places.some(place => file.startsWith(place)),
    )
    expect(strangers).toEqual([])
  })

  test('in the command line and its screens, one file uses process', () => {
    const readers = files.filter(
      file =>
        /^(?:src\/(?:cli|tui)|commands)\//.test(file) &&
        /\bprocess[.[]|[=.]\s*process\b|^import.*node:process/m.test(code(file)),
    )
    expect(readers).toEqual(['src/cli/node-io.ts'])
  })

  test.each(storageDrivers)('%s is imported only by the registry of storage drivers', folder => {
    const importers = imports.filter(
      ({ file, target }) =>
        target.startsWith('.') &&
        !file.startsWith(folder) &&
        relative('.', resolve(dirname(file), target)).startsWith(folder),
    )
    expect([...new Set(importers.map(one => one.file))]).toEqual([driverRegistry])
  })

  test('tests and benchmarks open stores through the registry of storage drivers', () => {
    const others = ['test', 'bench'].flatMap(folder =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('.ts'))
        .map(name => join(folder, name)),
    )
    const users = others.filter(
      file =>
        !file.startsWith('test/storage/') &&
        /(?:from|import\() ?'[^']*\/storage\/sqlite\//.test(readFileSync(file, 'utf8')),
    )
    expect(users.sort()).toEqual(storeFileUsers)
  })

  test('tests and benchmarks load SQLite through the driver of the store', () => {
    const others = ['test', 'bench'].flatMap(folder =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('.ts'))
        .map(name => join(folder, name)),
    )
    const direct = others.filter(file =>
      /(?:from|require\() ?'better-sqlite3/.test(readFileSync(file, 'utf8')),
    )
    expect(direct).toEqual([])
  })

  test('local imports include the file extension', () => {
    const bare = imports.filter(one => one.target.startsWith('.') && !/\.(tsx?|js)$/.test(one.target))
    expect(bare.map(one => `${one.file} → ${one.target}`)).toEqual([])
  })
})
