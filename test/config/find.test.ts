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

const writeConfig = (folder: string) => writeFileSync(join(folder, 'workbase.yaml'), 'version: 1')

test('the flag comes before WB_CONFIG, the data directory and the system folder', () => {
  writeConfig(places.dataDir)
  writeConfig(places.systemDir)
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

test('ignores a file in the working directory unless it is named', () => {
  writeConfig(places.cwd)
  const untrusted = join(places.cwd, 'workbase.yaml')
  expect(findConfig(places)).toEqual({ path: null, origin: 'defaults', untrusted })
  writeConfig(places.dataDir)
  expect(findConfig(places)).toEqual({
    path: join(places.dataDir, 'workbase.yaml'),
    origin: 'data directory',
    untrusted,
  })
  expect(findConfig({ ...places, flag: untrusted })).toEqual({ path: untrusted, origin: 'flag' })
})

test('a trusted file of the folder comes after a named file, and before all others [security rule 6]', () => {
  for (const folder of [places.cwd, places.dataDir, places.systemDir]) writeConfig(folder)
  const trusted = join(places.cwd, 'workbase.yaml')
  expect(findConfig({ ...places, trusted })).toEqual({ path: trusted, origin: 'working directory' })
  expect(findConfig({ ...places, trusted, env: '/b.yaml' })).toMatchObject({ origin: 'environment' })
})

test('uses the file of the data directory without trust if it is the working directory', () => {
  writeConfig(places.dataDir)
  expect(findConfig({ ...places, cwd: places.dataDir })).not.toHaveProperty('untrusted')
})

test('ignores a folder named workbase.yaml', () => {
  mkdirSync(join(places.cwd, 'workbase.yaml'))
  mkdirSync(join(places.dataDir, 'workbase.yaml'))
  expect(findConfig(places)).toEqual({ path: null, origin: 'defaults' })
})

test('reads the managed file of the data directory, and process variables override it', () => {
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

test('reports an invalid line by number without quoting it', () => {
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

test('reads runtime settings from the environment', () => {
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
