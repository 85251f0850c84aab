import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { type ConfigLocations, findConfig } from '../../src/config/find-config.ts'
import { parseManagedEnv, readManagedEnv } from '../../src/config/managed-env.ts'

let root: string
let places: ConfigLocations & { systemDir: string }

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'wb-find-'))
  places = { cwd: join(root, 'here'), dataDir: join(root, 'data'), systemDir: join(root, 'etc') }
  for (const folder of [places.cwd, places.dataDir, places.systemDir]) mkdirSync(folder)
})
afterEach(() => rmSync(root, { recursive: true }))

const put = (folder: string) => writeFileSync(join(folder, 'workbase.yaml'), 'version: 1')

test('the flag comes before WB_CONFIG, the data directory and the system folder', () => {
  put(places.dataDir)
  put(places.systemDir)
  expect(findConfig({ ...places, flag: 'a.yaml', env: 'b.yaml' })).toEqual({
    path: join(places.cwd, 'a.yaml'),
    origin: 'flag',
  })
  expect(findConfig({ ...places, env: 'b.yaml' })).toEqual({
    path: join(places.cwd, 'b.yaml'),
    origin: 'environment',
  })
  expect(findConfig(places)).toEqual({
    path: join(places.dataDir, 'workbase.yaml'),
    origin: 'data directory',
  })
  rmSync(join(places.dataDir, 'workbase.yaml'))
  expect(findConfig(places)).toEqual({ path: join(places.systemDir, 'workbase.yaml'), origin: 'system' })
  rmSync(join(places.systemDir, 'workbase.yaml'))
  expect(findConfig(places)).toEqual({ path: null, origin: 'defaults' })
})

test('a file in the working directory is not taken unless it is named', () => {
  put(places.cwd)
  const untrusted = join(places.cwd, 'workbase.yaml')
  expect(findConfig(places)).toEqual({ path: null, origin: 'defaults', untrusted })
  put(places.dataDir)
  expect(findConfig(places)).toEqual({
    path: join(places.dataDir, 'workbase.yaml'),
    origin: 'data directory',
    untrusted,
  })
  expect(findConfig({ ...places, flag: untrusted })).toEqual({ path: untrusted, origin: 'flag' })
})

test('a file of a folder that is trusted comes after one that is named, and before all others [security rule 6]', () => {
  for (const folder of [places.cwd, places.dataDir, places.systemDir]) put(folder)
  const trusted = join(places.cwd, 'workbase.yaml')
  expect(findConfig({ ...places, trusted })).toEqual({ path: trusted, origin: 'working directory' })
  expect(findConfig({ ...places, trusted, env: '/b.yaml' })).toMatchObject({ origin: 'environment' })
})

test('in the data directory itself, its own file is no stranger', () => {
  put(places.dataDir)
  expect(findConfig({ ...places, cwd: places.dataDir })).not.toHaveProperty('untrusted')
})

test('a folder of that name is no file', () => {
  mkdirSync(join(places.cwd, 'workbase.yaml'))
  mkdirSync(join(places.dataDir, 'workbase.yaml'))
  expect(findConfig(places)).toEqual({ path: null, origin: 'defaults' })
})

test('the managed file is that of the data directory, and the process comes before it', () => {
  writeFileSync(join(places.cwd, '.env'), 'OPENAI_API_KEY="walked"')
  expect(readManagedEnv(places.dataDir).size).toBe(0)
  writeFileSync(
    join(places.dataDir, '.env'),
    '# keys\nOPENAI_API_KEY="a\\"b\\\\c"\nexport OTHER=plain # why\n\nBOTH=\'file\'\n',
  )
  const environment = createEnvironment({ BOTH: 'process' }, readManagedEnv(places.dataDir))
  expect(environment.get('OPENAI_API_KEY')).toBe('a"b\\c')
  expect(environment.get('OTHER')).toBe('plain')
  expect(environment.get('BOTH')).toBe('process')
})

test('a line that is no assignment is named by number and not quoted', () => {
  writeFileSync(join(places.dataDir, '.env'), 'A=1\nhunter2\n')
  expect(() => readManagedEnv(places.dataDir)).toThrow(/line 2 is not NAME="value"$/)
  expect(parseManagedEnv('A="unclosed')).toEqual({ variables: new Map(), badLine: 1 })
  expect(parseManagedEnv('A=\nB=""\r\n').variables).toEqual(
    new Map([
      ['A', ''],
      ['B', ''],
    ]),
  )
})

test('what the runtime picks from its environment', () => {
  const environment = createEnvironment({
    APP_VERSION: '9.9.9',
    APP_COMMIT: '',
    OLLAMA_BASE_URL: ' http://box:11434 ',
    DOCLING_URL: 'http://doc',
    DOCLING_TIMEOUT_MS: 'soon',
  })
  expect(environment.app).toEqual({ version: '9.9.9', commit: undefined, buildTime: undefined })
  expect(environment.ollamaBaseUrl).toBe('http://box:11434')
  expect(environment.docling).toEqual({ url: 'http://doc', timeoutMs: undefined })
})
