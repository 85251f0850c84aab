/**
 * Measures the cost of authentication, and the effect of guessed tokens on other callers.
 *
 * npm run bench:auth -- [--quick] [check | jwt | http | guess | timing]…
 */
import { join } from 'node:path'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { RequestCredentials, TokenVerifier } from '../src/auth/authenticate.ts'
import { Admission } from '../src/auth/keys/admission.ts'
import { ApiKeyVerifier } from '../src/auth/keys/key-verifier.ts'
import { digestToken, newToken, productionCost } from '../src/auth/keys/token.ts'
import { JwtVerifier } from '../src/auth/oidc/jwt-verifier.ts'
import { systemClock, timestamp } from '../src/base/clock.ts'
import { createLog } from '../src/base/log.ts'
import { openEmbeddedStore } from '../src/storage/open.ts'
import { getOrCreateSecret } from '../src/storage/store-secret.ts'
import { tables } from '../src/storage/tables.ts'
import { throughput } from './load.ts'
import type { Pace, Paced } from './pace.ts'
import { paced } from './paced.ts'
import { call, remove, type Server, type Setting, startServer, temporaryFolder, unlimited } from './server.ts'
import { median, quantile, table } from './statistics.ts'
import { prefixOf, wrongToken } from './tokens.ts'

const words = process.argv.slice(2)
const quick = words.includes('--quick')
const chosen = words.filter(word => !word.startsWith('-'))
const log = createLog({ level: 'warn', stream: process.stderr })
const presented: RequestCredentials = {
  authorization: null,
  cookie: null,
  client: '127.0.0.1',
  requestId: 'bench',
  siteOrigin: () => 'http://localhost',
}

/** Returns CPU and wall time of one verification in milliseconds, as the mean of many in a row. */
async function costOf(
  verifier: TokenVerifier,
  tokens: readonly string[],
  times: number,
): Promise<[number, number]> {
  const verify = async (at: number) => {
    if (!(await verifier.verify(tokens[at % tokens.length]!, presented)))
      throw new Error('the verifier rejected a valid token')
  }
  const [cpu, wall] = [process.cpuUsage(), performance.now()]
  for (let at = 0; at < times; at++) await verify(at)
  const { user, system } = process.cpuUsage(cpu)
  return [(user + system) / 1_000 / times, (performance.now() - wall) / times]
}

function costRow(name: string, [cpuMs, wallMs]: [number, number], goal: string): string[] {
  return [name, cpuMs.toFixed(4), wallMs.toFixed(4), goal]
}

/** Measures the verification of an API key, with a store on disk: the first time, and later. */
async function checkCost(): Promise<void> {
  const folder = temporaryFolder()
  const store = await openEmbeddedStore({ path: join(folder, 'workbase.db') })
  const tokenKey = await getOrCreateSecret(store.rows, 'token-key')
  const verifier = new ApiKeyVerifier({
    rows: store.rows,
    clock: systemClock,
    log,
    admission: new Admission(),
    tokenKey,
    keyCost: productionCost,
  })
  const { token, prefix } = newToken(tokenKey)
  const now = timestamp(systemClock)
  const workspaceId = crypto.randomUUID()
  const key = { workspaceId, keyId: crypto.randomUUID(), prefix, label: 'bench', principalId: null }
  const never = { lastUsedAt: null, revokedAt: null, expiresAt: null }
  const digest = await digestToken(token, productionCost)
  const row = { ...key, ...never, scopes: ['read' as const], digest, createdAt: now }
  await store.rows.atomic([
    {
      op: 'insert',
      table: tables.workspaces,
      row: { workspaceId, name: 'bench', createdAt: now, updatedAt: now } as never,
    },
    { op: 'insert', table: tables.apiKeys, row },
  ])
  const cold = await costOf(verifier, [token], 1)
  const times = quick ? 5_000 : 50_000
  await costOf(verifier, [token], times)
  const warm = await costOf(verifier, [token], times)
  await verifier.close()
  await store.close()
  remove(folder)
  const rows = [
    costRow('API key that the process has verified before', warm, 'CPU at most 0.1'),
    costRow('API key, first time (scrypt)', cold, ''),
  ]
  console.log(table(['check', 'CPU ms', 'wall ms', 'limit'], rows))
}

/** Measures the verification of JWTs with loaded keys: of each for the first time, and of one repeatedly. */
async function jwtCost(): Promise<void> {
  const issuer = 'https://id.example'
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }
  const oidc = {
    issuer,
    audience: 'bench',
    jwksUri: `${issuer}/keys`,
    clockToleranceSeconds: 30,
    scopes: [],
    claims: { subject: 'sub', label: 'email', workspaceScopes: 'wb_workspace_scopes' },
    roleMapping: null,
    client: null,
  }
  const keySetUrl = async () => new URL(oidc.jwksUri)
  const fetch = async () => Response.json({ keys: [jwk] })
  const verifier = new JwtVerifier({ oidc, provider: { keySetUrl }, fetch, clock: systemClock, log })
  const sign = (n: number) =>
    new SignJWT({ email: 'someone@example.com', wb_workspace_scopes: null, jti: String(n) })
      .setProtectedHeader({ alg: 'ES256', kid: 'bench', typ: 'at+jwt' })
      .setIssuer(issuer)
      .setAudience('bench')
      .setSubject('someone')
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(privateKey)
  const count = quick ? 500 : 4_000
  const tokens = await Promise.all(Array.from({ length: 2 * count }, (_, n) => sign(n)))
  await costOf(verifier, tokens.slice(count), count)
  const fresh = await costOf(verifier, tokens.slice(0, count), count)
  const again = await costOf(verifier, tokens.slice(0, 1), 10 * count)
  const rows = [
    costRow('JWT (ES256), keys loaded', fresh, 'at most 0.3'),
    costRow('JWT that the process has verified before', again, ''),
  ]
  console.log(table(['check', 'CPU ms', 'wall ms', 'limit'], rows))
}

/** Servers that are still running. */
const running = new Set<Server>()

async function startListedServer(setting: Setting): Promise<Server> {
  const server = await startServer(undefined, setting)
  running.add(server)
  return server
}

async function stopAll(): Promise<void> {
  for (const server of running) {
    await server.stop()
    remove(server.dataDir)
  }
  running.clear()
}

/** A server that requires API keys. */
interface GuardedServer {
  /** URL of a workspace on the server. */
  readonly url: string
  readonly tokens: readonly string[]
}

async function startGuardedServer(keys: number, env: Record<string, string> = {}): Promise<GuardedServer> {
  const boot = wrongToken()
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BENCH_BOOT' }
  const config = { ...unlimited, auth }
  const server = await startListedServer({ config, env: { BENCH_BOOT: boot, ...env } })
  const operator = { url: server.url, headers: { authorization: `Bearer ${boot}` } }
  const url = await workspaceOf(operator)
  const tokens: string[] = []
  for (let n = 0; n < keys; n++) {
    const created = await call<{ plaintext: string }>(operator, 'POST', `${new URL(url).pathname}/api-keys`, {
      label: `key ${n}`,
    })
    tokens.push(created.plaintext)
  }
  return { url, tokens }
}

async function workspaceOf(server: { url: string; headers?: Record<string, string> }): Promise<string> {
  const path = '/api/v1/workspaces'
  const { workspaceId } = await call<{ workspaceId: string }>(server, 'POST', path, { name: 'bench' })
  return `${server.url}${path}/${workspaceId}`
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/**
 * Measures the same request on three servers, alternating: without authentication, with a key, and with a key and
 * an additional scrypt for each request.
 */
async function requestRates(): Promise<void> {
  const open = await startListedServer({ config: unlimited })
  const known = await startGuardedServer(1)
  const slow = await startGuardedServer(1, {
    NODE_OPTIONS: `--import ${join(import.meta.dirname, 'scrypt-each.mjs')}`,
  })
  const targets: Record<string, [url: string, headers?: Record<string, string>]> = {
    'auth.mode disabled': [await workspaceOf(open)],
    'with a key': [known.url, bearer(known.tokens[0]!)],
    'with a key, scrypt each time': [slow.url, bearer(slow.tokens[0]!)],
  }
  const load = { seconds: quick ? 0.5 : 2, connections: 20 }
  const rates = new Map<string, number[]>(Object.keys(targets).map(name => [name, []]))
  for (let round = -1; round < (quick ? 3 : 9); round++)
    for (const [name, [url, headers]] of Object.entries(targets)) {
      const rate = await throughput(url, { ...load, ...(headers && { headers }) })
      if (round >= 0) rates.get(name)!.push(rate)
    }
  const [none, key, scrypt] = [...rates.values()] as [number[], number[], number[]]
  const ratio = (over: number[], under: number[]) => median(over.map((rate, at) => rate / under[at]!))
  const goals = [
    '',
    `${(ratio(key, none) * 100).toFixed(0)} % of disabled (at least 70 %)`,
    `a key is ${ratio(key, scrypt).toFixed(0)} times as fast (at least 20)`,
  ]
  const rows = [...rates].map(([name, sample], at) => [name, median(sample).toFixed(0), goals[at]!])
  console.log(table(['GET of a workspace', 'requests/s', 'ratio'], rows))
}

function p99({ ms, statuses }: Paced): number {
  if (Object.keys(statuses).join() !== '200')
    throw new Error(`requests with a verified key got ${JSON.stringify(statuses)}`)
  return quantile(ms, 0.99)
}

/** Returns the response times of tokens that the server has not seen before, in milliseconds. */
async function firstTimes(url: string, tokens: readonly string[], everyMs: number): Promise<number[]> {
  const waits: number[] = []
  for (const token of tokens) {
    await new Promise(resolve => setTimeout(resolve, everyMs))
    const began = performance.now()
    const answer = await fetch(url, { headers: bearer(token) })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`a request with a valid token got ${answer.status}: ${text}`)
    waits.push(performance.now() - began)
  }
  return waits
}

/** Measures the effect of a guesser on a known key, and on valid tokens that are used for the first time. */
async function underGuesses(): Promise<void> {
  const seconds = quick ? 4 : 20
  const rounds = quick ? 1 : 3
  const colds = 3
  const { url, tokens } = await startGuardedServer(1 + rounds * colds)
  const [known, ...unseen] = tokens as [string, ...string[]]
  const good: Pace = { url, perSecond: 100, seconds, from: '127.0.0.1', token: known }
  const guess = { url, perSecond: 200, from: '127.0.0.2', token: { prefix: prefixOf(known) } }
  await paced({ ...good, seconds: 1 })
  const [quiet, loud, waits, guesses]: [number[], number[], number[], Paced[]] = [[], [], [], []]
  for (let round = 0; round < rounds; round++) {
    quiet.push(p99(await paced(good)))
    // The guesser starts before the other requests and ends after them.
    const guessing = paced({ ...guess, seconds: seconds + 4 })
    await new Promise(resolve => setTimeout(resolve, 2_000))
    const cold = unseen.slice(round * colds, (round + 1) * colds)
    const everyMs = (seconds * 1_000) / (colds + 1)
    const [under, first, guessed] = await Promise.all([paced(good), firstTimes(url, cold, everyMs), guessing])
    loud.push(p99(under))
    waits.push(...first)
    guesses.push(guessed)
  }
  const ratio = median(loud.map((ms, at) => ms / quiet[at]!))
  const answered = guesses.map(
    ({ perSecond, statuses }) => `${perSecond.toFixed(0)}/s ${JSON.stringify(statuses)}`,
  )
  const rows = [
    ['p99 of a verified key, without guesses, ms', median(quiet).toFixed(2), ''],
    ['p99 of a verified key, during guesses, ms', median(loud).toFixed(2), ''],
    ['ratio', ratio.toFixed(2), 'at most 3'],
    ['longest wait of a valid token at its first use, ms', Math.max(...waits).toFixed(0), 'at most 2000'],
    ['guesses, by status', answered.join('; '), '200/s'],
  ]
  console.log(table(['200 wrong secrets a second from another address', 'value', 'limit'], rows))
}

/** Measures if the response time of a rejection reveals that a prefix exists. */
async function rejectionTimes(): Promise<void> {
  const { url, tokens } = await startGuardedServer(1)
  const prefix = prefixOf(tokens[0]!)
  const each = quick ? 60 : 2_000
  const times: Record<'unknown' | 'wrong', number[]> = { unknown: [], wrong: [] }
  const kinds = ['unknown', 'wrong'] as const
  for (let at = -10; at < each; at++)
    // The order alternates, so that neither kind always follows the other.
    for (const kind of at % 2 === 0 ? kinds : kinds.toReversed()) {
      const token = wrongToken(kind === 'wrong' ? prefix : undefined)
      const began = performance.now()
      const answer = await fetch(url, { headers: bearer(token) })
      await answer.text()
      if (answer.status !== 401) throw new Error(`a request with a wrong token got ${answer.status}`)
      if (at >= 0) times[kind].push(performance.now() - began)
    }
  const [unknown, wrong] = [median(times.unknown), median(times.wrong)]
  const apart = (Math.abs(unknown - wrong) / Math.min(unknown, wrong)) * 100
  const rows = [
    ['unknown prefix, median ms', unknown.toFixed(2), ''],
    ['wrong secret, median ms', wrong.toFixed(2), ''],
    ['difference', `${apart.toFixed(2)} %`, 'under 5 %'],
  ]
  console.log(table([`${each} rejected requests of each type, alternating`, 'value', 'limit'], rows))
}

const parts = {
  check: checkCost,
  jwt: jwtCost,
  http: requestRates,
  guess: underGuesses,
  timing: rejectionTimes,
}
for (const [name, run] of Object.entries(parts)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue
  try {
    await run()
  } finally {
    await stopAll()
  }
  console.log()
}
