import { createPrivateKey, type JsonWebKey, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose'
import type { AdapterFactory, AdapterPayload, ClientMetadata, Configuration, Provider } from 'oidc-provider'
import { onTestFinished } from 'vitest'

/** Audience of access tokens for the API. */
export const audience = 'https://workbase.example/api'

/** Clients that every provider knows. */
export const clients = {
  /** A client without a secret, which uses PKCE. */
  public: { id: 'wb-public' },
  confidential: { id: 'wb-confidential', secret: 'confidential-client-secret-of-a-test' },
} as const

export interface ProviderOptions {
  /** Keeps the provider running after the test, for use in `beforeAll`. */
  untilClosed?: boolean
  /** A free port by default. */
  port?: number
  /** Signature algorithm; ES256 by default. */
  algorithm?: 'ES256' | 'RS256' | 'PS256' | 'EdDSA'
  /** 300 by default. */
  accessTokenSeconds?: number
  /** Has a device endpoint; true by default. */
  device?: boolean
  /** 600 by default. */
  deviceCodeSeconds?: number
  /** Minimum polling interval of a device; omitted by default, which means 5. */
  deviceIntervalSeconds?: number
  /** Issues single-use refresh tokens; true by default. */
  refresh?: boolean
  /** Lists the scope `offline_access`; true by default. */
  offline?: boolean
  /** Issues opaque tokens unless the request names the resource. */
  resourceRequired?: boolean
  /**
   * Claims of access tokens by account, which can change at any time. By default, all accounts have access to
   * every workspace.
   */
  claims?: Record<string, object>
  /** Length of a claim that makes access tokens long. */
  paddingChars?: number
  /** Allowed redirect URIs; by default `<origin>/auth/callback` of the runtime. */
  redirectUris?: readonly string[]
  /**
   * Scopes of further resources by indicator (RFC 8707), which is the audience of their tokens; can change at any
   * time.
   */
  resources?: Record<string, string>
  /** Supports dynamic client registration (RFC 7591). */
  registration?: boolean
  /** Supports token revocation (RFC 7009). */
  revocation?: boolean
  /** Authentication method of confidential clients; basic and post by default. */
  clientAuth?: 'client_secret_basic' | 'client_secret_post'
}

/** A request that the provider received. */
export interface ProviderRequest {
  readonly method: string
  readonly path: string
  readonly authorization: string | undefined
  readonly form: URLSearchParams
}

/** A response that replaces that of the provider. */
export type ProviderResponse =
  | 'hang'
  | 'reset'
  | { status: number; body?: string; headers?: Record<string, string> }

export interface RunningProvider {
  readonly issuer: string
  readonly port: number
  readonly keySetUrl: URL
  /** All requests so far. */
  readonly requests: ProviderRequest[]
  /** Returns the number of requests to a path. */
  count(path: string): number
  /** Handles a request in place of the provider; undefined passes it on. */
  intercept: (request: ProviderRequest) => ProviderResponse | undefined | Promise<undefined>
  /**
   * Signs a JWT with the current key: an access token for `alice` with changed claims; undefined omits a claim.
   */
  sign(
    claims?: Record<string, unknown>,
    header?: Record<string, unknown>,
    keyId?: 'present' | 'stolen',
  ): Promise<string>
  /** Signs a header and a payload that are already encoded, without validation. */
  signRaw(header: string, payload: string): Promise<string>
  /** Returns the public half of the current key. */
  publicKey(): JWK
  /** Creates a new signing key; the old one is removed, or still published. */
  rotateKeys(old?: 'withdrawn' | 'kept'): Promise<void>
  /** Stops the server, so connections are refused. */
  stop(): Promise<void>
  /** Restarts the server on its port. */
  restart(): Promise<void>
  close(): Promise<void>
}

/* oidc-provider warns at each start, and for each parsed form, that it is not configured for production. */
const { info, warn } = console
const isChatter = (text: unknown) => typeof text === 'string' && text.startsWith('oidc-provider ')
console.info = (...args) => isChatter(args[0]) || info(...args)
console.warn = (...args) => isChatter(args[0]) || warn(...args)
const library = await import('oidc-provider')

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** Starts an OpenID provider on loopback, until the test ends. Any login name is an account, with any password. */
export async function startProvider(options: ProviderOptions = {}): Promise<RunningProvider> {
  const algorithm = options.algorithm ?? 'ES256'
  const requests: ProviderRequest[] = []
  const keys: JWK[] = [await newKey(algorithm)]
  const adapter = memory()
  let provider: Provider
  const server = createServer((request, response) => void answer(request, response))
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const stop = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  await listen(options.port ?? 0)
  const { port } = server.address() as AddressInfo
  const issuer = `http://127.0.0.1:${port}`
  const make = () => {
    provider = new library.Provider(issuer, { ...configuration(options, algorithm, keys), adapter })
    const { deviceIntervalSeconds } = options
    if (deviceIntervalSeconds !== undefined)
      provider.use(async (context, next) => {
        await next()
        if (context.path === '/device/auth')
          Object.assign(context.body as object, { interval: deviceIntervalSeconds })
      })
  }
  make()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await textOf(request)
    const seen: ProviderRequest = {
      method: request.method!,
      path: new URL(request.url!, issuer).pathname,
      authorization: request.headers.authorization,
      form: new URLSearchParams(body),
    }
    requests.push(seen)
    const instead = await running.intercept(seen)
    if (instead === 'hang') return
    if (instead === 'reset') return void request.socket.destroy()
    if (instead)
      return void response
        .writeHead(instead.status, { 'content-type': 'application/json', ...instead.headers })
        .end(instead.body ?? '{}')
    // The body is already read, so it is passed in the property that frameworks use.
    Object.assign(request, { body })
    await provider.callback()(request, response)
  }

  const running: RunningProvider = {
    issuer,
    port,
    keySetUrl: new URL('/jwks', issuer),
    requests,
    count: path => requests.filter(one => one.path === path).length,
    intercept: () => undefined,
    async sign(claims = {}, header = {}, keyId = 'present') {
      const key = keyId === 'present' ? keys[0]! : await newKey(algorithm)
      const nowSeconds = Math.floor(Date.now() / 1000)
      const payload = {
        iss: issuer,
        aud: audience,
        sub: 'alice',
        iat: nowSeconds,
        exp: nowSeconds + (options.accessTokenSeconds ?? 300),
        email: 'alice@example.test',
        wb_workspace_scopes: null,
        ...claims,
      }
      return new SignJWT(payload as JWTPayload)
        .setProtectedHeader({ alg: algorithm, kid: keys[0]!.kid!, typ: 'at+jwt', ...header })
        .sign(await importJWK(key, algorithm))
    },
    async signRaw(header, payload) {
      const key = createPrivateKey({ key: keys[0] as JsonWebKey, format: 'jwk' })
      const input = `${header}.${payload}`
      // RFC 7518 section 3.4: an elliptic curve signature is two concatenated numbers.
      return `${input}.${sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
    },
    publicKey() {
      const { d: _d, p: _p, q: _q, dp: _dp, dq: _dq, qi: _qi, ...open } = keys[0]!
      return open
    },
    async rotateKeys(old = 'withdrawn') {
      const next = await newKey(algorithm)
      keys.splice(0, old === 'kept' ? 0 : keys.length, next)
      make()
    },
    stop,
    restart: () => listen(port),
    close: stop,
  }
  if (!options.untilClosed) onTestFinished(stop)
  return running
}

async function newKey(alg: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  return { ...(await exportJWK(privateKey)), kid: crypto.randomUUID(), alg, use: 'sig' }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

/** Storage of the provider, which survives a change of its keys. */
function memory(): AdapterFactory {
  const all = new Map<string, AdapterPayload>()
  const one = (model: string, matches: (row: AdapterPayload) => boolean) =>
    [...all].find(([key, row]) => key.startsWith(`${model}:`) && matches(row))?.[1]
  return model => ({
    upsert: async (id, row) => void all.set(`${model}:${id}`, row),
    find: async id => all.get(`${model}:${id}`),
    findByUid: async uid => one(model, row => row.uid === uid),
    findByUserCode: async userCode => one(model, row => row.userCode === userCode),
    consume: async id => void Object.assign(all.get(`${model}:${id}`)!, { consumed: 1 }),
    destroy: async id => void all.delete(`${model}:${id}`),
    async revokeByGrantId(grantId) {
      for (const [key, row] of all) if (row.grantId === grantId) all.delete(key)
    },
  })
}

function clientsOf(options: ProviderOptions): ClientMetadata[] {
  const { redirectUris = ['http://localhost/auth/callback'], clientAuth } = options
  const common: Omit<ClientMetadata, 'client_id'> = {
    redirect_uris: [...redirectUris],
    // A native client can use any port of a loopback address.
    application_type: redirectUris.every(uri => uri.startsWith('http:')) ? 'native' : 'web',
    response_types: ['code'],
    grant_types: [
      'authorization_code',
      ...(options.refresh === false ? [] : ['refresh_token']),
      ...(options.device === false ? [] : [deviceGrant]),
    ],
    id_token_signed_response_alg: options.algorithm ?? 'ES256',
  }
  const { confidential } = clients
  return [
    { ...common, client_id: clients.public.id, token_endpoint_auth_method: 'none' },
    {
      ...common,
      client_id: confidential.id,
      client_secret: confidential.secret,
      token_endpoint_auth_method: clientAuth ?? 'client_secret_basic',
    },
  ]
}

function configuration(options: ProviderOptions, algorithm: string, keys: readonly JWK[]): Configuration {
  const accessTokenSeconds = options.accessTokenSeconds ?? 300
  const claimsOf = (account: string) => ({
    email: `${account}@example.test`,
    wb_workspace_scopes: null,
    ...options.claims?.[account],
  })
  const resource = {
    scope: 'api',
    audience,
    accessTokenFormat: 'jwt' as const,
    accessTokenTTL: accessTokenSeconds,
    jwt: { sign: { alg: algorithm as 'ES256' } },
  }
  return {
    jwks: { keys: [...keys] } as Configuration['jwks'],
    clients: clientsOf(options),
    clientDefaults: { id_token_signed_response_alg: algorithm as 'ES256' },
    clientAuthMethods: options.clientAuth
      ? ['none', options.clientAuth]
      : ['none', 'client_secret_basic', 'client_secret_post'],
    enabledJWA: {
      idTokenSigningAlgValues: ['ES256', 'RS256', 'PS256', 'EdDSA'],
    } as Configuration['enabledJWA'],
    cookies: { keys: ['cookie-key-of-a-test'] },
    pkce: { required: () => true },
    scopes: ['openid', ...(options.offline === false ? [] : ['offline_access']), 'profile', 'email'],
    claims: { openid: ['sub'], email: ['email'], profile: ['name'] },
    features: {
      devInteractions: { enabled: true },
      deviceFlow: { enabled: options.device !== false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => (options.resourceRequired ? [] : audience),
        // Otherwise a grant with the scope `openid` results in an opaque token unless the resource is named again.
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, indicator) => {
          const scope = options.resources?.[indicator]
          return scope === undefined ? resource : { ...resource, scope, audience: indicator }
        },
      },
      registration: { enabled: options.registration === true },
      revocation: { enabled: options.revocation === true },
    },
    // Does not check `offline_access`, because the provider removes it without a consent page.
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    findAccount: async (_ctx, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, email: `${id}@example.test`, name: id }),
    }),
    extraTokenClaims: async (_ctx, token) => ({
      ...claimsOf((token as { accountId?: string }).accountId ?? ''),
      ...(options.paddingChars && { padding: 'x'.repeat(options.paddingChars) }),
    }),
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client!.clientId,
        accountId: oidc.session!.accountId!,
      })
      grant.addOIDCScope('openid email profile offline_access')
      grant.addResourceScope(audience, 'api')
      for (const [indicator, scope] of Object.entries(options.resources ?? {}))
        grant.addResourceScope(indicator, scope)
      await grant.save()
      return grant
    },
    ttl: {
      AccessToken: accessTokenSeconds,
      IdToken: 300,
      RefreshToken: 86_400,
      DeviceCode: options.deviceCodeSeconds ?? 600,
      Session: 3_600,
      Grant: 86_400,
      Interaction: 600,
    },
  }
}

/** Cookies of a browser, by origin. */
export class CookieJar {
  readonly #cookies = new Map<string, { origin: string; path: string; pair: string }>()

  /** Returns the cookie header for a request; empty without cookies. */
  header(url: URL): string {
    return [...this.#cookies.values()]
      .filter(({ origin, path }) => origin === url.origin && url.pathname.startsWith(path))
      .map(({ pair }) => pair)
      .join('; ')
  }

  /** Stores cookies that a response sets, and deletes those that it clears. */
  storeCookies(url: URL, headers: Headers): void {
    for (const line of headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';').map(part => part.trim())
      const found = (name: string) =>
        attributes.find(one => one.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1)
      const path = found('path') ?? '/'
      const name = pair!.slice(0, pair!.indexOf('='))
      const expires = found('expires')
      const gone = found('max-age') === '0' || (expires !== undefined && Date.parse(expires) < Date.now())
      const key = [url.origin, path, name].join('\n')
      if (gone) this.#cookies.delete(key)
      else this.#cookies.set(key, { origin: url.origin, path, pair: pair! })
    }
  }
}

export interface BrowserOptions {
  /** Account that signs in; `alice` by default. */
  login?: string
  /** Cookies of the browser; new ones by default. */
  jar?: CookieJar
  /** Prefix of a URL at which to stop without a request. */
  stopAt?: string
  /** Denies consent. */
  deny?: boolean
}

/** The last page of a browser. */
export interface BrowserPage {
  readonly url: string
  /** 0 if the browser stopped without a request. */
  readonly status: number
  readonly text: string
}

/** A minimal browser that follows redirects, keeps cookies, and submits forms. */
export async function browse(start: string | URL, options: BrowserOptions = {}): Promise<BrowserPage> {
  const { jar = new CookieJar(), stopAt } = options
  let url = new URL(start)
  let form: URLSearchParams | undefined
  for (let step = 0; step < 25; step++) {
    if (stopAt !== undefined && url.href.startsWith(stopAt)) return { url: url.href, status: 0, text: '' }
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: jar.header(url), connection: 'close' },
      ...(form && { method: 'POST', body: form }),
    })
    jar.storeCookies(url, answer.headers)
    const text = await answer.text()
    const location = answer.headers.get('location')
    const next = location ? { action: location } : nextPage(text, options)
    if (!next) return { url: url.href, status: answer.status, text }
    url = new URL(next.action, url)
    form = 'fields' in next ? next.fields : undefined
  }
  throw new Error(`no end of pages at ${url.href}`)
}

/** Returns the next action on a page: a form to submit or a link; undefined if there is nothing to do. */
function nextPage(
  page: string,
  { login = 'alice', deny = false }: BrowserOptions,
): { action: string; fields?: URLSearchParams } | undefined {
  const form = /<form[^>]*action="([^"]*)"[\s\S]*?<\/form>/.exec(page)
  if (!form) return undefined
  const [html, action] = form as unknown as [string, string]
  const fields = new URLSearchParams()
  for (const [input] of html.matchAll(/<input[^>]*>/g)) {
    const name = /name="([^"]*)"/.exec(input)?.[1]
    if (name) fields.set(name, unescaped(/value="([^"]*)"/.exec(input)?.[1] ?? ''))
  }
  const cancel = /href="([^"]*\/abort)"/.exec(page)?.[1]
  if (deny && cancel) return { action: unescaped(cancel) }
  if (fields.has('login')) fields.set('login', login)
  if (fields.has('password')) fields.set('password', 'any')
  if (deny && fields.has('confirm')) fields.set('abort', 'yes')
  // A form that asks for an unknown value, such as a user code, is the last page.
  return fields.get('user_code') === '' ? undefined : { action: unescaped(action), fields }
}

function unescaped(text: string): string {
  return text.replaceAll('&amp;', '&').replaceAll('&quot;', '"')
}
