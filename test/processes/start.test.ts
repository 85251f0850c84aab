import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createSandbox, type Sandbox, type TestServer } from '../commands/sandbox.ts'

type Variables = Record<string, string>

/** Not in the format of a secret, so that any part of it can be found in output. */
const canary = 'canary-31-characters-of-a-token'
const token = (name: string) => `${name}-bootstrap-token-of-32-characters`

function configure(here: Sandbox, auth: object, more: object = {}): void {
  mkdirSync(here.dataDir, { recursive: true })
  writeFileSync(join(here.dataDir, 'workbase.yaml'), JSON.stringify({ version: 1, ...more, auth }))
}

/**
 * Checks that a start fails with a message without the secret, and that no port is open. Returns its stderr.
 *
 * @param run  runs the command line; in this process by default
 */
async function refusal(here: Sandbox, env: Variables = {}, run = here.wb): Promise<string> {
  const port = await freePort()
  const args = ['serve', '--port', String(port)]
  const { status, stdout, stderr } = await run(args, { env })
  expect({ status, stdout }, stderr).toEqual({ status: 1, stdout: '' })
  for (const secret of Object.values(env)) expect(stderr).not.toContain(secret)
  expect(await listens(port)).toBe(false)
  expect(existsSync(join(here.dataDir, 'serve.json'))).toBe(false)
  return stderr
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function listens(port: number): Promise<boolean> {
  return new Promise(done => {
    const socket = connect(port, '127.0.0.1')
      .on('connect', () => {
        socket.destroy()
        done(true)
      })
      .on('error', () => done(false))
  })
}

/** A server on loopback in place of a provider. */
async function impostor(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function end(served: TestServer): Promise<void> {
  expect((await served.stop()).status).toBe(0)
}

/** Returns the status of a list of workspaces that is requested with a token. */
async function statusWith({ url }: TestServer, bearer?: string): Promise<number> {
  const headers = bearer === undefined ? undefined : { authorization: `Bearer ${bearer}` }
  const answer = await fetch(`${url}/api/v1/workspaces`, headers && { headers })
  await answer.body?.cancel()
  return answer.status
}

const guarded = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BOOT' }

describe('an invalid secret', () => {
  test('S2.2-07 S8-13: a bootstrap token of 31 characters prevents the start, and one of 32 does not', async () => {
    const here = createSandbox()
    configure(here, guarded)
    expect(canary).toHaveLength(31)
    expect(await refusal(here, { BOOT: canary }, here.spawnWb)).toBe(
      '  ✗ auth.bootstrapTokenRef: the secret must have at least 32 characters (validation_error)\n    Create one with: openssl rand -hex 32\n',
    )
    const served = await here.spawnServe([], { env: { BOOT: `${canary}!` } })
    expect(await statusWith(served, `${canary}!`)).toBe(200)
    expect(await statusWith(served, canary)).toBe(401)
    await end(served)
  })

  test('S2.2-34: a variable that is not set and a missing file are reported with their keys', async () => {
    const here = createSandbox()
    configure(here, guarded)
    const unset = await refusal(here)
    expect(unset).toContain('✗ auth.bootstrapTokenRef: env:BOOT is not set (validation_error)')
    expect(unset).toContain('Set BOOT where the runtime is started')
    configure(here, { ...guarded, bootstrapTokenRef: `file:${here.home}/boot` })
    expect(await refusal(here)).toContain(`✗ auth.bootstrapTokenRef: file:${here.home}/boot cannot be read`)
  })

  test('S2.2-34: a literal is reported by its key, without its value', async () => {
    const here = createSandbox()
    configure(here, { ...guarded, bootstrapTokenRef: canary })
    const said = await refusal(here)
    expect(said).toContain('auth.bootstrapTokenRef: must be a secret reference')
    expect(said).not.toContain(canary)
  })

  test('S2.2-32 S8-14: a session secret of 31 bytes prevents the start and is reported by its position in the list', async () => {
    const here = createSandbox()
    const client = { clientId: 'c', sessionSecretRef: ['env:NEW', 'env:OLD'] }
    configure(here, { mode: 'oidc', oidc: { issuer: 'http://127.0.0.1:1', audience: 'a', client } })
    expect(await refusal(here, { NEW: 'n'.repeat(32), OLD: canary })).toContain(
      '✗ auth.oidc.client.sessionSecretRef[1]: the secret must have at least 32 bytes (validation_error)',
    )
  })
})

describe('an identity provider without valid metadata', () => {
  const oidc = (issuer: string, more: object = {}) => ({
    mode: 'any',
    anonymousPolicy: 'reject',
    bootstrapTokenRef: 'env:BOOT',
    oidc: { issuer, audience: 'a', ...more },
  })
  const env = { BOOT: token('any') }
  const tried = (issuer: string, why: string) =>
    `✗ auth.oidc.issuer: no identity provider was found at ${issuer}/.well-known/openid-configuration: ${why} (validation_error)`

  test('S5.3-12: prevents the start if no server is listening', async () => {
    const here = createSandbox()
    const issuer = `http://127.0.0.1:${await freePort()}`
    configure(here, oidc(issuer))
    expect(await refusal(here, env)).toContain(tried(issuer, 'it refused the connection'))
  })

  test('S5.3-12: prevents the start if the issuer differs', async () => {
    const here = createSandbox()
    const issuer = await impostor((_, response) =>
      response.end(
        JSON.stringify({ issuer: 'https://another.example', jwks_uri: 'https://another.example/k' }),
      ),
    )
    configure(here, oidc(issuer))
    expect(await refusal(here, env)).toContain(tried(issuer, 'its issuer is "https://another.example"'))
  })

  test('S5.3-12: prevents the start if the response is a web page, and the runtime does not listen until then', async () => {
    const here = createSandbox()
    let asked = () => {}
    const reached = new Promise<void>(resolve => {
      asked = resolve
    })
    let answer = () => {}
    const issuer = await impostor((_, response) => {
      answer = () => response.setHeader('content-type', 'text/html').end('<h1>Sign in</h1>')
      asked()
    })
    configure(here, oidc(issuer))
    const port = await freePort()
    const ending = here.wb(['serve', '--port', String(port)], { env })
    await reached
    expect(await listens(port)).toBe(false)
    answer()
    const { status, stdout, stderr } = await ending
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain(tried(issuer, 'its response is not a discovery document'))
  })

  test('S2.2-08: is not contacted over a network without encryption [security rule 15]', async () => {
    const here = createSandbox()
    configure(here, oidc('http://id.example'))
    expect(await refusal(here, env)).toContain(
      'auth.oidc.issuer: must be an https URL; http is accepted for this machine only',
    )
  })

  test('S5.3-11 S2.2-12: is not contacted with jwksUri and no client, and the server starts', async () => {
    const here = createSandbox()
    const issuer = `http://127.0.0.1:${await freePort()}`
    configure(here, oidc(issuer, { jwksUri: `${issuer}/keys` }))
    const served = await here.serve([], { env })
    expect(await statusWith(served)).toBe(401)
    expect(await statusWith(served, env.BOOT)).toBe(200)
    await end(served)
  })

  test('a failed start leaves the data directory usable', async () => {
    const here = createSandbox()
    configure(here, oidc(`http://127.0.0.1:${await freePort()}`))
    await refusal(here, env)
    configure(here, guarded)
    const served = await here.serve([], { env })
    expect(await statusWith(served, env.BOOT)).toBe(200)
    await end(served)
  })
})

describe('settings that apply after a restart', () => {
  test('S1-03 S1-04: only the auth block determines access', async () => {
    const here = createSandbox()
    const postures: [auth: object | undefined, none: number, known: number][] = [
      [undefined, 200, 200],
      [{ mode: 'disabled', anonymousPolicy: 'reject' }, 401, 200],
      [{ ...guarded, anonymousPolicy: 'allow' }, 200, 200],
      [guarded, 401, 200],
    ]
    for (const [auth, none, known] of postures) {
      if (auth) configure(here, auth)
      const served = await here.serve([], { env: { BOOT: token('one') } })
      const about = JSON.stringify(auth)
      expect([await statusWith(served), await statusWith(served, token('one'))], about).toEqual([none, known])
      await end(served)
    }
  })

  test.each(['env', 'file'])(
    'S5.9-11 S2.2-05: a bootstrap token that was changed behind its %s reference',
    async kind => {
      const here = createSandbox()
      const file = join(here.home, 'boot')
      configure(here, kind === 'env' ? guarded : { ...guarded, bootstrapTokenRef: `file:${file}` })
      const hold = (name: string): Variables => {
        writeFileSync(file, `${token(name)}\n`)
        return kind === 'env' ? { BOOT: token(name) } : {}
      }
      const first = await here.serve([], { env: hold('old') })
      const later = hold('new')
      expect([await statusWith(first, token('old')), await statusWith(first, token('new'))]).toEqual([
        200, 401,
      ])
      await end(first)
      const second = await here.serve([], { env: later })
      expect([await statusWith(second, token('old')), await statusWith(second, token('new'))]).toEqual([
        401, 200,
      ])
      await end(second)
    },
  )
})

describe('warnings at startup', () => {
  test('authentication with an anonymous policy that does not require it [security rule 2]', async () => {
    const here = createSandbox()
    configure(here, { ...guarded, anonymousPolicy: 'allow' })
    const served = await here.serve([], { env: { BOOT: token('one') } })
    await end(served)
    const { stderr } = await served.ended
    expect(stderr).toContain(
      '! auth.anonymousPolicy is allow: callers without a credential pass every check, for any auth.mode; set it to reject\n',
    )
    expect(stderr).not.toContain(token('one'))
  })
})
