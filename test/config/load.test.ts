// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders are what is tested
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { describeConfig } from '../../src/config/describe-config.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { WbError } from '../../src/contract/errors.ts'

const folder = mkdtempSync(join(tmpdir(), 'wb-config-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = join(folder, 'workbase.yaml')

function load(yaml: string | Uint8Array, variables: Record<string, string> = {}) {
  writeFileSync(path, yaml)
  return loadConfig({ path }, createEnvironment(variables))
}

/** Returns the problems as `key: message`. */
function problemsOf(yaml: string | Uint8Array, variables: Record<string, string> = {}): string[] {
  try {
    load(yaml, variables)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    const problems = error.facts.problems as { key: string; message: string }[] | undefined
    return problems?.map(({ key, message }) => `${key}: ${message}`) ?? [error.message]
  }
  return []
}

describe('defaults', () => {
  const { config, sources } = loadConfig({ path: null }, createEnvironment({}))

  test('apply to every key without a file', () => {
    expect(config.runtime).toMatchObject({
      host: '127.0.0.1',
      port: 8787,
      logLevel: 'info',
      trustProxyHeaders: false,
    })
    expect(config.runtime.rateLimit).toEqual({
      enabled: true,
      capacity: null,
      authCapacity: 120,
      windowMs: 60_000,
    })
    expect(config.auth).toEqual({
      mode: 'disabled',
      anonymousPolicy: 'allow',
      bootstrapTokenRef: null,
      acknowledgeOpenAccess: null,
      oidc: null,
    })
    expect(config.chat).toMatchObject({
      provider: 'openrouter',
      tokenRef: 'env:OPENROUTER_API_KEY',
      retrievalK: 6,
    })
    expect(config.mcp).toEqual({ enabled: true, exposeChat: false, stdioServers: [] })
    expect(new Set([...sources.values()].map(({ from }) => from))).toEqual(new Set(['default']))
  })

  test('S1-11 the control plane defaults to the embedded store in the data directory', () => {
    const planeOf = (yaml: string) => load(`version: 1\ncontrolPlane: ${yaml}`).config.controlPlane
    expect(config.controlPlane).toMatchObject({ driver: 'sqlite', path: null })
    expect(planeOf('{driver: sqlite, path: ":memory:"}')).toMatchObject({ path: ':memory:' })
    expect(planeOf('{driver: memory}')).toMatchObject({ driver: 'memory' })
    expect(planeOf('{driver: postgres, urlRef: "env:PG"}')).toMatchObject({
      urlRef: 'env:PG',
      schema: 'workbase',
    })
    expect(planeOf('{driver: astra, endpoint: "https://db.example", tokenRef: "env:T"}')).toMatchObject({
      keyspace: 'default_keyspace',
    })
  })

  test('a relative path is resolved from the folder of the file', () => {
    const planeOf = (yaml: string) => load(`version: 1\ncontrolPlane: ${yaml}`).config.controlPlane
    expect(planeOf('{driver: sqlite, path: kept/wb.db}')).toMatchObject({ path: join(folder, 'kept/wb.db') })
    expect(planeOf('{driver: file, root: kept}')).toMatchObject({ root: join(folder, 'kept') })
    expect(planeOf('{driver: file, root: /srv/wb}')).toMatchObject({ root: '/srv/wb' })
  })

  test('an empty section is treated like a missing one', () => {
    expect(load('version: 1\nruntime:\nauth:\nchat:\n  tools:\n').config).toEqual(config)
  })
})

describe('rejected configurations', () => {
  test('rejects a file without version: 1', () => {
    expect(problemsOf('runtime: {port: 1}')).toEqual(['version: must be 1'])
    expect(problemsOf('version: 2')).toEqual(['version: must be 1'])
    expect(problemsOf('')).toEqual(['version: must be 1'])
  })

  test('rejects an unknown key by its path, with the nearest known key', () => {
    expect(problemsOf('version: 1\nruntime: {prot: 1}')).toEqual([
      'runtime.prot: is not a known key; the nearest is runtime.port',
    ])
    expect(problemsOf('version: 1\nport: 1')).toEqual([
      'port: is not a known key; the nearest is runtime.port',
    ])
    expect(
      problemsOf('version: 1\nauth: {mode: oidc, oidc: {issuer: "https://i", audience: a, cleint: {}}}'),
    ).toEqual(['auth.oidc.cleint: is not a known key; the nearest is auth.oidc.client'])
    expect(problemsOf('version: 1\nmcp: {stdioServers: [{id: a, command: b, arg: []}]}')).toEqual([
      'mcp.stdioServers[0].arg: is not a known key; the nearest is mcp.stdioServers[].args',
    ])
    expect(problemsOf('version: 1\nxyzzy: 1')).toEqual(['xyzzy: is not a known key'])
    expect(problemsOf('version: 1\nruntime: {__proto__: {port: 1}}')[0]).toMatch(
      /^runtime\.__proto__: is not a known/,
    )
  })

  test('reports every invalid key at once, with the first one in the message', () => {
    expect(problemsOf('version: 1\nruntime: {port: 0, logLevel: loud}\nchat: {retrievalK: 65}')).toHaveLength(
      3,
    )
    expect(() => load('version: 1\nruntime: {port: 0, logLevel: loud}')).toThrow(
      /workbase.yaml: runtime.port: .*1 more/,
    )
  })

  test.each([
    ['auth: {mode: apiKey, bootstrapTokenRef: hunter2}', 'auth.bootstrapTokenRef'],
    ['chat: {tokenRef: hunter2}', 'chat.tokenRef'],
    ['chat: {tools: {webSearch: {apiKeyRef: "hunter2"}}}', 'chat.tools.webSearch.apiKeyRef'],
    ['controlPlane: {driver: postgres, urlRef: "postgres://u:hunter2@h/db"}', 'controlPlane.urlRef'],
    [
      'controlPlane: {driver: astra, endpoint: "https://u:hunter2@h", tokenRef: "env:T"}',
      'controlPlane.endpoint',
    ],
    [
      'mcp: {stdioServers: [{id: a, command: b, secretEnv: {T: hunter2}}]}',
      'mcp.stdioServers[0].secretEnv.T',
    ],
    ['runtime: {publicOrigin: "https://u:hunter2@h"}', 'runtime.publicOrigin'],
    ['chat: {tokenRef: "${SECRET}"}', 'chat.tokenRef'],
    ['runtime: {port: hunter2}', 'runtime.port'],
    ['chat: {provider: hunter2}', 'chat.provider'],
  ])('rejects a literal in %s by its key, without its value', (yaml, key) => {
    const [problem, ...others] = problemsOf(`version: 1\n${yaml}`, { SECRET: 'hunter2' })
    expect(problem).toMatch(new RegExp(`^${key.replace(/[[\]]/g, '\\$&')}: `))
    expect(problem).not.toContain('hunter2')
    expect(others).toEqual([])
  })

  test.each([
    ['auth: {bootstrapTokenRef: "env:B"}', 'auth.bootstrapTokenRef'],
    ['auth: {mode: oidc}', 'auth.oidc'],
    ['auth: {mode: any, oidc: {issuer: "https://i"}}', 'auth.oidc.audience'],
    ['auth: {mode: any, oidc: {issuer: "https://i", audience: []}}', 'auth.oidc.audience'],
    ['auth: {mode: other}', 'auth.mode'],
    ['auth: {acknowledgeOpenAccess: false}', 'auth.acknowledgeOpenAccess'],
    ['controlPlane: {driver: memory, jobsResume: {enabled: true}}', 'controlPlane.jobsResume.enabled'],
    ['controlPlane: {driver: other}', 'controlPlane.driver'],
    ['controlPlane: {driver: file}', 'controlPlane.root'],
    ['seedWorkspaces: [{name: a, kind: mock}]', 'seedWorkspaces'],
    [
      'controlPlane: {driver: memory}\nseedWorkspaces: [{name: a, kind: mock}, {name: a, kind: mock}]',
      'seedWorkspaces[1].name',
    ],
    ['runtime: {trustProxyHeaders: [10.0.0.0/33]}', 'runtime.trustProxyHeaders[0]'],
    ['runtime: {allowedOrigins: ["https://a.example/path"]}', 'runtime.allowedOrigins[0]'],
    ['runtime: {secretRefs: {allow: [{hosts: [a]}]}}', 'runtime.secretRefs.allow[0]'],
    ['runtime: {secretRefs: {allow: [{ref: "env:A", prefix: "env:A"}]}}', 'runtime.secretRefs.allow[0]'],
    ['mcp: {stdioServers: [{id: a, command: b}, {id: a, command: b}]}', 'mcp.stdioServers[1].id'],
  ])('%s is rejected at %s', (yaml, key) => {
    expect(problemsOf(`version: 1\n${yaml}`).map(problem => problem.split(': ')[0])).toEqual([key])
  })

  test('production rejects insecure settings', () => {
    const open =
      'version: 1\nruntime: {environment: production, publicOrigin: "http://wb"}\ncontrolPlane: {driver: memory}'
    expect(problemsOf(open).map(problem => problem.split(': ')[0])).toEqual([
      'controlPlane.driver',
      'auth.mode',
      'auth.anonymousPolicy',
      'runtime.publicOrigin',
    ])
    const login = `version: 1
runtime: {environment: production}
auth: {mode: oidc, anonymousPolicy: reject, oidc: {issuer: "https://i", audience: a, client: {clientId: c}}}`
    expect(problemsOf(login).map(problem => problem.split(': ')[0])).toEqual([
      'auth.oidc.client.sessionSecretRef',
      'runtime.publicOrigin',
    ])
    expect(
      problemsOf(
        'version: 1\nruntime: {environment: production}\nauth: {mode: apiKey, anonymousPolicy: reject}',
      ),
    ).toEqual([])
  })
})

describe('a malicious file', () => {
  test('reports the line and column of a YAML error, and quotes nothing', () => {
    const [problem] = problemsOf('version: 1\nchat: {tokenRef: hunter2\n  "hunter2: [')
    expect(problem).toMatch(/workbase\.yaml: line \d+, column \d+: /)
    expect(problem).not.toContain('hunter2')
    expect(problemsOf('version: 1\nversion: 1')[0]).toMatch(/line 2, column 1: duplicate key/)
    expect(problemsOf('version: 1\nruntime: !!js/function "x"')[0]).toMatch(/tag resolve failed/)
    expect(problemsOf('version: 1\n---\nversion: 1')[0]).toMatch(/multiple docs/)
  })

  test('limits aliases', () => {
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]']
    for (const [at, name] of [...'bcdefgh'].entries())
      bomb.push(`${name}: &${name} [${`*${'abcdefg'[at]},`.repeat(9)}]`)
    expect(problemsOf(bomb.join('\n'))[0]).toMatch(/more than 100 aliases/)
    expect(problemsOf('version: *nothing')[0]).toMatch(/alias/)
  })

  test('limits size and depth, and requires UTF-8', () => {
    expect(problemsOf(`version: 1 #${'x'.repeat(262_144)}`)[0]).toMatch(/larger than 256 KB/)
    expect(problemsOf(`version: ${'['.repeat(100_000)}`)).toHaveLength(1)
    expect(problemsOf(Uint8Array.of(0xff, 0xfe, 0x00))[0]).toMatch(/not UTF-8 text/)
    expect(() => loadConfig({ path: folder }, createEnvironment({}))).toThrow(/cannot be read/)
    expect(() => loadConfig({ path: join(folder, 'none.yaml') }, createEnvironment({}))).toThrow(
      /cannot be read \(ENOENT\)/,
    )
  })

  test.each(['a pipe', 'a device'])('does not wait for %s', kind => {
    const special = kind === 'a device' ? '/dev/zero' : join(folder, 'pipe')
    if (kind === 'a pipe') execFileSync('mkfifo', [special])
    expect(() => loadConfig({ path: special }, createEnvironment({}))).toThrow(
      `${special}: cannot be read: not a regular file`,
    )
  })
})

describe('placeholders', () => {
  test('expand in text at any depth, and become numbers or booleans where required', () => {
    const { config } = load(
      `version: 1
runtime:
  port: \${PORT}
  csrfOriginCheck: \${CHECK}
  trustProxyHeaders: \${TRUST}
  allowedHosts: ["\${NAME}.example", "\${OTHER:-fallback.example}"]
chat: {systemPrompt: "a \${EMPTY:-b} \${lower} c"}`,
      { PORT: '9000', CHECK: 'false', TRUST: 'true', NAME: 'wb', EMPTY: '' },
    )
    expect(config.runtime).toMatchObject({
      port: 9000,
      csrfOriginCheck: false,
      trustProxyHeaders: true,
      allowedHosts: ['wb.example', 'fallback.example'],
    })
    expect(config.chat.systemPrompt).toBe('a  ${lower} c')
  })

  test('a missing variable is reported with the key', () => {
    expect(problemsOf('version: 1\nruntime: {port: "${PORT}", allowedHosts: ["${NAME}"]}')).toEqual([
      'runtime.port: the variable PORT is not set, and the placeholder has no default',
      'runtime.allowedHosts[0]: the variable NAME is not set, and the placeholder has no default',
    ])
  })

  test('values are not expanded again, and inherited property names are not variables', () => {
    expect(
      load('version: 1\nchat: {systemPrompt: "${A}"}', { A: '${B}', B: 'x' }).config.chat.systemPrompt,
    ).toBe('${B}')
    expect(createEnvironment({}).get('constructor')).toBeUndefined()
  })

  test('config show prints references and placeholders, and the source of each value', () => {
    const { config, sources } = load(
      'version: 1\nruntime: {port: "${PORT}", replicaId: "r-${SECRET}"}\nauth: {mode: apiKey, bootstrapTokenRef: "env:SECRET"}',
      { PORT: '9000', SECRET: 'hunter2', WB_LOG: 'DEBUG' },
    )
    const rows = describeConfig(config, sources)
    expect(rows).toContainEqual({ key: 'runtime.port', value: '${PORT}', source: 'file' })
    expect(rows).toContainEqual({ key: 'runtime.replicaId', value: 'r-${SECRET}', source: 'file' })
    expect(rows).toContainEqual({ key: 'auth.bootstrapTokenRef', value: 'env:SECRET', source: 'file' })
    expect(rows).toContainEqual({ key: 'runtime.logLevel', value: 'debug', source: 'WB_LOG' })
    expect(rows).toContainEqual({ key: 'auth.anonymousPolicy', value: 'allow', source: 'default' })
    expect(JSON.stringify(rows)).not.toContain('hunter2')
  })
})

describe('overrides', () => {
  test('flags override the file, and WB_LOG overrides LOG_LEVEL', () => {
    writeFileSync(path, 'version: 1\nruntime: {port: 9000, logLevel: error}')
    const { config, sources } = loadConfig({ path }, createEnvironment({ LOG_LEVEL: 'warn' }), {
      host: '::1',
      port: 0,
    })
    expect(config.runtime).toMatchObject({ host: '::1', port: 0, logLevel: 'warn' })
    expect(sources.get('runtime.port')).toEqual({ from: 'flag', name: '--port' })
    expect(sources.get('runtime.logLevel')).toEqual({ from: 'environment', name: 'LOG_LEVEL' })
    expect(load('version: 1', { LOG_LEVEL: 'warn', WB_LOG: 'trace' }).config.runtime.logLevel).toBe('trace')
  })

  test('ignores an invalid log level with a warning', () => {
    const { config, warnings } = load('version: 1', { LOG_LEVEL: 'notice' })
    expect(config.runtime.logLevel).toBe('info')
    expect(warnings).toEqual([
      'LOG_LEVEL is ignored, because it is not one of trace, debug, info, warn, error',
    ])
  })

  test('accepts keys without effect with one warning', () => {
    const { warnings } = load(
      'version: 1\nruntime: {uiDir: ui, telemetry: {enabled: true}}\ncontrolPlane: {driver: sqlite, jobPollIntervalMs: 500}',
    )
    expect(warnings).toEqual([
      'without effect in this runtime: runtime.uiDir, runtime.telemetry.enabled, controlPlane.jobPollIntervalMs',
    ])
  })
})
