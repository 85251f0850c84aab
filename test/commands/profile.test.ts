import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sessionVariables } from '../../src/cli/environment.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { readProfile } from '../../src/cli/settings/profile.ts'
import { createSandbox } from './sandbox.ts'

const dataDir = '/srv/data'
const cwd = '/srv'

describe('the context of a command', () => {
  test('prefers a flag to the environment, and the environment to the platform default', () => {
    const env = {
      HOME: '/h',
      WB_DATA_DIR: '/e',
      WB_WORKSPACE: 'env',
      WB_CONFIG: '/c.yaml',
      XDG_DATA_HOME: '/x',
    }
    expect(readProfile({ dataDir, workspace: 'flag' }, { env, cwd })).toMatchObject({
      dataDir,
      workspace: 'flag',
      config: { flag: undefined, variable: '/c.yaml' },
      url: undefined,
    })
    expect(readProfile({}, { env, cwd })).toMatchObject({ dataDir: '/e', workspace: 'env' })
    if (process.platform === 'linux')
      expect(readProfile({}, { env: { XDG_DATA_HOME: '/x' }, cwd }).dataDir).toBe('/x/workbase')
  })

  test('passes the session to the keychain process, but no credentials [security rule 6]', () => {
    const session = { HOME: '/h', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/b', XDG_RUNTIME_DIR: '/r', LANG: 'C' }
    const secrets = {
      WB_API_KEY: 'canary',
      OPENAI_API_KEY: 'canary',
      BOOTSTRAP: 'canary',
      NODE_OPTIONS: '-r x',
    }
    expect(sessionVariables({ ...session, ...secrets })).toEqual(session)
  })

  test('treats an empty variable as unset', () => {
    expect(
      readProfile({ dataDir }, { env: { WB_URL: '', WB_API_KEY: '', NO_COLOR: '' }, cwd }),
    ).toMatchObject({
      url: undefined,
      apiKey: undefined,
      hasColors: true,
    })
  })

  test.each([
    ['WB_URL names it', {}, { WB_URL: 'https://wb.example', WB_API_KEY: 'k' }, 'k'],
    ['no runtime is named', {}, { WB_API_KEY: 'k' }, 'k'],
    [
      'a flag names the same runtime',
      { url: 'https://wb.example/' },
      { WB_URL: 'https://wb.example', WB_API_KEY: 'k' },
      'k',
    ],
    [
      'a flag names another runtime',
      { url: 'https://evil.example' },
      { WB_URL: 'https://wb.example', WB_API_KEY: 'k' },
      undefined,
    ],
    [
      'a flag names a data directory',
      { dataDir },
      { WB_URL: 'https://wb.example', WB_API_KEY: 'k' },
      undefined,
    ],
    [
      'a flag selects this machine',
      { local: true },
      { WB_URL: 'https://wb.example', WB_API_KEY: 'k' },
      undefined,
    ],
  ])(
    'if %s, a key is sent only to the runtime that it belongs to [security rule 6]',
    (_case, flags, env, key) => {
      expect(readProfile(flags, { env, cwd }).apiKey).toBe(key)
    },
  )

  test('sends no key unencrypted to another machine [security rule 15]', () => {
    const far = { WB_URL: 'http://wb.example', WB_API_KEY: 'k' }
    expect(() => readProfile({}, { env: far, cwd })).toThrow(UsageError)
    expect(readProfile({ insecureHttp: true }, { env: far, cwd }).apiKey).toBe('k')
    expect(readProfile({}, { env: { ...far, WB_API_KEY: undefined }, cwd }).url).toBe('http://wb.example')
    for (const near of ['http://127.0.0.1:8787', 'http://localhost:1', 'http://[::1]:1'])
      expect(readProfile({}, { env: { ...far, WB_URL: near }, cwd }).apiKey).toBe('k')
  })

  test('uses the files of the folder last, and their knowledge base only in the same workspace', () => {
    const folder = {
      workspace: 'docs',
      knowledgeBase: 'handbook',
      dataDir: '/repo/.workbase',
      config: '/repo/workbase.yaml',
    }
    expect(readProfile({}, { env: {}, cwd }, folder)).toMatchObject({
      workspace: 'docs',
      workspaceSource: '.wb.yaml',
      knowledgeBase: 'handbook',
      dataDir: '/repo/.workbase',
      dataDirSource: 'working directory',
      config: { trusted: '/repo/workbase.yaml' },
    })
    const named = { workspace: 'other', knowledgeBase: undefined }
    expect(readProfile({ workspace: 'other', dataDir }, { env: {}, cwd }, folder)).toMatchObject({
      ...named,
      dataDir,
    })
    expect(readProfile({}, { env: { WB_WORKSPACE: 'other', WB_DATA_DIR: '/e' }, cwd }, folder)).toMatchObject(
      {
        ...named,
        dataDir: '/e',
      },
    )
  })

  test.each(['wb.example', 'ftp://wb.example', 'http://', 'https://me:secret@wb.example'])(
    'rejects %s as the address of a runtime',
    url => {
      expect(() => readProfile({ url }, { env: {}, cwd })).toThrow(UsageError)
    },
  )
})

describe('the command line', () => {
  test('answers --version, and shows the first commands in its help', async () => {
    const { wb } = createSandbox()
    expect((await wb(['--version'])).stdout).toMatch(/^workbase\/\d+\.\d+\.\d+ /)
    const { stdout, status } = await wb([])
    expect(status).toBe(0)
    expect(stdout.split('\n').filter(line => /^ {2}\S.* {2}\S/.test(line)).length).toBeLessThanOrEqual(8)
    expect((await wb(['--help'])).stdout).toContain('workspaces use')
  })

  test.each([
    [['kb', 'lst'], 2, '  ✗ Unknown command "wb kb lst"\n    did you mean wb kb list?\n    wb kb --help\n'],
    [
      ['--url', 'http://127.0.0.1:9', 'kb', 'show', 'my notes'],
      2,
      '  ✗ Put --url after the command\n    wb kb show "my notes" --url http://127.0.0.1:9\n    wb --help\n',
    ],
    [['--json'], 2, '  ✗ Put --json after the command\n    wb kb list --json\n    wb --help\n'],
    [['serv'], 2, '  ✗ Unknown command "wb serv"\n    did you mean wb serve?\n    wb --help\n'],
    [['kb', 'list', '--bogus'], 2, '  ✗ Unknown flag --bogus\n    wb kb list --help\n'],
    [
      ['kb', 'list', '--limt', '3'],
      2,
      '  ✗ Unknown flag --limt\n    did you mean --limit?\n    wb kb list --help\n',
    ],
    [['serch', 'x'], 2, '  ✗ Unknown command "wb serch"\n    did you mean wb search?\n    wb --help\n'],
    [['ingst', 'x'], 2, '  ✗ Unknown command "wb ingst"\n    did you mean wb kb ingest?\n    wb --help\n'],
    [['workspaces', 'use'], 2, '  ✗ NAME is missing: name or ID\n    wb workspaces use --help\n'],
    [['kb', 'list', 'a', 'b'], 2, '  ✗ Unexpected arguments: a, b\n    wb kb list --help\n'],
    [
      ['kb', 'search', 'where', 'is', 'it'],
      2,
      '  ✗ Put a question of several words in quotes\n    wb kb search "where is it"\n    wb kb search where "is it"\n',
    ],
    [
      ['kb', 'search'],
      2,
      '  ✗ QUESTION is missing: type search terms or a question\n    wb kb search --help\n',
    ],
    [
      ['serve', '--https-cert', 'a', '--https-key', 'b'],
      2,
      '  ✗ --https-cert: a cannot be read (ENOENT)\n    wb serve --help\n',
    ],
    [
      ['kb', 'list', '--limit', 'x'],
      2,
      '  ✗ --limit: Expected an integer but received: x\n    wb kb list --help\n',
    ],
    [
      ['kb', 'list', '--url', 'nowhere'],
      2,
      '  ✗ --url is "nowhere", which is not an http(s) address\n    wb kb list --url http://127.0.0.1:8787\n',
    ],
    [
      ['explain', 'kb_nam_taken'],
      2,
      '  ✗ "kb_nam_taken" is not an error code\n    did you mean kb_name_taken?\n    wb explain\n',
    ],
    [
      ['kb', 'list', '--url', 'http://127.0.0.1:1'],
      6,
      '  ✗ No runtime responds at http://127.0.0.1:1: connection refused\n    Check the address (--url, WB_URL), or start a runtime there.\n    wb serve --port 1\n',
    ],
    [
      ['api', 'POST', '/x', '-d', '@nofile'],
      2,
      '  ✗ "nofile" cannot be read: file not found\n    wb api --help\n',
    ],
  ])('wb %j ends with %i', async (args, status, stderr) => {
    expect(await createSandbox().wb(args)).toEqual({ status, stdout: '', stderr })
  })

  test('does not suggest starting a runtime if another server listens', async () => {
    const server = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { status, stderr } = await createSandbox().wb(['kb', 'list', '--url', url])
    expect(status).toBe(6)
    expect(stderr).toContain('but is not a Workbase runtime\n')
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(`    wb doctor --url ${url}`)
  })

  test('prints the caller as an object, also for an anonymous caller', async () => {
    const { status, stdout } = await createSandbox().wb(['whoami', '--json'])
    expect([status, JSON.parse(stdout)]).toEqual([
      0,
      expect.objectContaining({ type: 'anonymous', id: null, label: null, scopes: null }),
    ])
  })

  test('explains a code without a runtime', async () => {
    const { wb } = createSandbox()
    expect((await wb(['explain', 'kb-name-taken'])).stdout).toBe(
      'code\tkb_name_taken\nhttp status\t409\nexit status\t5\nwhat to do\tChoose another name. Names are unique in a workspace.\ndocs\tdocs/errors.md#kb-name-taken\n',
    )
    const all = JSON.parse((await wb(['explain', '--json'])).stdout) as { code: string }[]
    expect(all.map(({ code }) => code)).toContain('workspace_not_found')
  })

  test('finds, shows and checks the configuration, and prints no secret', async () => {
    const { wb, home } = createSandbox()
    expect(await wb(['config', 'path'])).toEqual({
      status: 0,
      stdout: '',
      stderr: '  no configuration file; all keys have their default values\n',
    })
    const shown = JSON.parse((await wb(['config', 'show', '--json'])).stdout) as object[]
    expect(shown).toContainEqual({ key: 'runtime.port', value: 8787, source: 'default' })
    expect((await wb(['config', 'validate'])).status).toBe(0)
    const file = join(home, 'mine.yaml')
    writeFileSync(file, 'version: 1\nruntime: { prt: 1 }\n')
    const invalid = await wb(['config', 'validate', '--config', file])
    expect(invalid).toMatchObject({ status: 1, stdout: expect.stringContaining('runtime.port') })
  })
})
