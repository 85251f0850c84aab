import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { audience, browse, CookieJar, clients, type RunningProvider } from '../harness/identity-provider.ts'

/** A response with its body as text. */
export interface TextResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** A client of a runtime, over the network or in process. */
export interface RuntimeClient {
  readonly origin: string
  send(line: string, sent?: { headers?: Record<string, string>; body?: string }): Promise<TextResponse>
}

/** Returns a secret without a recognizable format, so that pattern-based redaction cannot hide it. */
export function canary(name: string): string {
  return `${name}0canary0${randomBytes(16).toString('hex')}`
}

export interface PlantedSecrets {
  readonly bootstrap: string
  readonly sessions: readonly [string, string]
  readonly providerKey: string
}

export function createSecrets(): PlantedSecrets {
  return {
    bootstrap: canary('bootstrap'),
    sessions: [canary('session'), canary('older')],
    providerKey: canary('provider'),
  }
}

export function environmentOf({ bootstrap, sessions, providerKey }: PlantedSecrets): Record<string, string> {
  return {
    FIRST_TOKEN: bootstrap,
    SESSION_1: sessions[0],
    SESSION_2: sessions[1],
    CLIENT_SECRET: clients.confidential.secret,
    MODEL_KEY: providerKey,
  }
}

/** Returns a configuration with every kind of secret. */
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

/** Starts a model whose error responses repeat the credential, as some providers do. */
export async function startEchoingModel(): Promise<string> {
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

/** Secrets and responses of a run. */
export interface CollectedOutput {
  /** Values that must not appear anywhere, by name. */
  readonly secrets: Map<string, string>
  /** Responses, except those that must contain a secret. */
  readonly answers: string[]
  /** Received statuses by request, to detect a run that did nothing. */
  readonly statuses: string[]
}

/** Sends the requests of ordinary callers and some of attackers, with a secret in every credential. */
export async function useEveryCredential(
  at: RuntimeClient,
  provider: RunningProvider,
  planted: PlantedSecrets,
): Promise<CollectedOutput> {
  const run = new CredentialRun(at, provider)
  run.addSecret('the bootstrap token', planted.bootstrap)
  for (const [n, secret] of planted.sessions.entries()) run.addSecret(`session secret ${n}`, secret)
  run.addSecret('the client secret', clients.confidential.secret)
  run.addSecret('the key of the model', planted.providerKey)
  const place = await run.useKeys(planted.bootstrap)
  await run.sendForgedCredentials(place)
  await run.callEchoingModel(planted.bootstrap, place, await startEchoingModel())
  await run.useBrowser()
  await run.useDevice()
  await run.send('GET /api/v1/audit?limit=200', bearer(planted.bootstrap))
  await run.send(`GET ${place}/api-keys`, bearer(planted.bootstrap))
  for (const [name, value] of provider.requests.flatMap(({ form }) => [...form]))
    if (/^(code|code_verifier|refresh_token|device_code|client_secret)$/.test(name))
      run.addSecret(name, value)
  return run
}

class CredentialRun implements CollectedOutput {
  readonly secrets = new Map<string, string>()
  readonly answers: string[] = []
  readonly statuses: string[] = []

  constructor(
    private readonly at: RuntimeClient,
    private readonly provider: RunningProvider,
  ) {}

  addSecret(name: string, secret: string): void {
    this.secrets.set(`${name} ${createHash('sha256').update(secret).digest('hex').slice(0, 6)}`, secret)
  }

  /** @param isHandover  the response is supposed to contain a secret for the caller */
  async send(
    line: string,
    headers: Record<string, string> = {},
    json?: unknown,
    isHandover = false,
  ): Promise<TextResponse> {
    const type = json === undefined ? undefined : { 'content-type': 'application/json' }
    const body = json === undefined ? undefined : JSON.stringify(json)
    const got = await this.at.send(line, { headers: { ...headers, ...type }, body })
    const [asked] = line.split('?')
    this.statuses.push(`${asked} ${got.status}`)
    if (!isHandover) this.answers.push(`${asked} ${JSON.stringify([...got.headers])} ${got.text}`)
    return got
  }

  /** Creates a workspace with keys that are used, rotated and revoked, and returns its path. */
  async useKeys(bootstrap: string): Promise<string> {
    const operator = bearer(bootstrap)
    const made = await this.send('POST /api/v1/workspaces', operator, { name: 'canaries' })
    const place = `/api/v1/workspaces/${JSON.parse(made.text).workspaceId}`
    const minted = async (line: string, json: object) => {
      const { plaintext, key } = JSON.parse((await this.send(line, operator, json, true)).text)
      this.addSecret('a key', plaintext)
      this.addSecret('the secret half of a key', plaintext.slice(-32))
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

  /** Sends every kind of invalid credential. */
  async sendForgedCredentials(place: string): Promise<void> {
    const wrong = (name: string, length = 32) => {
      const secret = (canary(name) + 'x'.repeat(length)).slice(0, Math.max(length, 40))
      this.addSecret(name, secret)
      return secret
    }
    const part = wrong('part').replaceAll('0', 'a')
    this.addSecret('part', part)
    const jwt = await this.provider.sign({ aud: 'somebody else' })
    this.addSecret('a token for somebody else', jwt)
    this.addSecret('its signature', jwt.split('.')[2]!)
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

  /** Calls a model whose response repeats the credential. */
  async callEchoingModel(bootstrap: string, place: string, url: string): Promise<void> {
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

  /** Signs in a browser, reads, refreshes and signs out. */
  async useBrowser(): Promise<void> {
    const jar = new CookieJar()
    const go = async (line: string, isHandover = false) => {
      const [method, path] = line.split(' ') as [string, string]
      const url = new URL(path, this.at.origin)
      const cookie = jar.header(url)
      const origin = method === 'POST' ? { origin: this.at.origin } : undefined
      const got = await this.send(line, { ...(cookie && { cookie }), ...origin }, undefined, isHandover)
      jar.storeCookies(url, got.headers)
      for (const pair of jar.header(url).split('; ').filter(Boolean))
        this.addSecret('a cookie', pair.slice(pair.indexOf('=') + 1))
      return got
    }
    const begun = await go('GET /auth/login?redirect_after=/docs', true)
    const { url } = await browse(begun.headers.get('location')!, {
      jar,
      stopAt: `${this.at.origin}/auth/callback`,
    })
    const { pathname, search, searchParams } = new URL(url)
    this.addSecret('the code of a login', searchParams.get('code')!)
    await go(`GET ${pathname}${search}`, true)
    await go(`GET ${pathname}${search}`)
    await go('GET /auth/me')
    await go('GET /api/v1/workspaces')
    await go('POST /auth/refresh', true)
    await go('GET /api/v1/workspaces')
    await go('POST /auth/logout')
  }

  /** Approves a device and refreshes its token. The runtime must not reveal the raw tokens of the provider. */
  async useDevice(): Promise<void> {
    const begun = JSON.parse((await this.send('POST /auth/device/authorize', {}, undefined, true)).text)
    this.addSecret('a device code', begun.device_code)
    await this.send('POST /auth/device/token', {}, { device_code: begun.device_code })
    await browse(begun.verification_uri_complete)
    const issued = JSON.parse(
      (await this.send('POST /auth/device/token', {}, { device_code: begun.device_code }, true)).text,
    )
    this.addSecret('a sealed refresh token', issued.refresh_token)
    const { refresh_token } = issued
    const renewed = JSON.parse(
      (await this.send('POST /auth/device/refresh', {}, { refresh_token }, true)).text,
    )
    for (const { access_token } of [issued, renewed]) {
      this.addSecret('an access token', access_token)
      this.addSecret('the signature of an access token', access_token.split('.')[2])
      await this.send('GET /auth/me', bearer(access_token))
      await this.send('GET /api/v1/workspaces', bearer(access_token))
      await this.send('GET /api/v1/audit', bearer(`${access_token}x`))
    }
  }
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}

/** Returns the encodings and parts of a secret that could appear in a text. */
function encodingsOf(secret: string): string[] {
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

/** Returns the names of the secrets that appear in a text in any encoding, each with the surrounding text. */
export function findLeaks(text: string, secrets: ReadonlyMap<string, string>): string[] {
  return [...secrets].flatMap(([name, secret]) =>
    [...new Set(encodingsOf(secret))]
      .map(spelling => text.indexOf(spelling))
      .filter(at => at >= 0)
      .slice(0, 1)
      .map(at => `${name}: ${text.slice(Math.max(0, at - 120), at + 80)}`),
  )
}
