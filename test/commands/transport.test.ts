import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connectionSettings } from '../../src/cli/environment.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { createSandbox } from './sandbox.ts'

const file = (name: string) => resolve(`test/fixtures/tls/${name}.pem`)
const canary = 'c4n4ry-of-the-key'
const list = ['workspaces', 'list']

async function listenOnFreePort(server: Server): Promise<number> {
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Starts a server that responds like an empty runtime, and returns its address. */
async function startEmptyRuntime(headers: Record<string, string | string[]> = {}) {
  const requests: IncomingMessage[] = []
  const answer: RequestListener = (request, response) => {
    requests.push(request)
    response.writeHead(200, { 'content-type': 'application/json', ...headers })
    response.end('{"items":[],"nextCursor":null}')
  }
  return { requests, answer, url: `http://127.0.0.1:${await listenOnFreePort(createServer(answer))}` }
}

describe('--debug', () => {
  test('prints each request and response, without secrets', async () => {
    const { url } = await startEmptyRuntime({
      'x-request-id': 'R-1',
      'set-cookie': [`a=${canary}`, `b=${canary}`],
      'x-echo': `Bearer ${canary}`,
      location: `https://id.example/authorize?state=${canary}&client_id=x#${canary}`,
    })
    const line = ['api', 'POST', `/auth/x?token=${canary}`, '-H', `X-Api-Key: ${canary}`]
    const body = ['--data', `{"refresh_token":"${canary}"}`]
    const env = { WB_API_KEY: canary }
    const { status, stderr } = await createSandbox().wb([...line, ...body, '--url', url, '--debug'], { env })
    expect(status, stderr).toBe(0)
    expect(stderr).toContain(`> POST ${url}/auth/x?token=[redacted] (37 bytes)\n`)
    expect(stderr).toMatch(/\n> {3}authorization: \[redacted\]\n/)
    expect(stderr).toMatch(/\n< 200 in \d+ ms\n/)
    expect(stderr).toContain('<   x-request-id: R-1\n')
    expect(stderr).toContain('<   location: https://id.example/authorize?[redacted]\n')
    expect(stderr).not.toContain(canary)
  })

  test('prints why a connection failed', async () => {
    const { status, stderr } = await createSandbox().wb([...list, '--url', 'http://127.0.0.1:1', '--debug'])
    expect(status).toBe(6)
    expect(stderr).toContain('< no runtime responds at http://127.0.0.1:1: connection refused in ')
  })
})

describe('a runtime of another version', () => {
  test.each([
    ['prints one line', '0.999.0', {}, [], true],
    ['prints nothing if only the patch version differs', sameMinor(), {}, [], false],
    ['prints nothing if the version is invalid', '0.999.0\u00e9', {}, [], false],
    ['prints nothing with --json', '0.999.0', {}, ['--json'], false],
    ['prints nothing with --quiet', '0.999.0', {}, ['--quiet'], false],
    ['prints nothing in CI', '0.999.0', { CI: 'true' }, [], false],
  ])('%s', async (_what, version, env, more, isPrinted) => {
    const { url } = await startEmptyRuntime({ 'x-workbase-version': version })
    const { status, stderr } = await createSandbox().wb([...list, '--url', url, ...more], { env })
    expect(status).toBe(0)
    expect(stderr.split('this is wb').length - 1).toBe(isPrinted ? 1 : 0)
    if (isPrinted) expect(stderr).toMatch(/^ {2}this is wb \d+\.\d+\.\d+, but the runtime is 0\.999\.0\n/)
  })
})

describe('a runtime that stops responding', () => {
  test.each([
    ['before its answer', () => {}],
    ['within its answer', (_request, response) => void response.writeHead(200).write('{"items":[')],
  ] as [string, RequestListener][])(
    '%s ends the command, and suggests how to wait longer',
    async (_when, answer) => {
      const url = `http://127.0.0.1:${await listenOnFreePort(createServer(answer))}`
      const env = { WB_IDLE_TIMEOUT: '1' }
      const { status, stderr } = await createSandbox().wb([...list, '--url', url], { env })
      expect(status, stderr).toBe(6)
      expect(stderr).toMatch(/^ {2}✗ http:\/\/127\.0\.0\.1:\d+ (?:did not respond|stopped sending).* 1 s\n/)
      expect(stderr).toContain('raise WB_IDLE_TIMEOUT (seconds)')
    },
  )

  test.each(['0', '86401', '1.5', 'soon'])('WB_IDLE_TIMEOUT=%s is a usage error', WB_IDLE_TIMEOUT => {
    expect(() => connectionSettings({ WB_IDLE_TIMEOUT })).toThrow(UsageError)
  })
})

describe('environment variables', () => {
  test('set proxies, which are not used for this machine', async () => {
    const { url, requests } = await startEmptyRuntime()
    const env = { http_proxy: url.replace('http://', ''), HTTP_PROXY: 'http://127.0.0.1:1' }
    const { wb } = createSandbox()
    expect((await wb([...list, '--url', 'http://wb.test'], { env })).status).toBe(0)
    expect((await wb([...list, '--url', url], { env: { HTTP_PROXY: 'http://127.0.0.1:1' } })).status).toBe(0)
    expect(requests.map(({ url }) => url).filter(path => path?.includes('workspaces'))).toEqual([
      'http://wb.test/api/v1/workspaces?limit=200',
      '/api/v1/workspaces?limit=200',
    ])
    expect(requests[0]!.headers['user-agent']).toMatch(/^workbase-cli\/\d+\.\d+\.\d+ \(\w+; node v\d+/)
  })

  test.each([['ftp://me:s3cret@proxy'], ['http://me:s3cret@'], ['me:s3cret@proxy:70000']])(
    'with an invalid proxy cause a usage error that shows no part of it: %s',
    HTTPS_PROXY => {
      expect(() => connectionSettings({ HTTPS_PROXY })).toThrow(UsageError)
      expect(() => connectionSettings({ HTTPS_PROXY })).toThrow(/^HTTPS_PROXY is not a valid proxy address$/)
    },
  )

  test('set trusted certificate authorities', async () => {
    const { answer } = await startEmptyRuntime()
    const identity = { key: readFileSync(file('server-key')), cert: readFileSync(file('server')) }
    const port = await listenOnFreePort(createSecureServer(identity, answer))
    const { wb, spawnWb } = createSandbox()
    const trusting = async (env: Record<string, string>, run = wb) => {
      const { status, stderr } = await run([...list, '--url', `https://localhost:${port}`], { env })
      return [status, stderr]
    }
    const trusted = [0, expect.any(String)]
    expect(await trusting({})).toEqual([6, expect.stringContaining('its certificate is not trusted')])
    expect(await trusting({ SSL_CERT_FILE: file('authority') })).toEqual(trusted)
    // Node.js reads the variable at startup.
    expect(await trusting({ NODE_EXTRA_CA_CERTS: file('authority') }, spawnWb)).toEqual(trusted)
    const both = { SSL_CERT_FILE: file('server-key'), NODE_EXTRA_CA_CERTS: file('authority') }
    expect(await trusting(both)).toEqual(trusted)
    expect(await trusting({ SSL_CERT_FILE: '/nowhere.pem' })).toEqual([
      2,
      expect.stringContaining('SSL_CERT_FILE refers to /nowhere.pem, which cannot be read (ENOENT)'),
    ])
  })
})

/** Returns a version that differs from this one only in its patch number. */
function sameMinor(): string {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  return version.replace(/\d+$/, '999')
}
