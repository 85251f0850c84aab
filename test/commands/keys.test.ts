import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clipboardCommand } from '../../src/cli/environment.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { isReplaced } from '../../src/cli/fields/key.ts'
import { describeScopes } from '../../src/cli/keys/describe-scopes.ts'
import {
  formatAgo,
  formatDue,
  formatLifetime,
  parseDurationSeconds,
  parseFutureTime,
  parsePastTime,
} from '../../src/cli/terminal/duration.ts'
import { type ApiKey, apiKeys } from '../../src/contract/keys.ts'
import type { ClientRequest } from '../../src/contract/route.ts'
import { type Scope, scopes, scopesOfRole } from '../../src/contract/scopes.ts'
import {
  addWorkspaceSandbox,
  createSandbox,
  runProgram,
  serveWithApiKeys,
  type TestServer,
  type WorkspaceSandbox,
} from './sandbox.ts'
import { runInFakeTerminal, runInTerminal, stripSequences } from './terminal.ts'

const anyway = 'read the content of the workspace over HTTP, like every key'
const trail = 'read the audit trail'
const change = 'change anything'
const rule = 'manage keys or access, or delete the workspace'
const tools = 'let agents call external tools'
const documents = 'add, change and delete documents and records'
const bases = 'create, change and delete knowledge bases and filters'
const services = 'create, change and delete services and MCP servers'
const agents = 'create, change and delete agents'
const keys = 'create, rotate and revoke keys'
const access = 'manage access to documents'
const workspace = 'delete the workspace'
const everything = 'change everything: documents, knowledge bases, services and agents'
const managing = 'manage keys and access, and delete the workspace'

const words: [scopes: string, may: string[], mayNot: string[]][] = [
  ['read', ['read everything'], [change, rule, tools]],
  ['read:content', ['search and read documents', anyway], [trail, change, rule, tools]],
  ['read:chat', ['read conversations', anyway], [trail, change, rule, tools]],
  ['read:audit', [anyway, trail], [change, rule, tools]],
  ['write', [anyway, everything, tools], [trail, rule]],
  ['write:ingest', [anyway, documents], [trail, bases, services, agents, rule, tools]],
  ['write:kb', [anyway, bases], [trail, documents, services, agents, rule, tools]],
  ['write:services', [anyway, services], [trail, documents, bases, agents, rule, tools]],
  ['write:agents', [anyway, agents], [trail, documents, bases, services, rule, tools]],
  ['manage', [anyway, trail, managing], [change, tools]],
  ['manage:keys', [anyway, keys], [trail, change, access, workspace, tools]],
  ['manage:access', [anyway, trail, access], [change, keys, workspace, tools]],
  ['manage:workspace', [anyway, workspace], [trail, change, keys, access, tools]],
  ['tools:invoke', [anyway, tools], [trail, change, rule]],
  ['read write', ['read everything', everything, tools], [rule]],
  ['read write manage', ['read everything', everything, managing, tools], []],
  ['read write:ingest write:kb', ['read everything', documents, bases], [services, agents, rule, tools]],
]

describe('permissions of a key in words', () => {
  test.each(words)('%s', (held, may, mayNot) => {
    expect(describeScopes(held.split(' ') as Scope[])).toEqual({ may, mayNot })
  })

  test('S2.4-01 S2.4-02: every scope and every role has a description', () => {
    const described = words.map(([held]) => held)
    expect(described).toEqual(expect.arrayContaining([...scopes]))
    expect(described).toEqual(expect.arrayContaining(Object.values(scopesOfRole).map(held => held.join(' '))))
  })

  test('S2.4-13: omits a fine scope that a coarse scope includes, and mentions no permission twice', () => {
    fc.assert(
      fc.property(fc.subarray([...scopes], { minLength: 1 }), held => {
        const coarse = held.filter(scope => !held.some(other => scope.startsWith(`${other}:`)))
        expect(describeScopes(held)).toEqual(describeScopes(coarse))
        const { may, mayNot } = describeScopes(held)
        expect(may.filter(word => mayNot.includes(word))).toEqual([])
        expect(new Set(may).size).toBe(may.length)
      }),
    )
  })
})

describe('isReplaced', () => {
  const key: ApiKey = {
    workspaceId: 'w',
    keyId: 'k',
    prefix: 'p',
    label: 'ci',
    role: null,
    scopes: ['read'],
    principalId: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    lastUsedAt: null,
    revokedAt: null,
    expiresAt: '2026-03-02T12:00:00.000Z',
  }
  const later = {
    ...key,
    keyId: 'l',
    principalId: 'k',
    createdAt: '2026-03-01T12:00:00.000Z',
    expiresAt: null,
  }

  test.each([
    ['never ends', {}, true],
    ['ends later', { expiresAt: '2026-06-01T00:00:00.000Z' }, true],
    ['ends no later', { expiresAt: key.expiresAt }, false],
    ['was revoked', { revokedAt: later.createdAt }, false],
    ['has another label', { label: 'cd' }, false],
    ['has other scopes', { scopes: ['read', 'write'] as Scope[] }, false],
    ['has another principal', { principalId: 'ada' }, false],
    ['is older', { createdAt: '2025-12-31T00:00:00.000Z' }, false],
    [
      'was created more than a grace period before that end',
      { createdAt: '2026-01-31T11:59:59.000Z' },
      false,
    ],
  ])('returns the expected result if the other key %s: %j', (_what, other, replaced) => {
    expect(isReplaced(key, [key, { ...later, ...other }])).toBe(replaced)
  })

  test('compares the principals of both keys', () => {
    const ada = { ...key, principalId: 'ada' }
    expect(isReplaced(ada, [ada, { ...later, principalId: 'ada' }])).toBe(true)
    expect(isReplaced(ada, [ada, later])).toBe(false)
    expect(isReplaced(key, [key, { ...later, principalId: null }])).toBe(false)
  })

  test('returns false for a key that does not expire or was revoked', () => {
    expect(isReplaced({ ...key, expiresAt: null }, [later])).toBe(false)
    expect(isReplaced({ ...key, revokedAt: later.createdAt }, [later])).toBe(false)
  })
})

describe('dates and durations', () => {
  const now = Date.parse('2026-03-01T12:00:00.000Z')

  test.each([
    ['90d', '2026-05-30T12:00:00.000Z'],
    ['1s', '2026-03-01T12:00:01.000Z'],
    ['15m', '2026-03-01T12:15:00.000Z'],
    ['15min', '2026-03-01T12:15:00.000Z'],
    ['2h', '2026-03-01T14:00:00.000Z'],
    ['1w', '2026-03-08T12:00:00.000Z'],
    ['1y', '2027-03-01T12:00:00.000Z'],
    ['1000y', '3025-07-02T12:00:00.000Z'],
    ['2027-01-01', '2027-01-01T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['2027-01-01T08:00:00Z', '2027-01-01T08:00:00.000Z'],
    ['2027-01-01t08:00:00.5+02:00', '2027-01-01T06:00:00.500Z'],
  ])('parses %s as %s', (text, iso) => {
    expect(parseFutureTime('--expires', text, now)).toBe(iso)
  })

  test.each([
    '',
    'soon',
    '90',
    '-1d',
    '1.5h',
    '90 d',
    '999999y',
    '1001y',
    '2027-02-30',
    '2027-13-01',
    '2027-1-1',
    '01/02/2027',
    '2027-01-01T25:00:00Z',
    '2026-03-01T12:00:00Z',
    '2026-03-01',
    '0d',
  ])('rejects %j, which is not a future date', text => {
    expect(() => parseFutureTime('--expires', text, now)).toThrow(UsageError)
  })

  test('formats a past date relative to now, or as a date', () => {
    expect(parsePastTime('--since', '1h', now)).toBe('2026-03-01T11:00:00.000Z')
    expect(parsePastTime('--since', '2026-02-01', now)).toBe('2026-02-01T00:00:00.000Z')
    expect(() => parsePastTime('--since', 'yesterday', now)).toThrow(UsageError)
  })

  test.each([
    ['0', 0],
    ['0s', 0],
    ['24h', 86_400],
    ['30d', 2_592_000],
  ])('a grace period of %s is %i seconds', (text, seconds) => {
    expect(parseDurationSeconds('--grace', text, 2_592_000)).toBe(seconds)
  })

  test.each(['31d', '24', '', 'never'])('rejects %j as a grace period', text => {
    expect(() => parseDurationSeconds('--grace', text, 2_592_000)).toThrow(UsageError)
  })

  test.each([
    [0, 'now'],
    [999, 'now'],
    [1_000, 'in 1 s'],
    [90_000, 'in 1 min'],
    [29 * 86_400_000, 'in 29 d'],
    [90 * 86_400_000, '2026-05-30'],
    [-5_000, '5 s ago'],
  ])('formats a time %i ms from now as "%s"', (ms, text) => {
    expect(formatDue(now + ms, now)).toBe(text)
  })

  test.each([
    [null, 'until it is revoked'],
    [86_399_000, 'for 1 d'],
    [5_000_000, 'for 1 h'],
    [3_000, 'for 3 s'],
    [90 * 86_400_000, 'until 2026-05-30'],
  ])('describes an expiry in %j ms as "%s"', (ms, text) => {
    expect(formatLifetime(ms === null ? null : new Date(now + ms).toISOString(), now)).toBe(text)
  })

  test('formats a missing date as a dash', () => {
    expect([formatDue(Number.NaN, now), formatAgo(Number.NaN, now)]).toEqual(['–', '–'])
  })
})

const token = /^wb_live_[a-z0-9]{12}_[a-z0-9]{32}$/

/** A server that requires API keys. Commands in its sandbox use the bootstrap token. */
const shared = createSandbox(afterAll)
let server: TestServer
beforeAll(async () => {
  server = await serveWithApiKeys(shared)
})

/** Creates a workspace without keys on that server. */
const newWorkspace = () => addWorkspaceSandbox(shared, server)

async function createKey(
  { call, workspaceId }: WorkspaceSandbox,
  label: string,
  fields: Partial<ClientRequest<typeof apiKeys.create>['body']> = {},
): Promise<{ key: ApiKey; plaintext: string }> {
  return call(apiKeys.create, { params: { workspaceId }, body: { label, ...fields } })
}

async function keysOf({ call, workspaceId }: WorkspaceSandbox): Promise<ApiKey[]> {
  return (await call(apiKeys.list, { params: { workspaceId }, query: {} })).items
}

/** Returns true if the runtime accepts the token. */
async function isAccepted({ workspaceId }: WorkspaceSandbox, token: string): Promise<boolean> {
  const { status } = await fetch(`${server.url}/api/v1/workspaces/${workspaceId}/knowledge-bases`, {
    headers: { authorization: `Bearer ${token}` },
  })
  return status === 200
}

function prefixOf(plaintext: string): string {
  return plaintext.split('_')[2]!
}

describe('wb keys', () => {
  test('S5.2-11: creates the first key of a fresh data directory, and prints only its token on stdout, once', async () => {
    const sandbox = createSandbox()
    sandbox.env.WB_CONFIG = join(sandbox.home, 'closed.yaml')
    writeFileSync(sandbox.env.WB_CONFIG, 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n')
    await sandbox.wb(['workspaces', 'create', 'demo', '--as-operator'])
    const created = await sandbox.wb(['keys', 'create', 'ci', '--role', 'viewer', '--as-operator'])
    expect(created).toEqual({
      status: 0,
      stdout: expect.stringMatching(new RegExp(`${token.source.replace('$', '')}\\n$`)),
      stderr: [
        '  key ci of workspace demo; its token is shown only once',
        '    may      read everything',
        '    may not  change anything; manage keys or access, or delete the workspace; let agents call external tools',
        '    works    until it is revoked',
        '    use      WB_API_KEY=… wb kb list',
        '',
      ].join('\n'),
    })
    const secret = created.stdout.trim()
    const env = { WB_API_KEY: secret }
    expect((await sandbox.wb(['workspaces', 'list'], { env })).stdout).toContain('\tdemo\t')
    const change = await sandbox.wb(['kb', 'create', 'x', '--debug'], { env })
    expect(change).toMatchObject({ status: 3, stdout: '' })
    expect(change.stderr).toContain("missing required scope 'write:kb'")
    expect(change.stderr).not.toContain(secret)
  })

  test('lists and shows keys by prefix, without tokens', async () => {
    const sandbox = await newWorkspace()
    const { plaintext, key } = await createKey(sandbox, 'ci')
    for (const args of [['list'], ['list', '--json'], ['show', 'ci'], ['show', 'ci', '--json']]) {
      const { stdout, stderr } = await sandbox.wb(['keys', ...args])
      expect(stdout).toContain(key.prefix)
      expect(stdout + stderr).not.toContain(plaintext)
    }
  })

  test('creates a workspace in an empty data directory, and warns if the runtime does not require keys', async () => {
    const { wb } = createSandbox()
    const { stderr } = await wb(['keys', 'create', 'first'])
    expect(stderr).toMatch(/^ {2}✓ created workspace default\n/)
    expect(stderr).toMatch(
      /\n {2}! this configuration does not accept API keys; set auth.mode to apiKey or any\n$/,
    )
  })

  test("uses the server's configuration, not the command's, to determine whether keys are required", async () => {
    const sandbox = await newWorkspace()
    const create = ['keys', 'create', 'admin', '--as-operator']
    const { status, stderr } = await sandbox.wb(create, { env: { WB_CONFIG: '' } })
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.not.stringContaining('!') })
  })

  test('S5.9-07: an expired key is reported with the command that creates its successor', async () => {
    const sandbox = await newWorkspace()
    const old = await createKey(sandbox, 'ci', { expiresAt: new Date(Date.now() + 1_000).toISOString() })
    await expect.poll(() => isAccepted(sandbox, old.plaintext)).toBe(false)
    const { stderr } = await sandbox.wb(['kb', 'list'], { env: { WB_API_KEY: old.plaintext } })
    expect(stderr).toContain(`    wb keys rotate ${old.key.prefix}    replaces it, if you may manage keys\n`)
  })

  test('the suggested command names the runtime, and --quiet prints only the token', async () => {
    const sandbox = await newWorkspace()
    const env = { WB_API_KEY: (await createKey(sandbox, 'admin', { role: 'admin' })).plaintext }
    const create = ['keys', 'create', 'ci', '--url', server.url]
    const named = await sandbox.wb([...create, '--expires', '90d'], { env })
    expect(named.stderr).toMatch(
      new RegExp(
        `    works    until \\d{4}-\\d\\d-\\d\\d\\n    use      WB_URL=${server.url} WB_API_KEY=… wb kb list\\n$`,
      ),
    )
    const quiet = await sandbox.wb([...create, '-q'], { env })
    expect(quiet).toEqual({ status: 0, stdout: expect.stringMatching(/^wb_live_\w+\n$/), stderr: '' })
  })

  test('--json prints one object, as the API returns it', async () => {
    const sandbox = await newWorkspace()
    const scope = ['--scope', 'write:kb', '--scope', 'read:chat']
    const created = JSON.parse((await sandbox.wb(['keys', 'create', 'ci', ...scope, '--json'])).stdout)
    expect(created).toEqual({
      plaintext: expect.stringMatching(token),
      key: expect.objectContaining({
        label: 'ci',
        role: null,
        scopes: ['read:chat', 'write:kb'],
        principalId: null,
      }),
    })
    expect(JSON.parse((await sandbox.wb(['keys', 'list', '--json'])).stdout)).toEqual([created.key])
  })

  test('S5.9-07: rotation prints only the successor, and reports when the old token expires', async () => {
    const sandbox = await newWorkspace()
    const first = await createKey(sandbox, 'ci', { role: 'viewer' })
    const rotated = await sandbox.wb(['keys', 'rotate', 'ci', '--grace', '1h'])
    const second = rotated.stdout.trimEnd()
    expect(second).toMatch(token)
    expect(rotated.stderr).toMatch(
      new RegExp(
        `^  key ci of workspace ${sandbox.workspace}; its token is shown only once\\n[^]*    old key  ${first.key.prefix} works for 1 h\\n$`,
      ),
    )
    for (const key of [first.plaintext, second]) expect(await isAccepted(sandbox, key)).toBe(true)
    const { stdout } = await sandbox.wb(['keys', 'list'])
    expect(stdout).toMatch(new RegExp(`\\t${first.key.prefix}\\tci\\tviewer\\treplaced\\t`))
    expect(stdout).toMatch(new RegExp(`\\t${prefixOf(second)}\\tci\\tviewer\\tactive\\t`))
    const third = await sandbox.wb(['keys', 'rotate', 'ci', '--grace', '0'])
    expect(third.stderr).toMatch(new RegExp(`old key  ${prefixOf(second)} ended (?:now|\\d+ s ago)\\n$`))
    expect(await isAccepted(sandbox, second)).toBe(false)
  })

  test('rejects a label that two unrelated keys share, and warns when the second one is created', async () => {
    const sandbox = await newWorkspace()
    const first = (await createKey(sandbox, 'ci')).key.prefix
    const { stdout, stderr } = await sandbox.wb(['keys', 'create', 'ci'])
    const second = prefixOf(stdout.trimEnd())
    expect(stderr).toContain(`\n  ! another active key is named ci: ${first}\n`)
    const both = await sandbox.wb(['keys', 'revoke', 'ci', '--yes'])
    expect(both).toMatchObject({ status: 2, stdout: '' })
    expect(both.stderr).toMatch(
      new RegExp(
        `^  ✗ 2 keys are named "ci"; use a prefix\\n    wb keys revoke ${first}    created (?:now|\\d s ago)\\n    wb keys revoke ${second}    created (?:now|\\d s ago)\\n$`,
      ),
    )
  })

  test('revoking a successor names the old key that still works', async () => {
    const sandbox = await newWorkspace()
    const { workspaceId, keyId, prefix } = (await createKey(sandbox, 'ci')).key
    await sandbox.call(apiKeys.rotate, { params: { workspaceId, keyId }, body: {} })
    const { status, stderr } = await sandbox.wb(['keys', 'revoke', 'ci', '--yes'])
    expect(status).toBe(0)
    expect(stderr).toMatch(
      new RegExp(
        `\\n  ! ${prefix}, which this key replaced, works for 1 d\\n    wb keys revoke ${prefix}\\n$`,
      ),
    )
  })

  test('requires a label for a new key', async () => {
    const { wb } = await newWorkspace()
    const { status, stdout, stderr } = await wb(['keys', 'create', ' '])
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain('LABEL is empty')
  })

  test('S3-01 S3-02 S3-03: revoking needs confirmation or --yes, the next request is rejected, and the key stays listed', async () => {
    const sandbox = await newWorkspace()
    const { plaintext, key } = await createKey(sandbox, 'ci', { role: 'viewer' })
    const used = `key ci (${key.prefix}, never used) of workspace ${sandbox.workspace}`
    expect(await sandbox.wb(['keys', 'revoke', 'ci'])).toEqual({
      status: 2,
      stdout: '',
      stderr: `  ✗ This revokes ${used}\n    add --yes to skip the confirmation\n`,
    })
    expect(await sandbox.wb(['keys', 'revoke', 'ci', '--yes'])).toEqual({
      status: 0,
      stdout: '',
      stderr: `  ✓ revoked key ci (${key.prefix}) of workspace ${sandbox.workspace}\n`,
    })
    const refused = await sandbox.wb(['kb', 'list'], { env: { WB_API_KEY: plaintext } })
    expect(refused).toMatchObject({ status: 3, stdout: '' })
    expect(refused.stderr).toMatch(
      new RegExp(
        `The key was revoked [^]*    the runtime at ${server.url} does not accept the key ${key.prefix} in WB_API_KEY\\n[^]*    wb keys create NAME    creates a key to replace ${key.prefix}, if you may manage keys\\n`,
      ),
    )
    expect((await sandbox.wb(['keys', 'list'])).stdout).toMatch(/\tci\tviewer\trevoked\t/)
    for (const args of [
      ['revoke', 'ci', '--yes'],
      ['rotate', 'ci'],
    ])
      expect(await sandbox.wb(['keys', ...args])).toEqual({
        status: 4,
        stdout: '',
        stderr: expect.stringMatching(
          new RegExp(`^  ✗ Key ci \\(${key.prefix}\\) was already revoked (just now|\\d s ago) `),
        ),
      })
  })

  test('finds a key by label, prefix or ID, and prefers the active key with a label', async () => {
    const sandbox = await newWorkspace()
    const { workspaceId, keyId: oldId, prefix: old } = (await createKey(sandbox, 'ci')).key
    await sandbox.call(apiKeys.revoke, { params: { workspaceId, keyId: oldId } })
    const { key, plaintext } = await createKey(sandbox, 'ci')
    const show = async (name: string) => sandbox.wb(['key', 'show', name, '--json'])
    for (const name of ['ci', key.prefix, key.keyId])
      expect(JSON.parse((await show(name)).stdout)).toMatchObject({ keyId: key.keyId, prefix: key.prefix })
    expect(JSON.parse((await show(old)).stdout)).toMatchObject({ revokedAt: expect.any(String) })
    expect(await sandbox.wb(['keys', 'show', 'cl'])).toEqual({
      status: 4,
      stdout: '',
      stderr: `  ✗ No key in workspace ${sandbox.workspace} is named "cl" (api_key_not_found)\n    did you mean ci?\n    wb keys list\n`,
    })
    expect((await show('00000000-0000-4000-8000-000000000000')).status).toBe(4)
    expect(await sandbox.wb(['keys', 'show', plaintext])).toEqual({
      status: 2,
      stdout: '',
      stderr: `  ✗ A key cannot be selected by its token\n    wb keys show ${key.prefix}    selects the key with that token\n`,
    })
  })

  test('S5.9-08: a key without manage:keys cannot create, list or revoke keys', async () => {
    const sandbox = await newWorkspace()
    const env = { WB_API_KEY: (await createKey(sandbox, 'ci', { role: 'editor' })).plaintext }
    for (const args of [
      ['keys', 'list'],
      ['keys', 'create', 'x'],
      ['keys', 'revoke', 'ci', '--yes'],
    ]) {
      const { status, stdout, stderr } = await sandbox.wb(args, { env })
      expect({ status, stdout }).toEqual({ status: 3, stdout: '' })
      expect(stderr).toMatch(/missing required scope 'manage:keys' \(forbidden, request/)
    }
  })
})

describe('the destination of a token', () => {
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

  test('writes the token to a file that only its owner can read, and not to stdout', async () => {
    const sandbox = await newWorkspace()
    const path = join(sandbox.home, 'a b', 'ci.key')
    mkdirSync(join(sandbox.home, 'a b'))
    const create = ['keys', 'create', 'ci', '--write', path]
    const created = await sandbox.wb(create)
    expect(created).toMatchObject({ status: 0, stdout: '' })
    expect(created.stderr).toContain(`its token is in ${path}\n`)
    expect(created.stderr).toContain(`use      WB_API_KEY=$(cat "${path}") wb kb list`)
    const first = readFileSync(path, 'utf8')
    expect(first.trimEnd()).toMatch(token)
    expect(mode(path)).toBe('600')
    expect(await sandbox.wb(create)).toEqual({
      status: 2,
      stdout: '',
      stderr: `  ✗ "${path}" already exists\n    add --force to replace it\n`,
    })
    chmodSync(path, 0o644)
    const replaced = await sandbox.wb([...create, '--force', '--json'])
    expect(JSON.parse(replaced.stdout)).toEqual({ key: expect.objectContaining({ label: 'ci' }) })
    expect(readFileSync(path, 'utf8')).not.toBe(first)
    expect(mode(path)).toBe('600')
    expect(readdirSync(join(sandbox.home, 'a b'))).toEqual(['ci.key'])
    expect(await keysOf(sandbox)).toHaveLength(2)
  })

  test('rejects a link, a folder or a missing path before it creates a key', async () => {
    const sandbox = await newWorkspace()
    const link = join(sandbox.home, 'link')
    symlinkSync(join(sandbox.home, 'target'), link)
    for (const [path, words] of [
      [link, 'is a symbolic link'],
      [sandbox.home, 'is not a file'],
      [
        join(sandbox.home, 'none', 'x'),
        `The folder ${join(sandbox.home, 'none')} does not exist\n    mkdir -p `,
      ],
    ] as const)
      for (const force of [[], ['--force']]) {
        const { status, stdout, stderr } = await sandbox.wb([
          'keys',
          'create',
          'x',
          '--write',
          path,
          ...force,
        ])
        expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
        expect(stderr).toContain(words)
      }
    expect(await keysOf(sandbox)).toEqual([])
  })

  test('copies the token to the clipboard, or creates no key if there is no clipboard program', async () => {
    const sandbox = await newWorkspace()
    const none = await sandbox.wb(['keys', 'create', 'x', '--copy'], {
      env: { PATH: sandbox.home, DISPLAY: ':0' },
    })
    expect(none).toEqual({
      status: 2,
      stdout: '',
      stderr:
        '  ✗ No clipboard program found (wl-copy, xclip, xsel, pbcopy, clip.exe)\n    --write FILE    writes the token to a file that only you can read\n',
    })
    const copied = join(sandbox.home, 'copied')
    const program = join(sandbox.home, 'xclip')
    writeFileSync(program, `#!/bin/sh\necho "$@" >"${copied}"; exec /bin/cat >>"${copied}"\n`, {
      mode: 0o755,
    })
    const env = { PATH: sandbox.home, DISPLAY: ':0' }
    const created = await sandbox.wb(['keys', 'create', 'ci', '--copy'], { env })
    expect(created).toMatchObject({ status: 0, stdout: '' })
    expect(created.stderr).toContain('its token is in the clipboard\n')
    const [args, secret] = readFileSync(copied, 'utf8').split('\n')
    expect(args).toBe('-selection clipboard')
    expect(secret).toMatch(token)

    writeFileSync(program, '#!/bin/sh\nexit 3\n')
    const failed = await sandbox.wb(['keys', 'create', 'lost', '--copy'], { env })
    expect(failed).toMatchObject({ status: 1, stdout: '' })
    expect(failed.stderr).toMatch(
      /^ {2}✗ Key lost was created, but its token could not be written in the clipboard \(xclip ended with status 3\)\n {4}node \S+ keys revoke [0-9a-f-]{36} --yes {4}then create another\n$/,
    )
  })

  test.each([
    [{ DISPLAY: ':0', WAYLAND_DISPLAY: 'w' }, ['wl-copy', 'xclip'], ['wl-copy']],
    [{ DISPLAY: ':0' }, ['wl-copy', 'xsel'], ['xsel', '--clipboard', '--input']],
    [{}, ['wl-copy', 'xclip', 'xsel', 'clip.exe'], ['clip.exe']],
    [{}, ['pbcopy'], ['pbcopy']],
    [{}, ['xclip'], undefined],
  ])('the clipboard command for %j with %j is %j', (environment, installed, command) => {
    const { home } = createSandbox()
    for (const name of installed) writeFileSync(join(home, name), '', { mode: 0o755 })
    expect(clipboardCommand({ ...environment, PATH: `/nonexistent:${home}` })).toEqual(command)
  })

  test.each([
    ['>/dev/null', 2, /^ {2}✗ Stdout is discarded, and the token is shown only once\n {4}--write FILE/],
    ['>&-', 2, /^ {2}✗ Stdout is discarded/],
    [
      '>/dev/full',
      1,
      /^ {2}✗ Key ci was created, but its token could not be written on stdout \(ENOSPC\)\n {4}wb keys revoke /,
    ],
    [
      '| true',
      1,
      /^ {2}✗ Key ci was created, but its token could not be written on stdout \(EPIPE\)\n {4}wb keys revoke /,
    ],
  ])('reports a token that could not be written: %s', async (redirection, status, words) => {
    const sandbox = await newWorkspace()
    const run = `"${process.execPath}" "${resolve('bin/run.js')}" keys create ci ${redirection}; exit \${PIPESTATUS[0]}`
    const { stdout: _, ...ended } = await runProgram(sandbox, 'bash', ['-c', run])
    expect(ended).toEqual({ status, stderr: expect.stringMatching(words) })
    expect(await keysOf(sandbox)).toHaveLength(status === 2 ? 0 : 1)
  })
})

describe('in a terminal', { timeout: 60_000 }, () => {
  test('lists the main properties of a key, and revokes it when the user types its label', async () => {
    const sandbox = await newWorkspace()
    await createKey(sandbox, 'ci', {
      role: 'viewer',
      expiresAt: new Date(Date.now() + 7_200_000).toISOString(),
    })
    const list = await runInFakeTerminal(sandbox, ['keys', 'list'])
    expect(stripSequences(list.text)).toMatch(
      /^ {2}prefix {8}label {2}role {4}state {3}until\n {2}[a-z0-9]{12} {2}ci {5}viewer {2}active {2}in (?:1|2) h\n$/,
    )
    const mistyped = await runInTerminal(sandbox, ['keys', 'revoke', 'ci'], {
      answer: text => (text.includes('to confirm') ? 'c\r' : undefined),
    })
    expect(mistyped.status).toBe(2)
    expect(stripSequences(mistyped.text)).toContain('"c" is not "ci"; nothing was revoked')
    expect(stripSequences(mistyped.text)).not.toMatch(/✔|--help/)
    const typed = await runInTerminal(sandbox, ['keys', 'revoke', 'ci'], {
      answer: text => (text.includes('to confirm') ? 'ci\r' : undefined),
    })
    expect(typed.status).toBe(0)
    expect(stripSequences(typed.text)).toMatch(/✓ revoked key ci \(/)
  })

  test('strips control sequences from a label in a terminal', async () => {
    const sandbox = await newWorkspace()
    const label = 'a\x1b]0;owned\x07b\x1b[2Jc'
    await createKey(sandbox, label)
    for (const args of [
      ['keys', 'list'],
      ['keys', 'show', label],
    ]) {
      const { text } = await runInFakeTerminal(sandbox, [...args])
      expect(text).toContain('abc')
      expect(text).not.toMatch(/owned|\x1b\]|\x1b\[2J/)
    }
  })
})
