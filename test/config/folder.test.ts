import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { knownKeys } from '../../src/config/known-keys.ts'
import { harmlessKeys, riskyValues } from '../../src/config/risky-values.ts'
import { configSchema } from '../../src/config/schema.ts'
import { readProjectFile, surveyFolder } from '../../src/config/survey-folder.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wb-folder-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const writeInFolder = (name: string, text: string, mode = 0o600) =>
  writeFileSync(join(folder, name), text, { mode })
const files = () => surveyFolder(folder).files

describe('risky keys [security rule 6]', () => {
  test('are all keys except known harmless ones', () => {
    const known = knownKeys(configSchema)
    expect(harmlessKeys.filter(key => !known.includes(key))).toEqual([])
    const sending =
      /auth\b|url|ref|origin|allowed|allow\b|host|endpoint|proxy|stdioServers|controlPlane|secret|private|provider|csrf/i
    expect(harmlessKeys.filter(key => sending.test(key))).toEqual([])
  })

  test('are recorded as written, and a placeholder makes any key risky', () => {
    const placeholder = `\${SECRET}`
    const tree = {
      version: 1,
      runtime: { port: 1, logLevel: placeholder, allowedHosts: ['a'] },
      auth: { mode: 'disabled' },
      mcp: { stdioServers: [{ id: 'x', command: 'sh' }] },
      unknown: {},
    }
    expect(riskyValues(tree)).toEqual({
      'runtime.logLevel': `"${placeholder}"`,
      'runtime.allowedHosts[0]': '"a"',
      'auth.mode': '"disabled"',
      'mcp.stdioServers[0].id': '"x"',
      'mcp.stdioServers[0].command': '"sh"',
      unknown: '{}',
    })
  })
})

describe("the fingerprint of a folder's files", () => {
  test('is empty without files, and contains only names if .wb.yaml selects no profile', () => {
    writeInFolder('.wb.yaml', 'workspace: docs\nknowledgeBase: handbook\n')
    expect(surveyFolder(folder)).toEqual({ files: {} })
    expect(readProjectFile(join(folder, '.wb.yaml'))).toEqual({
      workspace: 'docs',
      knowledgeBase: 'handbook',
    })
    expect(readProjectFile(join(folder, 'none'))).toEqual({})
  })

  test('does not change with comments, spacing or harmless keys', () => {
    writeInFolder('workbase.yaml', 'version: 1\nchat: { baseUrl: "https://a.example" }\n')
    const before = files()
    writeInFolder(
      'workbase.yaml',
      '# mine\nversion: 1\nchat:\n  baseUrl: https://a.example\n  retrievalK: 3\n',
    )
    expect(files()).toEqual(before)
    writeInFolder('workbase.yaml', 'version: 1\nchat: { baseUrl: "https://b.example" }\n')
    expect(files()).not.toEqual(before)
  })

  test('contains variables of the data directory, but no value that could be secret', () => {
    mkdirSync(join(folder, '.workbase'), { mode: 0o700 })
    writeInFolder('.workbase/.env', 'OPENAI_API_KEY="k"\nTOKEN="hunter2"\nOLLAMA_BASE_URL="http://box:1"\n')
    expect(files()).toEqual({
      '.workbase/': { store: 'none' },
      '.workbase/.env': {
        TOKEN: expect.stringMatching(/^set, [0-9a-f]{16}$/),
        OLLAMA_BASE_URL: '"http://box:1"',
      },
    })
  })

  test('changes when another store replaces the existing one', () => {
    mkdirSync(join(folder, '.workbase'), { mode: 0o700 })
    writeInFolder('.workbase/workbase.db', 'a')
    const before = files()
    writeInFolder('.workbase/workbase.db', 'grown by its own process')
    expect(files()).toEqual(before)
    copyFileSync(join(folder, '.workbase/workbase.db'), join(folder, 'planted'))
    renameSync(join(folder, 'planted'), join(folder, '.workbase/workbase.db'))
    expect(files()).not.toEqual(before)
  })

  test('does not change with logs and locks of the runtime, which must be private regular files', () => {
    mkdirSync(join(folder, '.workbase'), { mode: 0o700 })
    writeInFolder('.workbase/workbase.db', 'a')
    const before = surveyFolder(folder)
    const names = ['workbase.db-wal', 'workbase.db-shm', 'workbase.db-journal', 'serve.json', 'serve.lock']
    for (const name of names) writeInFolder(`.workbase/${name}`, '')
    expect(surveyFolder(folder)).toEqual(before)
    for (const name of ['workbase.db', ...names]) {
      const path = join(folder, '.workbase', name)
      for (const mode of [0o644, 0o640, 0o602]) {
        chmodSync(path, mode)
        expect(surveyFolder(folder).fault).toContain(`"chmod 600 .workbase/${name}"`)
      }
      rmSync(path)
      symlinkSync('/etc/passwd', path)
      expect(surveyFolder(folder).fault).toBe(`${path}: is not a regular file`)
      rmSync(path)
      writeInFolder(`.workbase/${name}`, '')
    }
  })

  test.each<[string, () => void, RegExp]>([
    [
      'a link out of the folder',
      () => symlinkSync('/etc/passwd', join(folder, 'workbase.yaml')),
      /not a regular file/,
    ],
    ['a linked data directory', () => symlinkSync('/tmp', join(folder, '.workbase')), /is not a folder/],
    ['a pipe', () => void execFileSync('mkfifo', [join(folder, '.wb.yaml')]), /not a regular file/],
    ['invalid YAML', () => writeInFolder('workbase.yaml', 'a: [hunter2'), /line 1, column \d+: [a-z ]+$/],
    [
      'an unknown key',
      () => writeInFolder('.wb.yaml', 'profile: a\nurl: https://evil.example\n'),
      /url is not a key/,
    ],
    ['an oversized file', () => writeInFolder('.wb.yaml', `# ${'x'.repeat(70_000)}`), /larger than 64 KB/],
    [
      'a data directory that other users can write',
      () => {
        mkdirSync(join(folder, '.workbase'))
        chmodSync(join(folder, '.workbase'), 0o777)
      },
      /other users can write/,
    ],
  ])('%s cannot be trusted', (_name, make, fault) => {
    make()
    expect(surveyFolder(folder).fault).toMatch(fault)
  })

  test.each(['- a', 'workspace: [a]', 'workspace: ""', 'profile: 1', 'workspace: "a\\nb"', 'stray'])(
    '.wb.yaml cannot contain %j',
    text => {
      writeInFolder('.wb.yaml', text)
      expect(() => readProjectFile(join(folder, '.wb.yaml'))).toThrow(
        expect.objectContaining({ code: 'validation_error' }),
      )
    },
  )
})
