import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { productionCost } from '../../src/auth/keys/token.ts'
import { auditSubject, auditTarget } from '../../src/cli/fields/audit.ts'
import { decisionColumns } from '../../src/cli/fields/decision.ts'
import { followEvents } from '../../src/cli/jobs/follow-events.ts'
import { Unreachable } from '../../src/client/unreachable.ts'
import type { AuditRecord } from '../../src/contract/audit-record.ts'
import { WbError } from '../../src/contract/errors.ts'
import { apiKeys } from '../../src/contract/keys.ts'
import type { PolicyDecision } from '../../src/contract/policy.ts'
import type { ClientRequest } from '../../src/contract/route.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import { makeBase } from '../harness/resources.ts'
import { withWrongSecret } from '../harness/wrong-secret.ts'
import {
  addWorkspaceSandbox,
  createSandbox,
  type Sandbox,
  sandboxFactory,
  serveWithApiKeys,
  type TestServer,
  type WorkspaceSandbox,
} from './sandbox.ts'
import { runInFakeTerminal, runInTerminal, stripSequences } from './terminal.ts'

const success = 'success' as const

describe('the text of an audit record', () => {
  test.each([
    [{ type: 'apiKey', id: 'i', label: 'ci' }, 'ci (key)'],
    [{ type: 'oidc', id: 'i', label: 'ada@example' }, 'ada@example (signed in)'],
    [{ type: 'oidc', id: 'i', label: null }, 'i (signed in)'],
    [{ type: 'bootstrap', id: null, label: null }, 'bootstrap token'],
    [{ type: 'anonymous', id: null, label: null }, 'anonymous'],
    [{ type: 'apiKey', id: 'i', label: 'ci', viewAs: 'ada' }, 'ci (key) as ada'],
    [{ type: 'system', id: 'host-1', label: 'operator' }, 'operator (system)'],
    [null, ''],
  ] as [AuditRecord['subject'], string][])('describes the subject %j as "%s"', (subject, words) => {
    expect(auditSubject({ subject })).toBe(words)
  })

  test('names the caller that views the workspace as the principal of a decision', () => {
    const principalOf = (decision: object) =>
      decisionColumns.principal!.value({ principalId: 'ada', ...decision } as PolicyDecision)
    expect(principalOf({})).toBe('ada')
    expect(principalOf({ viewedBy: { type: 'apiKey', id: 'i', label: 'ci' } })).toBe('ci (key) as ada')
  })

  test.each([
    [success, null, ''],
    [success, {}, ''],
    [success, { keyId: 'k', label: 'ci', scopes: 'read,write' }, 'ci may read write'],
    [success, { keyId: 'k' }, 'k'],
    [success, { knowledgeBaseId: 'b', documentId: 'd' }, 'd'],
    [success, { knowledgeBaseId: 'b', count: 12 }, '12 of b'],
    [success, { toolName: 'search_kb', source: 'builtin' }, 'search_kb'],
    [
      success,
      { toolName: 'mcp:notes:add', conversationId: 'c', decision: 'always' },
      'mcp:notes:add (always)',
    ],
    [success, { jobId: 'j', jobKind: 'ingest' }, 'ingest'],
    [success, { scheme: 'bootstrap' }, 'bootstrap'],
    [success, { user_code: 'AB-CD' }, 'AB-CD'],
    [success, { principalId: 'ada' }, 'ada'],
    [success, { reason: 'no_refresh_token' }, 'no_refresh_token'],
    ['denied', { reason: "missing 'write'", requiredScope: 'write', label: 'x' }, 'needs write'],
    ['denied', { reason: 'no credential', label: 'x' }, 'no credential'],
    ['failure', { knowledgeBaseId: 'b' }, 'b'],
  ] as [AuditRecord['outcome'], AuditRecord['details'], string][])(
    'describes the target of a record with outcome %s and details %j as "%s"',
    (outcome, details, words) => {
      expect(auditTarget({ outcome, details })).toBe(words)
    },
  )
})

describe('following the audit trail', () => {
  /** Creates event streams that end in the given ways, and records the cursor of each request. */
  function streams(...ends: (readonly (string | Error)[])[]) {
    const requestedCursors: (string | undefined)[] = []
    const waits: number[] = []
    const found: (string | undefined)[] = []
    const stop = new AbortController()
    async function* open(after: string | undefined) {
      requestedCursors.push(after)
      const end = ends.shift()
      if (!end) return stop.abort()
      for (const step of end) {
        if (step instanceof Error) throw step
        yield { id: step }
      }
    }
    const events = followEvents({
      after: 'first',
      open,
      signal: stop.signal,
      onLost: ms => waits.push(ms),
      onReconnected: () => found.push(requestedCursors.at(-1)),
      pause: async () => {},
    })
    return { requestedCursors, waits, found, stop, events }
  }
  const broken = new Unreachable('the event stream was interrupted', 'Run the command again.')

  test('resumes after the last event, and waits longer after each stream without events', async () => {
    const { requestedCursors, waits, found, events } = streams(
      ['a', 'b', broken],
      [new WbError('draining', 'it ends')],
      [broken],
      [new WbError('rate_limited', 'too often')],
      ['c'],
      ...Array.from({ length: 8 }, () => [broken]),
    )
    const seen: string[] = []
    for await (const { id } of events) seen.push(id)
    expect(seen).toEqual(['a', 'b', 'c'])
    expect(requestedCursors.slice(0, 7)).toEqual(['first', 'b', 'b', 'b', 'b', 'c', 'c'])
    expect(found).toEqual(['b'])
    expect(waits).toEqual([
      500, 1_000, 2_000, 4_000, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ])
  })

  test.each([
    new WbError('unauthorized', 'revoked'),
    new WbError('workspace_not_found', 'gone'),
    new TypeError('a defect'),
  ])('ends with an error that cannot be retried: %s', async error => {
    const { events } = streams(['a', error], ['b'])
    expect(await events.next()).toMatchObject({ value: { id: 'a' } })
    await expect(events.next()).rejects.toBe(error)
  })

  test('ends immediately when interrupted, during a stream and between streams', async () => {
    const within = streams(['a', broken], ['b'])
    await within.events.next()
    within.stop.abort()
    expect(await within.events.next()).toMatchObject({ done: true })
    expect(within.waits).toEqual([])

    const stop = new AbortController()
    const events = followEvents<{ id: string }>({
      after: undefined,
      // biome-ignore lint/correctness/useYield: a stream without events
      async *open() {
        throw broken
      },
      signal: stop.signal,
      onLost: () => stop.abort(),
      onReconnected: () => {},
    })
    expect(await events.next()).toMatchObject({ done: true })
  })
})

/**
 * A data directory whose runtime requires API keys, with a workspace named demo and an admin's key in the
 * environment.
 */
const sandboxWithAdminKey = sandboxFactory(async sandbox => {
  sandbox.keyCost = productionCost
  sandbox.env.WB_CONFIG = join(sandbox.home, 'closed.yaml')
  writeFileSync(sandbox.env.WB_CONFIG, 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n')
  await sandbox.wb(['workspaces', 'create', 'demo', '--as-operator'])
  const { stdout } = await sandbox.wb(['keys', 'create', 'admin', '--role', 'admin', '--as-operator'])
  const secret = stdout.trim()
  sandbox.env.WB_API_KEY = secret
  const viewer = (await sandbox.wb(['keys', 'create', 'ci', '--role', 'viewer'])).stdout.trim()
  return { secret, viewer }
})

/** A server that requires API keys. Commands in its sandbox use the bootstrap token. */
const shared = createSandbox(afterAll)
let server: TestServer
beforeAll(async () => {
  server = await serveWithApiKeys(shared)
})

/** Creates a workspace on that server with an API key. */
async function workspaceWithKey(
  body: ClientRequest<typeof apiKeys.create>['body'],
): Promise<WorkspaceSandbox & { secret: string }> {
  const workspaceSandbox = await addWorkspaceSandbox(shared, server)
  const { workspaceId } = workspaceSandbox
  const { plaintext } = await workspaceSandbox.call(apiKeys.create, { params: { workspaceId }, body })
  return { ...workspaceSandbox, secret: plaintext }
}

/** Sends a request to create a knowledge base with a key that lacks the scope. */
async function requestWithoutScope(workspaceId: string, key: string): Promise<void> {
  await fetch(`${server.url}/api/v1/workspaces/${workspaceId}/knowledge-bases`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"name":"x"}',
  })
}

function rows(stdout: string): string[][] {
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split('\t').slice(1, 5))
}

describe('wb audit list', () => {
  test('S6-16: lists actions and denials with their subjects, newest first, without tokens', async () => {
    const sandbox = await sandboxWithAdminKey()
    const { viewer } = sandbox
    await sandbox.wb(['kb', 'create', 'x'], { env: { WB_API_KEY: viewer } })
    const { status, stdout, stderr } = await sandbox.wb(['audit', 'list'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(rows(stdout)).toEqual([
      ['ci (key)', 'auth.api_denied', 'denied', 'needs write:kb'],
      ['admin (key)', 'api_key.create', 'success', 'ci may read'],
      ['operator (system)', 'api_key.create', 'success', 'admin may read write manage'],
      ['operator (system)', 'workspace.create', 'success', 'demo'],
    ])
    const json = await sandbox.wb(['audit', 'list', '--json', '--limit', '1'])
    expect(JSON.parse(json.stdout)).toMatchObject([
      {
        action: 'auth.api_denied',
        outcome: 'denied',
        subject: { type: 'apiKey', label: 'ci' },
        details: { requiredScope: 'write:kb' },
      },
    ])
    expect(json.stderr).toBe('')
    for (const token of [sandbox.secret, viewer])
      expect(stdout + json.stdout).not.toContain(token.split('_')[3])
  })

  test('filters by action and start time, and reports an empty result', async () => {
    const { wb, workspace } = await addWorkspaceSandbox(shared, server)
    const created = await wb(['audit', 'list', '--action', 'workspace.create', '--since', '1h'])
    const who = 'bootstrap operator (bootstrap token)'
    expect(rows(created.stdout)).toEqual([[who, 'workspace.create', 'success', workspace]])
    expect(await wb(['audit', 'list', '--since', '9999-01-01'])).toEqual({
      status: 0,
      stdout: '',
      stderr: '  no matching records\n',
    })
    expect(await wb(['audit', 'list', '--since', 'noon'])).toMatchObject({ status: 2, stdout: '' })
    expect(await wb(['audit', 'list', '--action', 'kb.crate'])).toMatchObject({ status: 2, stdout: '' })
  })

  test('lists records of the whole runtime for a caller that is not bound to a workspace', async () => {
    const { wb, secret } = await workspaceWithKey({ label: 'admin', role: 'admin' })
    const refused = await wb(['audit', 'list', '--all'], { env: { WB_API_KEY: secret } })
    expect(refused).toMatchObject({ status: 3, stdout: '' })
    expect(refused.stderr).toMatch(
      /\(forbidden, request \w{26}\)\n {4}.*\n {4}add --as-operator to act as the owner of the data directory\n$/,
    )
    const newest = async () => rows((await wb(['audit', 'list', '--all', '--as-operator'])).stdout)[0]
    await expect
      .poll(newest)
      .toEqual([
        'admin (key)',
        'auth.api_denied',
        'denied',
        'this operation requires access to the whole runtime',
      ])
  })

  test('highlights only denials in a terminal, and strips control sequences from labels [security rule 16]', async () => {
    const sandbox = await sandboxWithAdminKey()
    await sandbox.wb(['keys', 'create', 'a\x1b]0;owned\x07b\x1b[2Jc'])
    await sandbox.wb(['kb', 'list'], { env: { WB_API_KEY: withWrongSecret(sandbox.secret) } })
    const { text } = await runInFakeTerminal(sandbox, ['audit', 'list', '--all', '--as-operator'], {
      cols: 160,
    })
    expect(text).toContain('abc may read write')
    expect(text).not.toMatch(/owned|\x1b\]|\x1b\[2J/)
    expect(text).toMatch(/\x1b\[31mdenied\x1b\[39m/)
    expect(text.match(/\x1b\[31m/g)).toHaveLength(1)
    expect(stripSequences(text).split('\n')[0]).toMatch(/ {2}time +who +what +outcome +on +workspace$/)
  })
})

/** Starts a command that runs until it is interrupted. */
function startFollowing({ env, home }: Sandbox, args: string[]) {
  const child = spawn(process.execPath, [join(process.cwd(), 'bin/run.js'), 'audit', 'follow', ...args], {
    env,
    cwd: home,
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const seen = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', text => {
      seen[name] += text
    })
  return {
    seen,
    async says(stream: 'stdout' | 'stderr', words: string) {
      while (!seen[stream].includes(words)) await once(child[stream], 'data')
    },
    async interrupt() {
      child.kill('SIGINT')
      const [status] = (await once(child, 'close')) as [number | null]
      return { status, ...seen }
    },
  }
}

/** Creates a knowledge base in the only workspace of a server. */
async function createBase({ call }: TestServer, name: string): Promise<void> {
  const { items } = await call(workspaces.list, { query: {} })
  await makeBase({ call }, { workspaceId: items[0]!.workspaceId, name })
}

describe('wb audit follow', () => {
  test('prints a line for each event of other processes while running in process, and ends with 0 on Ctrl-C', async () => {
    const sandbox = await sandboxWithAdminKey()
    const followed = startFollowing(sandbox, [])
    await followed.says('stderr', 'following')
    await sandbox.wb(['kb', 'create', 'x'])
    await followed.says('stdout', 'kb.create')
    const { status, stdout, stderr } = await followed.interrupt()
    expect({ status, stderr }).toEqual({ status: 0, stderr: '  following workspace demo; Ctrl-C to stop\n' })
    expect(rows(stdout)).toEqual([['admin (key)', 'kb.create', 'success', 'x']])
  })

  test('prints one JSON object per line, without a gap when the server is killed and restarted', async () => {
    const sandbox = await sandboxWithAdminKey()
    const first = await sandbox.spawnServe()
    const { port } = new URL(first.url)
    const followed = startFollowing(sandbox, ['--json', '--action', 'kb.create'])
    await followed.says('stderr', 'following')
    await createBase(first, 'one')
    await followed.says('stdout', '"one"')
    first.process.kill('SIGKILL')
    await first.ended
    await followed.says('stderr', 'reconnecting in 0.5 s')
    await sandbox.wb(['kb', 'create', 'between'])
    await createBase(await sandbox.serve(['--port', port]), 'after')
    await followed.says('stdout', '"after"')
    const { status, stdout, stderr } = await followed.interrupt()
    expect(status).toBe(0)
    expect(stderr).toMatch(/\n {2}reconnected\n$/)
    const labels = stdout
      .trimEnd()
      .split('\n')
      .map(line => (JSON.parse(line) as AuditRecord).details?.label)
    expect(labels).toEqual(['one', 'between', 'after'])
  })

  test('misses no record if the server stops before the first record arrives', async () => {
    const sandbox = await sandboxWithAdminKey()
    const first = await sandbox.spawnServe()
    await createBase(first, 'before')
    const { port } = new URL(first.url)
    const followed = startFollowing(sandbox, ['--json', '--action', 'kb.create'])
    await followed.says('stderr', 'following')
    first.process.kill('SIGKILL')
    await followed.says('stderr', 'reconnecting in 0.5 s')
    await sandbox.wb(['kb', 'create', 'between'])
    await sandbox.serve(['--port', port])
    await followed.says('stdout', '"between"')
    const { status, stdout } = await followed.interrupt()
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.not.stringContaining('"before"') })
  })

  test('rejects a caller without permission immediately', async () => {
    const { wb, secret } = await workspaceWithKey({ label: 'loader', scopes: ['write:ingest'] })
    const refused = await wb(['audit', 'follow'], { env: { WB_API_KEY: secret } })
    expect(refused).toMatchObject({ status: 3, stdout: '' })
    expect(refused.stderr).toContain("missing required scope 'read:audit'")
  })

  test.each([
    [80, /\n {2}\d\d:\d\d:\d\d {2}ci \(key\) {9} {2}auth\.api_denied {5}denied {3}needs write:kb\n/],
    [40, /\n {2}\d\d:\d\d:\d\d {2}ci \(key\) {2}auth\.api_denied\n {4}denied {2}needs write:kb\n/],
  ])('prints local times in a terminal with %i columns', async (cols, line) => {
    const sandbox = await workspaceWithKey({ label: 'ci', role: 'viewer' })
    let isRefused = false
    const screen = await runInTerminal(sandbox, ['audit', 'follow'], {
      cols,
      answer(text) {
        if (text.includes('following') && !isRefused) {
          isRefused = true
          void requestWithoutScope(sandbox.workspaceId, sandbox.secret)
          return ''
        }
        return text.includes('needs') ? '\x03' : undefined
      },
    })
    expect(screen.status).toBe(0)
    const text = stripSequences(screen.text)
    expect(text).toMatch(line)
    for (const shown of text.split('\n')) expect(shown.length).toBeLessThanOrEqual(cols)
  })
})
