import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { oidcConfig, startDiscoveryServer } from './discovery.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'

/** A well-formed token that no runtime issued. */
const unknown = `wb_live_abcdefghijkl_${'z'.repeat(32)}`
const request = 'request [0-9A-Z]{26}'
const ownNext = [
  '    add --as-operator to act as the owner of the data directory',
  '    wb keys create NAME --role admin --as-operator    creates a key for WB_API_KEY',
  '',
].join('\n')
const namedNext = [
  '    wb keys create NAME    creates a key, if you may manage keys',
  '    set WB_API_KEY=… to authenticate, or sign in:',
  '    wb login http://127.0.0.1:\\d+',
  '',
].join('\n')

/** Creates a data directory whose runtime rejects anonymous callers. */
function createClosedSandbox(): Sandbox & { config: string } {
  const sandbox = createSandbox()
  const config = join(sandbox.home, 'closed.yaml')
  writeFileSync(config, 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n')
  sandbox.env.WB_CONFIG = config
  return { ...sandbox, config }
}

function unauthorizedError(next: string, words = 'This runtime rejects requests without credentials') {
  return new RegExp(`^ {2}✗ ${words} \\(unauthorized, ${request}\\)\\n${next.replaceAll('…', '.')}$`)
}

describe('the operator [security rule 8]', () => {
  test('denies access by default, and grants it in process with --as-operator', async () => {
    const { wb } = createClosedSandbox()
    const stranger = await wb(['workspaces', 'list'])
    expect(stranger).toEqual({
      status: 3,
      stdout: '',
      stderr: expect.stringMatching(unauthorizedError(ownNext)),
    })
    expect(await wb(['workspaces', 'create', 'demo', '--as-operator'])).toMatchObject({ status: 0 })
    expect((await wb(['workspaces', 'list', '--as-operator'])).stdout).toContain('\tdemo\t')
    expect((await wb(['workspaces', 'list'])).status).toBe(3)
  })

  test('auth status without a credential suggests the flag and the command that creates the first key', async () => {
    const { status, stderr } = await createClosedSandbox().wb(['auth', 'status'])
    expect(status).toBe(3)
    expect(stderr).toMatch(/^ {2}\S+ requires a credential\n/)
    expect(stderr.replace(/^.*\n/, '').replace(/^ {2}/gm, '    ')).toBe(ownNext)
  })

  test("works in process while a server runs, and the server's error suggests the flag", async () => {
    const sandbox = createClosedSandbox()
    const { url } = await sandbox.serve()
    const stranger = await sandbox.wb(['workspaces', 'list'])
    expect(stranger).toEqual({
      status: 3,
      stdout: '',
      stderr: expect.stringMatching(unauthorizedError(ownNext)),
    })
    expect(await sandbox.wb(['workspaces', 'create', 'demo', '--as-operator'])).toMatchObject({ status: 0 })
    expect((await sandbox.wb(['workspaces', 'list', '--as-operator'])).stdout).toContain('\tdemo\t')
    const named = await sandbox.wb(['workspaces', 'list', '--url', url])
    expect(named).toEqual({
      status: 3,
      stdout: '',
      stderr: expect.stringMatching(unauthorizedError(namedNext)),
    })
  })

  test('refuses to read counts and errors of a running server', async () => {
    const sandbox = createClosedSandbox()
    const counts = await sandbox.wb(['api', 'GET', '/metrics', '--as-operator'])
    expect(counts.stdout).toContain('# TYPE workbase_http_requests_total counter')
    const { url } = await sandbox.serve()
    const paths = ['/metrics', '/health/recent-errors', '/health/details?x=1']
    for (const path of paths)
      expect(await sandbox.wb(['api', 'GET', path, '--as-operator'])).toEqual({
        status: 2,
        stdout: '',
        stderr: [
          `  ✗ --as-operator runs in this process and cannot read ${path} of the server at ${url}`,
          '    leave out --as-operator to query the server',
          '    if the server requires a credential, set WB_API_KEY to its bootstrap token',
          '',
        ].join('\n'),
      })
  })

  test('does not need a secret that is set only for the server', async () => {
    const sandbox = createClosedSandbox()
    writeFileSync(
      sandbox.config,
      'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject, bootstrapTokenRef: env:ONLY_THERE }\n',
    )
    expect(await sandbox.wb(['workspaces', 'create', 'demo', '--as-operator'])).toMatchObject({ status: 0 })
    expect(await sandbox.wb(['serve', '--port', '0'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('auth.bootstrapTokenRef: env:ONLY_THERE is not set'),
    })
  })

  test('is not available over HTTP, and a named runtime is a usage error that explains why', async () => {
    const { wb, dataDir } = createClosedSandbox()
    expect(await wb(['kb', 'list', '--as-operator', '--url', 'http://127.0.0.1:1'])).toEqual({
      status: 2,
      stdout: '',
      stderr:
        '  ✗ --as-operator works on a data directory of this machine, but --url selects http://127.0.0.1:1\n    to authenticate over HTTP, sign in or set WB_API_KEY\n    remove --url\n',
    })
    const env = { WB_URL: 'http://127.0.0.1:1' }
    expect(await wb(['kb', 'list', '--as-operator'], { env })).toEqual({
      status: 2,
      stdout: '',
      stderr: `  ✗ --as-operator works on a data directory of this machine, but WB_URL selects http://127.0.0.1:1\n    to authenticate over HTTP, sign in or set WB_API_KEY\n    --data-dir ${dataDir}    selects the data directory of this machine\n`,
    })
    const closer = await wb(['workspaces', 'list', '--as-operator', '--data-dir', dataDir], { env })
    expect(closer.status).toBe(0)
    expect(await wb(['serve', '--port', '0', '--as-operator'])).toEqual({
      status: 2,
      stdout: '',
      stderr:
        '  ✗ Wb serve authenticates callers by its configuration and does not accept --as-operator\n    wb serve --help\n',
    })
  })

  test('prints the same suggestion as JSON', async () => {
    const { stderr, status } = await createClosedSandbox().wb(['workspaces', 'list', '--json'])
    expect(status).toBe(3)
    expect(JSON.parse(stderr)).toMatchObject({
      error: {
        code: 'unauthorized',
        hint: expect.stringContaining('wb keys create NAME --role admin --as-operator'),
      },
    })
  })
})

describe('a runtime with an identity provider [security rule 8]', () => {
  /** Starts a runtime that accepts only tokens of its identity provider. */
  async function serveWithProvider() {
    const sandbox = createClosedSandbox()
    writeFileSync(sandbox.config, oidcConfig(await startDiscoveryServer()))
    return { ...sandbox, url: (await sandbox.serve()).url }
  }
  const takes = (url: string) => `    sign in at ${url}/auth/login, or set WB_API_KEY to an access token\n`

  test('suggests sign-in instead of a key, which the runtime does not accept', async () => {
    const sandbox = await serveWithProvider()
    const inProcess = await sandbox.wb(['workspaces', 'list'])
    expect(inProcess.stderr).toMatch(
      unauthorizedError(
        `    add --as-operator to act as the owner of the data directory\n${takes(sandbox.url)}`,
      ),
    )
    const named = await sandbox.wb(['workspaces', 'list', '--url', sandbox.url])
    expect(named.stderr).toMatch(unauthorizedError(takes(sandbox.url)))
    const env = { WB_API_KEY: unknown }
    const key = await sandbox.wb(['workspaces', 'list', '--url', sandbox.url], { env })
    expect(key.status).toBe(3)
    expect(key.stderr).toMatch(
      new RegExp(`    this runtime does not accept API keys \\(auth.mode oidc\\)\\n${takes(sandbox.url)}$`),
    )
  })

  test('suggests an access token in process, where there is no sign-in address', async () => {
    const sandbox = createClosedSandbox()
    writeFileSync(sandbox.config, oidcConfig('http://127.0.0.1:1'))
    expect((await sandbox.wb(['workspaces', 'list'])).stderr).toContain(
      'the owner of the data directory\n    set WB_API_KEY to an access token of the identity provider\n',
    )
  })
})

describe('a caller bound to workspaces', () => {
  test('an error names the workspace that the key can access', async () => {
    const { wb } = createClosedSandbox()
    for (const name of ['demo', 'other']) await wb(['workspaces', 'create', name, '--as-operator'])
    const create = ['keys', 'create', 'ci', '--role', 'viewer', '-w', 'demo', '--as-operator']
    const env = { WB_API_KEY: (await wb(create)).stdout.trim() }
    expect(await wb(['kb', 'list', '-w', 'other'], { env })).toEqual({
      status: 4,
      stdout: '',
      stderr:
        '  ✗ No workspace is named "other"; this key (ci) has access only to workspace demo (workspace_not_found)\n    wb workspaces list\n',
    })
  })

  test('an error says that the key cannot access the default workspace', async () => {
    const { wb } = createClosedSandbox()
    const created = ['demo', 'other'].map(name => wb(['workspaces', 'create', name, '--as-operator']))
    const [demo] = await Promise.all(created)
    await wb(['workspaces', 'use', 'demo', '--as-operator'])
    const create = ['keys', 'create', 'ci', '--role', 'viewer', '-w', 'other', '--as-operator']
    const env = { WB_API_KEY: (await wb(create)).stdout.trim() }
    const { status, stderr } = await wb(['kb', 'list'], { env })
    expect(status).toBe(3)
    const [message, ...next] = stderr.trimEnd().split('\n')
    expect(message).toContain(
      `✗ Your credential has no access to the default workspace ${demo!.stdout.trim()} (forbidden`,
    )
    expect(next).toEqual([
      '    wb workspaces list',
      '    wb workspaces use NAME',
      '    add --as-operator to act as the owner of the data directory',
    ])
  })

  test('a token without workspaces is explained, without a suggestion to create one', async () => {
    const { wb } = createSandbox()
    const server = createServer((request, response) => {
      const me = { id: 'd', label: 'dave', type: 'oidc', workspaceScopes: [] }
      const body = request.url === '/auth/me' ? me : { items: [], nextCursor: null }
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const why =
      'you are signed in as dave, but you have no access to any workspace: the claim wb_workspace_scopes of your token is missing or empty'
    for (const command of ['list', 'create'])
      expect(await wb(['kb', command, ...(command === 'create' ? ['x'] : []), '--url', url])).toEqual({
        status: 4,
        stdout: '',
        stderr: `  ✗ Y${why.slice(1)} (workspace_not_found)\n`,
      })
    expect((await wb(['workspaces', 'list', '--url', url])).stderr).toBe(`  ${why}\n`)
  })
})

describe('a key on the command line', () => {
  test('an invalid key is identified by its prefix, in process and over HTTP, and not shown', async () => {
    const sandbox = createClosedSandbox()
    const list = async (token: string, ...more: string[]) => {
      const env = { WB_API_KEY: token }
      const { status, stdout, stderr } = await sandbox.wb(['workspaces', 'list', '--debug', ...more], { env })
      expect({ status, stdout }).toEqual({ status: 3, stdout: '' })
      expect(stderr).not.toContain(token)
      return stderr
    }
    expect(await list(unknown)).toContain(
      '    this runtime does not accept the key abcdefghijkl in WB_API_KEY\n',
    )
    const { url } = await sandbox.serve()
    const words = `    the runtime at ${url} does not accept the key abcdefghijkl in WB_API_KEY\n`
    expect(await list(unknown)).toContain(words)
    expect(await list(unknown, '--url', url)).toContain(words)
    expect(await list('eyJhbGciOiJub25lIn0.e30.x')).toContain(
      `    the runtime at ${url} does not accept the token in WB_API_KEY\n`,
    )
    const env = { WB_API_KEY: unknown }
    expect((await sandbox.wb(['workspaces', 'list', '--as-operator'], { env })).status).toBe(0)
  })

  test.each([['a\nb'], ['key with blanks'], ['schlüssel'], ['a\x07b']])(
    'a key that no header can contain is a usage error that shows no part of it: %j',
    async key => {
      const { wb } = createSandbox()
      expect(await wb(['workspaces', 'list', '--debug'], { env: { WB_API_KEY: key } })).toEqual({
        status: 2,
        stdout: '',
        stderr: expect.not.stringContaining(key),
      })
    },
  )

  test('a trailing line break from a file is removed', async () => {
    const { wb } = createSandbox()
    expect(await wb(['workspaces', 'list'], { env: { WB_API_KEY: `${unknown}\r\n` } })).toMatchObject({
      status: 0,
    })
  })

  test.each(['authorization: Bearer s3cret\nx', 'authorization s3cret', 'Bearer s3cret: x', ': s3cret'])(
    'S5.9-02: an error about an invalid header does not show its value: %j',
    async header => {
      const { status, stderr } = await createSandbox().wb(['api', 'GET', '/version', '-H', header, '--debug'])
      expect(status).toBe(2)
      expect(stderr).not.toContain('s3cret')
    },
  )

  describe('in process', () => {
    const { wb } = createSandbox(afterAll)
    beforeAll(async () => {
      await wb(['workspaces', 'create', 'demo'])
    })

    test.each([
      [['api', 'GET', '/version', '-H', `Bearer ${unknown}`]],
      [['api', 'GET', '/version', '-H', `authorization: Bearer ${unknown}\nx: y`]],
      [['api', 'GET', `/${unknown}`]],
      [[unknown]],
      [['keys', unknown]],
      [['keys', 'show', unknown]],
      [['keys', 'revoke', unknown, '--yes']],
      [['keys', 'rotate', unknown, 'x']],
      [['kb', 'show', unknown]],
      [['kb', 'create', 'x', `--${unknown}`]],
    ])('S5.9-02: a token in the wrong argument is not repeated on stderr: %j', async args => {
      for (const more of ['--json', '--debug']) {
        const { status, stdout, stderr } = await wb([...args, more])
        expect(status).not.toBe(0)
        expect(stdout + stderr).not.toContain('z'.repeat(32))
      }
    })
  })
})
