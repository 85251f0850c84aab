import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { audience, CookieJar, clients, drive, type RunningProvider } from '../harness/identity-provider.ts'

/** An answer, as text. */
export interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** A runtime, however it is reached. */
export interface Reached {
  readonly origin: string
  send(line: string, sent?: { headers?: Record<string, string>; body?: string }): Promise<Got>
}

/** Secrets that no rule knows by their shape: what hides them is that nobody says them. */
export function canary(name: string): string {
  return `${name}0canary0${randomBytes(16).toString('hex')}`
}

export interface Planted {
  readonly bootstrap: string
  readonly sessions: readonly [string, string]
  readonly providerKey: string
}

export function plant(): Planted {
  return {
    bootstrap: canary('bootstrap'),
    sessions: [canary('session'), canary('older')],
    providerKey: canary('provider'),
  }
}

export function environmentOf({ bootstrap, sessions, providerKey }: Planted): Record<string, string> {
  return {
    FIRST_TOKEN: bootstrap,
    SESSION_1: sessions[0],
    SESSION_2: sessions[1],
    CLIENT_SECRET: clients.confidential.secret,
    MODEL_KEY: providerKey,
  }
}

/** A configuration with every secret that there can be. */
export function configOf(provider: RunningProvider): object {
  return {
    version: 1,
    runtime: {
      logLevel: 'trace',
      allowedEndpoints: ['127.0.0.0/8'],
      secretRefs: { allow: [{ ref: 'env:MODEL_KEY' }] },
    },
    auth: {
      mode: 'any',
      anonymousPolicy: 'reject',
      bootstrapTokenRef: 'env:FIRST_TOKEN',
      oidc: {
        issuer: provider.issuer,
        audience,
        client: {
          clientId: clients.confidential.id,
          clientSecretRef: 'env:CLIENT_SECRET',
          sessionSecretRef: ['env:SESSION_1', 'env:SESSION_2'],
        },
      },
    },
  }
}

/** A model that repeats what it is sent when it refuses, as some do. */
export async function startParrot(): Promise<string> {
  const server = createServer((request, response) => {
    const { authorization = '' } = request.headers
    const message = `${authorization} holds no key: ${authorization.slice('Bearer '.length)}`
    response.writeHead(401, { 'content-type': 'application/json', 'www-authenticate': message })
    response.end(JSON.stringify({ error: { message, code: message, type: message } }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

/** What a run brought to light. */
export interface Found {
  /** All that must appear nowhere, by name. */
  readonly secrets: Map<string, string>
  /** Answers, but for the few whose purpose is to hand a secret over. */
  readonly answers: string[]
  /** Statuses that came, by line, so that a run which did nothing is seen. */
  readonly statuses: string[]
}

/** Everything that callers do, and some things that attackers do, with a canary wherever a credential goes. */
export async function busyRun(at: Reached, provider: RunningProvider, planted: Planted): Promise<Found> {
  const run = new Run(at, provider)
  run.keep('the bootstrap token', planted.bootstrap)
  for (const [n, secret] of planted.sessions.entries()) run.keep(`session secret ${n}`, secret)
  run.keep('the client secret', clients.confidential.secret)
  run.keep('the key of the model', planted.providerKey)
  const place = await run.keys(planted.bootstrap)
  await run.forgeries(place)
  await run.model(planted.bootstrap, place, await startParrot())
  await run.browser()
  await run.device()
  await run.send('GET /api/v1/audit?limit=200', bearer(planted.bootstrap))
  await run.send(`GET ${place}/api-keys`, bearer(planted.bootstrap))
  for (const [name, value] of provider.asked.flatMap(({ form }) => [...form]))
    if (/^(code|code_verifier|refresh_token|device_code|client_secret)$/.test(name)) run.keep(name, value)
  return run
}

class Run implements Found {
  readonly secrets = new Map<string, string>()
  readonly answers: string[] = []
  readonly statuses: string[] = []

  constructor(
    private readonly at: Reached,
    private readonly provider: RunningProvider,
  ) {}

  keep(name: string, secret: string): void {
    this.secrets.set(`${name} ${createHash('sha256').update(secret).digest('hex').slice(0, 6)}`, secret)
  }

  /** @param isHandover  the answer is there to give a secret to who asked */
  async send(
    line: string,
    headers: Record<string, string> = {},
    json?: unknown,
    isHandover = false,
  ): Promise<Got> {
    const type = json === undefined ? undefined : { 'content-type': 'application/json' }
    const body = json === undefined ? undefined : JSON.stringify(json)
    const got = await this.at.send(line, { headers: { ...headers, ...type }, body })
    const [asked] = line.split('?')
    this.statuses.push(`${asked} ${got.status}`)
    if (!isHandover) this.answers.push(`${asked} ${JSON.stringify([...got.headers])} ${got.text}`)
    return got
  }

  /** A workspace with keys that are used, rotated, revoked and expired. */
  async keys(bootstrap: string): Promise<string> {
    const operator = bearer(bootstrap)
    const made = await this.send('POST /api/v1/workspaces', operator, { name: 'canaries' })
    const place = `/api/v1/workspaces/${JSON.parse(made.text).workspaceId}`
    const minted = async (line: string, json: object) => {
      const { plaintext, key } = JSON.parse((await this.send(line, operator, json, true)).text)
      this.keep('a key', plaintext)
      this.keep('the secret half of a key', plaintext.slice(-32))
      return { token: String(plaintext), keyId: String(key.keyId) }
    }
    const admin = await minted(`POST ${place}/api-keys`, { label: 'admin', role: 'admin' })
    const next = await minted(`POST ${place}/api-keys/${admin.keyId}/rotate`, { graceSeconds: 60 })
    const viewer = await minted(`POST ${place}/api-keys`, { label: 'viewer', role: 'viewer' })
    for (const { token } of [admin, next, viewer]) {
      await this.send(`GET ${place}`, bearer(token))
      await this.send('GET /auth/me', bearer(token))
      await this.send(`POST ${place}/knowledge-bases`, bearer(token), { name: `k${token.slice(8, 20)}` })
      await this.send('GET /api/v1/audit', bearer(token))
      await this.send(`GET ${place}/nothing/here`, bearer(token))
      await this.send(`POST ${place}/api-keys`, bearer(token), { label: 7 })
    }
    await this.send(`DELETE ${place}/api-keys/${viewer.keyId}`, operator)
    await this.send(`GET ${place}`, bearer(viewer.token))
    return place
  }

  /** Credentials that are wrong, in every way that they can be. */
  async forgeries(place: string): Promise<void> {
    const wrong = (name: string, length = 32) => {
      const secret = (canary(name) + 'x'.repeat(length)).slice(0, Math.max(length, 40))
      this.keep(name, secret)
      return secret
    }
    const part = wrong('part').replaceAll('0', 'a')
    this.keep('part', part)
    const jwt = await this.provider.sign({ aud: 'somebody else' })
    this.keep('a token for somebody else', jwt)
    this.keep('its signature', jwt.split('.')[2]!)
    const basic = wrong('basic')
    const headers: Record<string, string>[] = [
      bearer(wrong('bearer')),
      bearer(`wb_live_${'a'.repeat(12)}_${part.slice(0, 32)}`),
      bearer(jwt),
      bearer(`${jwt.slice(0, -4)}AAAA`),
      bearer(`eyJhbGciOiJub25lIn0.${Buffer.from(wrong('claims')).toString('base64url')}.`),
      { authorization: `Basic ${Buffer.from(`user:${basic}`).toString('base64')}` },
      { authorization: `Token ${wrong('scheme')}` },
      { authorization: wrong('alone') },
      { authorization: `Bearer ${wrong('first')} ${wrong('second')}` },
      { authorization: `Bearer ${wrong('first')}, Bearer ${wrong('second')}` },
      { cookie: `wb_session=${wrong('cookie')}` },
      { cookie: `wb_session=v2.${wrong('iv')}.${wrong('text')}.${wrong('tag')}` },
      { cookie: `wb_session=${wrong('one')}; wb_session=${wrong('two')}; other=${wrong('other')}` },
      { ...bearer(wrong('beside')), 'x-api-key': wrong('header') },
    ]
    for (const each of headers) {
      await this.send(`GET ${place}`, each)
      await this.send(`POST ${place}/api-keys`, { ...each, origin: 'https://evil.example' }, { label: 'x' })
      await this.send('GET /auth/me', each)
      await this.send('POST /auth/refresh', { ...each, origin: this.at.origin })
      await this.send('POST /auth/logout', { ...each, origin: this.at.origin })
      await this.send('GET /no/such/route', each)
    }
    await this.send(`GET /auth/callback?code=${wrong('code')}&state=${wrong('state')}`)
    await this.send('POST /auth/device/token', {}, { device_code: wrong('device') })
    await this.send('POST /auth/device/refresh', {}, { refresh_token: wrong('refresh') })
    await this.send(`GET /api/v1/audit?token=${wrong('query')}`)
  }

  /** An outbound call whose answer repeats the credential. */
  async model(bootstrap: string, place: string, url: string): Promise<void> {
    const operator = bearer(bootstrap)
    const service = {
      name: 'parrot',
      provider: 'openai',
      modelName: 'parrot',
      embeddingDimension: 8,
      endpointBaseUrl: url,
      authType: 'api_key',
      credentialRef: 'env:MODEL_KEY',
    }
    const made = await this.send(`POST ${place}/embedding-services`, operator, service)
    const { embeddingServiceId } = JSON.parse(made.text)
    const base = await this.send(`POST ${place}/knowledge-bases`, operator, { name: 'p', embeddingServiceId })
    const path = `${place}/knowledge-bases/${JSON.parse(base.text).knowledgeBaseId}`
    await this.send(`POST ${path}/ingest`, operator, { text: 'Say it again.' })
    await this.send(`POST ${path}/search`, operator, { text: 'again', hybrid: false })
  }

  /** A person who signs in, reads, renews and signs out. */
  async browser(): Promise<void> {
    const jar = new CookieJar()
    const go = async (line: string, isHandover = false) => {
      const [method, path] = line.split(' ') as [string, string]
      const url = new URL(path, this.at.origin)
      const cookie = jar.header(url)
      const origin = method === 'POST' ? { origin: this.at.origin } : undefined
      const got = await this.send(line, { ...(cookie && { cookie }), ...origin }, undefined, isHandover)
      jar.take(url, got.headers)
      for (const pair of jar.header(url).split('; ').filter(Boolean))
        this.keep('a cookie', pair.slice(pair.indexOf('=') + 1))
      return got
    }
    const begun = await go('GET /auth/login?redirect_after=/docs', true)
    const { url } = await drive(begun.headers.get('location')!, {
      jar,
      stopAt: `${this.at.origin}/auth/callback`,
    })
    const { pathname, search, searchParams } = new URL(url)
    this.keep('the code of a login', searchParams.get('code')!)
    await go(`GET ${pathname}${search}`, true)
    await go(`GET ${pathname}${search}`)
    await go('GET /auth/me')
    await go('GET /api/v1/workspaces')
    await go('POST /auth/refresh', true)
    await go('GET /api/v1/workspaces')
    await go('POST /auth/logout')
  }

  /** A device that is approved, and renews its token; the raw tokens of the provider are kept from everybody else. */
  async device(): Promise<void> {
    const begun = JSON.parse((await this.send('POST /auth/device/authorize', {}, undefined, true)).text)
    this.keep('a device code', begun.device_code)
    await this.send('POST /auth/device/token', {}, { device_code: begun.device_code })
    await drive(begun.verification_uri_complete)
    const issued = JSON.parse(
      (await this.send('POST /auth/device/token', {}, { device_code: begun.device_code }, true)).text,
    )
    this.keep('a sealed refresh token', issued.refresh_token)
    const { refresh_token } = issued
    const renewed = JSON.parse(
      (await this.send('POST /auth/device/refresh', {}, { refresh_token }, true)).text,
    )
    for (const { access_token } of [issued, renewed]) {
      this.keep('an access token', access_token)
      this.keep('the signature of an access token', access_token.split('.')[2])
      await this.send('GET /auth/me', bearer(access_token))
      await this.send('GET /api/v1/workspaces', bearer(access_token))
      await this.send('GET /api/v1/audit', bearer(`${access_token}x`))
    }
  }
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}

/** Spellings of a secret under which it could be written down. */
function spellings(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const middle = secret.length >> 1
  return [
    secret,
    encodeURIComponent(secret),
    secret.slice(0, middle),
    secret.slice(middle),
    ...(['hex', 'base64', 'base64url'] as const).flatMap(encoding => {
      const text = bytes.toString(encoding).replace(/=+$/, '')
      return [text.slice(0, text.length >> 1), text.slice(text.length >> 1)]
    }),
    createHash('sha256').update(secret).digest('hex'),
  ].filter(spelling => spelling.length >= 16)
}

/** Names of the secrets that stand in a text, in whatever spelling, each with what stands around it. */
export function leaks(text: string, secrets: ReadonlyMap<string, string>): string[] {
  return [...secrets].flatMap(([name, secret]) =>
    [...new Set(spellings(secret))]
      .map(spelling => text.indexOf(spelling))
      .filter(at => at >= 0)
      .slice(0, 1)
      .map(at => `${name}: ${text.slice(Math.max(0, at - 120), at + 80)}`),
  )
}
