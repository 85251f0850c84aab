import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Log } from '../../src/base/log.ts'
import { createEnvironment as readEnvironment } from '../../src/config/config-environment.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { openRuntime } from '../../src/runtime.ts'
import { startProvider } from '../harness/identity-provider.ts'
import { waitUntil } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'
import {
  type CollectedOutput,
  canary,
  configOf,
  createSecrets,
  environmentOf,
  findLeaks,
  type RuntimeClient,
  useEveryCredential,
} from './canaries.ts'

function temporaryFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'wb-canaries-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

const providerOptions = {
  redirectUris: ['http://127.0.0.1/auth/callback', 'http://localhost/auth/callback'],
}

/** Returns the digests and salts of all keys, which must appear only in the store. */
function digestsIn(dataDir: string): Map<string, string> {
  const store = storeFile(dataDir)
  const digests = store.all("SELECT body ->> '$.digest' AS digest FROM api_keys")
  store.close()
  expect(digests.length).toBeGreaterThan(2)
  return new Map(
    digests.flatMap(({ digest }, n) => {
      const [scheme, salt, key] = String(digest).split('$') as [string, string, string]
      expect([scheme, salt.length, key.length]).toEqual(['scrypt', 32, 64])
      return [[`the digest of key ${n}`, key] as const, [`the salt of key ${n}`, salt] as const]
    }),
  )
}

/** Returns all bytes of a folder as text. */
function bytesOf(place: string): string {
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')
}

/** Checks that the run had enough successful and rejected requests to prove something. */
function expectCompleteRun({ statuses, secrets }: CollectedOutput): void {
  const counted = (pattern: RegExp) => statuses.filter(line => pattern.test(line)).length
  expect(
    statuses.filter(line => / 5\d\d$/.test(line)).filter(line => !/(ingest|search) 503$/.test(line)),
  ).toEqual([])
  expect(counted(/ 200$/)).toBeGreaterThan(15)
  expect(counted(/ 201$/)).toBeGreaterThan(6)
  expect(counted(/ 401$/)).toBeGreaterThan(30)
  expect(counted(/ 403$/)).toBeGreaterThan(5)
  expect(counted(/^GET \/auth\/callback 302$/)).toBe(1)
  expect(counted(/^POST \/auth\/refresh 200$/)).toBe(1)
  expect(counted(/^POST \/auth\/device\/(token|refresh) 200$/)).toBe(2)
  expect(counted(/(ingest|search) 503$/)).toBe(2)
  expect(secrets.size).toBeGreaterThan(40)
}

/** Creates a client that sends requests over the network. */
function networkClient(origin: string): RuntimeClient {
  return {
    origin,
    async send(line, { headers, body } = {}) {
      const [method, path] = line.split(' ') as [string, string]
      const answer = await fetch(origin + path, { method, headers, body, redirect: 'manual' })
      return { status: answer.status, headers: answer.headers, text: await answer.text() }
    },
  }
}

const command = resolve('bin/run.js')

/** Runs a command in the background and collects its output. */
function startCommand(args: readonly string[], env: Record<string, string>, cwd: string) {
  const child = spawn(process.execPath, [command, ...args], { cwd, env: { HOME: cwd, ...env } })
  const output = { out: '', err: '' }
  child.stdout.on('data', part => {
    output.out += String(part)
  })
  child.stderr.on('data', part => {
    output.err += String(part)
  })
  const exited = once(child, 'close').then(([status]) => Number(status))
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, said: output, exited }
}

describe('secrets in every credential', () => {
  test('S5.9-01 S5.9-02 S5.9-03 S2.3-03 S2.3-08 S4.2-14: never appear in the output, the responses or the data directory of a server', {
    timeout: 120_000,
  }, async () => {
    const planted = createSecrets()
    const home = temporaryFolder()
    const [dataDir, config] = [join(home, 'data'), join(home, 'workbase.yaml')]
    const provider = await startProvider(providerOptions)
    writeFileSync(config, JSON.stringify(configOf(provider)))
    const args = ['serve', '--port', '0', '--data-dir', dataDir, '--config', config, '--json']
    const { child, said, exited } = startCommand(args, environmentOf(planted), home)
    await waitUntil(() => said.out.includes('\n') || child.exitCode !== null)
    const { url } = JSON.parse(said.out.split('\n')[0]!) as { url: string }
    const found = await useEveryCredential(networkClient(url.replace(/\/$/, '')), provider, planted)
    child.kill('SIGTERM')
    expect(await exited).toBe(0)

    expectCompleteRun(found)
    expect(said.out).toMatch(/"level":"debug"/)
    expect(said.out).toMatch(/audit auth\.api_denied denied/)
    const text = [said.out, said.err, ...found.answers].join('\n')
    expect(findLeaks(text, found.secrets)).toEqual([])
    expect(findLeaks(text, digestsIn(dataDir))).toEqual([])
    expect(findLeaks(bytesOf(dataDir), found.secrets)).toEqual([])
  })

  test('S5.9-01 S5.9-02 S5.9-03: never reach the log, even before it is redacted', {
    timeout: 120_000,
  }, async () => {
    const planted = createSecrets()
    const home = temporaryFolder()
    const [dataDir, path] = [join(home, 'data'), join(home, 'workbase.yaml')]
    const provider = await startProvider(providerOptions)
    writeFileSync(path, JSON.stringify(configOf(provider)))
    const environment = readEnvironment(environmentOf(planted))
    const lines: string[] = []
    const say = (facts: object, message: string) => void lines.push(`${message} ${serializeFacts(facts)}`)
    const log: Log = { debug: say, info: say, warn: say, error: say }
    const { config } = loadConfig({ path }, environment)
    const settings = { config, environment, dataDir, threads: false, loopback: true, server: true, log }
    const runtime = await openRuntime(settings, { strictErrors: true })
    const origin = 'http://localhost'
    const within: RuntimeClient = {
      origin,
      async send(line, { headers, body } = {}) {
        const [method, route] = line.split(' ') as [string, string]
        const request = new Request(origin + route, {
          method,
          headers: { host: 'localhost', ...headers },
          body,
        })
        const answer = await runtime.app.fetch(request, { peer: { encrypted: false, address: '127.0.0.1' } })
        return { status: answer.status, headers: answer.headers, text: await answer.text() }
      },
    }
    const found = await useEveryCredential(within, provider, planted)
    await runtime.close()

    expectCompleteRun(found)
    expect(lines.length).toBeGreaterThan(150)
    const text = [...lines, ...found.answers].join('\n')
    expect(findLeaks(text, found.secrets)).toEqual([])
    expect(findLeaks(text, digestsIn(dataDir))).toEqual([])
    expect(findLeaks(bytesOf(dataDir), found.secrets)).toEqual([])
  })

  test('S5.9-01 S5.9-02: do not appear in the error of a failed startup', async () => {
    const home = temporaryFolder()
    mkdirSync(join(home, 'data'))
    const provider = await startProvider(providerOptions)
    const config = join(home, 'workbase.yaml')
    writeFileSync(config, JSON.stringify(configOf(provider)))
    const short = canary('short').slice(0, 31)
    const environment = environmentOf(createSecrets())
    for (const name of ['FIRST_TOKEN', 'SESSION_1', 'SESSION_2']) {
      const { said, exited } = startCommand(
        ['serve', '--port', '0', '--data-dir', join(home, 'data'), '--config', config, '--json', '--debug'],
        { ...environment, [name]: short },
        home,
      )
      expect(await exited).not.toBe(0)
      expect(said.out + said.err).toMatch(/must have at least 32/)
      const secrets = new Map(Object.entries({ ...environment, [name]: short }))
      expect(findLeaks(said.out + said.err, secrets), name).toEqual([])
    }
  })

  test('findLeaks finds a secret in each of its encodings', () => {
    const secret = canary('told')
    const secrets = new Map([['it', secret]])
    const encoded = [
      secret,
      secret.slice(0, 24),
      Buffer.from(secret).toString('base64'),
      Buffer.from(`user:${secret}`).toString('hex'),
    ]
    for (const text of encoded) expect(findLeaks(`said ${text} aloud`, secrets)).toHaveLength(1)
    expect(findLeaks('said nothing', secrets)).toEqual([])
  })
})

/** Serializes log fields with all properties of errors. */
function serializeFacts(facts: object): string {
  return JSON.stringify(facts, (_name, value) =>
    value instanceof Error
      ? { ...value, message: value.message, stack: value.stack, cause: value.cause as unknown }
      : value,
  )
}
