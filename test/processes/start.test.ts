import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Place, place, type Served } from '../commands/wb.ts'

type Variables = Record<string, string>

/** Not the form of any secret here, so that a part of it is found wherever it went. */
const canary = 'canary-31-characters-of-a-token'
const token = (name: string) => `${name}-bootstrap-token-of-32-characters`

function configure(here: Place, auth: object, more: object = {}): void {
  mkdirSync(here.dataDir, { recursive: true })
  writeFileSync(join(here.dataDir, 'workbase.yaml'), JSON.stringify({ version: 1, ...more, auth }))
}

/**
 * Expects a start to be refused without naming a secret or listening. Returns its stderr.
 *
 * @param run  runs the command line; in this process by default
 */
async function refusal(here: Place, env: Variables = {}, run = here.wb): Promise<string> {
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

/** Something on loopback that answers where a provider should be. */
async function impostor(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function end(served: Served): Promise<void> {
  expect((await served.stop()).status).toBe(0)
}

/** The status of a list of workspaces that is asked for with a token. */
async function statusWith({ url }: Served, bearer?: string): Promise<number> {
  const headers = bearer === undefined ? undefined : { authorization: `Bearer ${bearer}` }
  const answer = await fetch(`${url}/api/v1/workspaces`, headers && { headers })
  await answer.body?.cancel()
  return answer.status
}

const guarded = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BOOT' }

describe('a secret that will not do', () => {
  test('S2.2-07 S8-13: a bootstrap token of 31 characters stops the start, and one of 32 does not', async () => {
    const here = place()
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

  test('S2.2-34: a variable that is not set and a file that is not there are named with their keys', async () => {
    const here = place()
    configure(here, guarded)
    const unset = await refusal(here)
    expect(unset).toContain('✗ auth.bootstrapTokenRef: env:BOOT is not set (validation_error)')
    expect(unset).toContain('Set BOOT where the runtime is started')
    configure(here, { ...guarded, bootstrapTokenRef: `file:${here.home}/boot` })
    expect(await refusal(here)).toContain(`✗ auth.bootstrapTokenRef: file:${here.home}/boot cannot be read`)
  })

  test('S2.2-34: a literal is refused by its key, and said nowhere', async () => {
    const here = place()
    configure(here, { ...guarded, bootstrapTokenRef: canary })
    const said = await refusal(here)
    expect(said).toContain('auth.bootstrapTokenRef: must be a secret reference')
    expect(said).not.toContain(canary)
  })

  test('S2.2-32 S8-14: a session secret of 31 bytes stops the start, named by its place in the list', async () => {
    const here = place()
    const client = { clientId: 'c', sessionSecretRef: ['env:NEW', 'env:OLD'] }
    configure(here, { mode: 'oidc', oidc: { issuer: 'http://127.0.0.1:1', audience: 'a', client } })
    expect(await refusal(here, { NEW: 'n'.repeat(32), OLD: canary })).toContain(
      '✗ auth.oidc.client.sessionSecretRef[1]: the secret must have at least 32 bytes (validation_error)',
    )
  })
})

describe('a provider that cannot be found', () => {
  const oidc = (issuer: string, more: object = {}) => ({
    mode: 'any',
    anonymousPolicy: 'reject',
    bootstrapTokenRef: 'env:BOOT',
    oidc: { issuer, audience: 'a', ...more },
  })
  const env = { BOOT: token('any') }
  const tried = (issuer: string, why: string) =>
    `✗ auth.oidc.issuer: no identity provider was found at ${issuer}/.well-known/openid-configuration: ${why} (validation_error)`

  test('S5.3-12: where nothing listens', async () => {
    const here = place()
    const issuer = `http://127.0.0.1:${await freePort()}`
    configure(here, oidc(issuer))
    expect(await refusal(here, env)).toContain(tried(issuer, 'it refused the connection'))
  })

  test('S5.3-12: where another issuer answers', async () => {
    const here = place()
    const issuer = await impostor((_, response) =>
      response.end(
        JSON.stringify({ issuer: 'https://another.example', jwks_uri: 'https://another.example/k' }),
      ),
    )
    configure(here, oidc(issuer))
    expect(await refusal(here, env)).toContain(tried(issuer, 'its issuer is "https://another.example"'))
  })

  test('S5.3-12: where a page answers; until then the runtime does not', async () => {
    const here = place()
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

  test('S2.2-08: an issuer that is asked in the clear over a network is refused unasked [security rule 15]', async () => {
    const here = place()
    configure(here, oidc('http://id.example'))
    expect(await refusal(here, env)).toContain(
      'auth.oidc.issuer: must be an https URL; http is accepted on this machine only',
    )
  })

  test('S5.3-11 S2.2-12: with jwksUri and no client nothing is looked up, and the start goes on', async () => {
    const here = place()
    const issuer = `http://127.0.0.1:${await freePort()}`
    configure(here, oidc(issuer, { jwksUri: `${issuer}/keys` }))
    const served = await here.serve([], { env })
    expect(await statusWith(served)).toBe(401)
    expect(await statusWith(served, env.BOOT)).toBe(200)
    await end(served)
  })

  test('a start that was refused leaves the data directory to the next one', async () => {
    const here = place()
    configure(here, oidc(`http://127.0.0.1:${await freePort()}`))
    await refusal(here, env)
    configure(here, guarded)
    const served = await here.serve([], { env })
    expect(await statusWith(served, env.BOOT)).toBe(200)
    await end(served)
  })
})

describe('what applies after a restart', () => {
  test('S1-03 S1-04: the auth block alone decides who comes in', async () => {
    const here = place()
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
      const here = place()
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

describe('what is said although the start goes on', () => {
  test('a mode that asks for credentials, with a policy that does without [security rule 2]', async () => {
    const here = place()
    configure(here, { ...guarded, anonymousPolicy: 'allow' })
    const served = await here.serve([], { env: { BOOT: token('one') } })
    await end(served)
    const { stderr } = await served.ended
    expect(stderr).toContain(
      '! auth.anonymousPolicy is allow: callers without a credential pass every check, whatever auth.mode is; set it to reject\n',
    )
    expect(stderr).not.toContain(token('one'))
  })
})
