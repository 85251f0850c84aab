import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { productionCost } from '../../src/auth/keys/token.ts'
import { auditSubject, auditTarget } from '../../src/cli/fields/audit.ts'
import { followEvents } from '../../src/cli/jobs/follow-events.ts'
import { Unreachable } from '../../src/client/unreachable.ts'
import type { AuditRecord } from '../../src/contract/audit-record.ts'
import { WbError } from '../../src/contract/errors.ts'
import { apiKeys } from '../../src/contract/keys.ts'
import type { ClientRequest } from '../../src/contract/route.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import { makeBase } from '../harness/place.ts'
import { withWrongSecret } from '../harness/wrong-secret.ts'
import { inFakeTerminal, inTerminal, withoutSequences } from './terminal.ts'
import { type Place, place, placesLike, type Room, roomAt, type Served, serveClosed } from './wb.ts'

const success = 'success' as const

describe('a record in words', () => {
  test.each([
    [{ type: 'apiKey', id: 'i', label: 'ci' }, 'ci (key)'],
    [{ type: 'oidc', id: 'i', label: 'ada@example' }, 'ada@example (signed in)'],
    [{ type: 'oidc', id: 'i', label: null }, 'i (signed in)'],
    [{ type: 'bootstrap', id: null, label: null }, 'bootstrap token'],
    [{ type: 'anonymous', id: null, label: null }, 'anonymous'],
    [{ type: 'system', id: 'host-1', label: 'operator' }, 'operator (system)'],
    [null, ''],
  ] as [AuditRecord['subject'], string][])('who %j is: %s', (subject, words) => {
    expect(auditSubject({ subject })).toBe(words)
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
    'on what %s %j was: %s',
    (outcome, details, words) => {
      expect(auditTarget({ outcome, details })).toBe(words)
    },
  )
})

describe('following', () => {
  /** Connections that end as they are told, and what was asked of each. */
  function streams(...ends: (readonly (string | Error)[])[]) {
    const asked: (string | undefined)[] = []
    const waits: number[] = []
    const found: (string | undefined)[] = []
    const stop = new AbortController()
    async function* open(after: string | undefined) {
      asked.push(after)
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
      onReconnected: () => found.push(asked.at(-1)),
      pause: async () => {},
    })
    return { asked, waits, found, stop, events }
  }
  const broken = new Unreachable('the event stream was interrupted', 'Run the command again.')

  test('goes on after the last event, later and later while none comes', async () => {
    const { asked, waits, found, events } = streams(
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
    expect(asked.slice(0, 7)).toEqual(['first', 'b', 'b', 'b', 'b', 'c', 'c'])
    expect(found).toEqual(['b'])
    expect(waits).toEqual([
      500, 1_000, 2_000, 4_000, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ])
  })

  test.each([
    new WbError('unauthorized', 'revoked'),
    new WbError('workspace_not_found', 'gone'),
    new TypeError('a defect'),
  ])('ends with what will not pass: %s', async error => {
    const { events } = streams(['a', error], ['b'])
    expect(await events.next()).toMatchObject({ value: { id: 'a' } })
    await expect(events.next()).rejects.toBe(error)
  })

  test('ends at once where it is interrupted, in a stream and between two', async () => {
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

/** A data directory whose runtime asks for keys, with a workspace named demo and an admin's key in the environment. */
const asking = placesLike(async here => {
  here.keyCost = productionCost
  here.env.WB_CONFIG = join(here.home, 'closed.yaml')
  writeFileSync(here.env.WB_CONFIG, 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n')
  await here.wb(['workspaces', 'create', 'demo', '--as-operator'])
  const { stdout } = await here.wb(['keys', 'create', 'admin', '--role', 'admin', '--as-operator'])
  const secret = stdout.trim()
  here.env.WB_API_KEY = secret
  const viewer = (await here.wb(['keys', 'create', 'ci', '--role', 'viewer'])).stdout.trim()
  return { secret, viewer }
})

/** A server that asks for keys, beside which commands hold the bootstrap token. */
const shared = place(afterAll)
let server: Served
beforeAll(async () => {
  server = await serveClosed(shared)
})

/** A workspace beside that server, and a key of it. */
async function roomWithKey(
  body: ClientRequest<typeof apiKeys.create>['body'],
): Promise<Room & { secret: string }> {
  const room = await roomAt(shared, server)
  const { workspaceId } = room
  const { plaintext } = await room.call(apiKeys.create, { params: { workspaceId }, body })
  return { ...room, secret: plaintext }
}

/** Ask for a knowledge base with a key that may make none. */
async function refusedTo(workspaceId: string, key: string): Promise<void> {
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
  test('S6-16: who did what and who was refused, the newest first, and no token in it', async () => {
    const here = await asking()
    const { viewer } = here
    await here.wb(['kb', 'create', 'x'], { env: { WB_API_KEY: viewer } })
    const { status, stdout, stderr } = await here.wb(['audit', 'list'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(rows(stdout)).toEqual([
      ['ci (key)', 'auth.api_denied', 'denied', 'needs write:kb'],
      ['admin (key)', 'api_key.create', 'success', 'ci may read'],
      ['operator (system)', 'api_key.create', 'success', 'admin may read write manage'],
      ['operator (system)', 'workspace.create', 'success', 'demo'],
    ])
    const json = await here.wb(['audit', 'list', '--json', '--limit', '1'])
    expect(JSON.parse(json.stdout)).toMatchObject([
      {
        action: 'auth.api_denied',
        outcome: 'denied',
        subject: { type: 'apiKey', label: 'ci' },
        details: { requiredScope: 'write:kb' },
      },
    ])
    expect(json.stderr).toBe('')
    for (const token of [here.secret, viewer]) expect(stdout + json.stdout).not.toContain(token.split('_')[3])
  })

  test('by action and from a moment on; nothing is said so', async () => {
    const { wb, workspace } = await roomAt(shared, server)
    const made = await wb(['audit', 'list', '--action', 'workspace.create', '--since', '1h'])
    const who = 'bootstrap operator (bootstrap token)'
    expect(rows(made.stdout)).toEqual([[who, 'workspace.create', 'success', workspace]])
    expect(await wb(['audit', 'list', '--since', '9999-01-01'])).toEqual({
      status: 0,
      stdout: '',
      stderr: '  no matching records\n',
    })
    expect(await wb(['audit', 'list', '--since', 'noon'])).toMatchObject({ status: 2, stdout: '' })
    expect(await wb(['audit', 'list', '--action', 'kb.crate'])).toMatchObject({ status: 2, stdout: '' })
  })

  test('of the whole runtime for who is not bound to a workspace', async () => {
    const { wb, secret } = await roomWithKey({ label: 'admin', role: 'admin' })
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

  test('in a terminal only what was refused stands out, and what was planted does nothing [security rule 16]', async () => {
    const here = await asking()
    await here.wb(['keys', 'create', 'a\x1b]0;owned\x07b\x1b[2Jc'])
    await here.wb(['kb', 'list'], { env: { WB_API_KEY: withWrongSecret(here.secret) } })
    const { text } = await inFakeTerminal(here, ['audit', 'list', '--all', '--as-operator'], { cols: 160 })
    expect(text).toContain('abc may read write')
    expect(text).not.toMatch(/owned|\x1b\]|\x1b\[2J/)
    expect(text).toMatch(/\x1b\[31mdenied\x1b\[39m/)
    expect(text.match(/\x1b\[31m/g)).toHaveLength(1)
    expect(withoutSequences(text).split('\n')[0]).toMatch(/ {2}time +who +what +outcome +on +workspace$/)
  })
})

/** A command that goes on until it is told to end. */
function following({ env, home }: Place, args: string[]) {
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

/** Make a knowledge base in the only workspace of a server. */
async function made({ call }: Served, name: string): Promise<void> {
  const { items } = await call(workspaces.list, { query: {} })
  await makeBase({ call }, { workspaceId: items[0]!.workspaceId, name })
}

describe('wb audit follow', () => {
  test('in process: what other processes do, a line each; Ctrl-C to stop with 0', async () => {
    const here = await asking()
    const followed = following(here, [])
    await followed.says('stderr', 'following')
    await here.wb(['kb', 'create', 'x'])
    await followed.says('stdout', 'kb.create')
    const { status, stdout, stderr } = await followed.interrupt()
    expect({ status, stderr }).toEqual({ status: 0, stderr: '  following workspace demo; Ctrl-C to stop\n' })
    expect(rows(stdout)).toEqual([['admin (key)', 'kb.create', 'success', 'x']])
  })

  test('one JSON object per line, across a server that is killed and comes back, without a gap', async () => {
    const here = await asking()
    const first = await here.spawnServe()
    const { port } = new URL(first.url)
    const followed = following(here, ['--json', '--action', 'kb.create'])
    await followed.says('stderr', 'following')
    await made(first, 'one')
    await followed.says('stdout', '"one"')
    first.process.kill('SIGKILL')
    await first.ended
    await followed.says('stderr', 'reconnecting in 0.5 s')
    await here.wb(['kb', 'create', 'between'])
    await made(await here.serve(['--port', port]), 'after')
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

  test('nothing is missed where the server goes away before the first record came', async () => {
    const here = await asking()
    const first = await here.spawnServe()
    await made(first, 'before')
    const { port } = new URL(first.url)
    const followed = following(here, ['--json', '--action', 'kb.create'])
    await followed.says('stderr', 'following')
    first.process.kill('SIGKILL')
    await followed.says('stderr', 'reconnecting in 0.5 s')
    await here.wb(['kb', 'create', 'between'])
    await here.serve(['--port', port])
    await followed.says('stdout', '"between"')
    const { status, stdout } = await followed.interrupt()
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.not.stringContaining('"before"') })
  })

  test('a caller who may not is refused at once', async () => {
    const { wb, secret } = await roomWithKey({ label: 'loader', scopes: ['write:ingest'] })
    const refused = await wb(['audit', 'follow'], { env: { WB_API_KEY: secret } })
    expect(refused).toMatchObject({ status: 3, stdout: '' })
    expect(refused.stderr).toContain("missing required scope 'read:audit'")
  })

  test.each([
    [80, /\n {2}\d\d:\d\d:\d\d {2}ci \(key\) {9} {2}auth\.api_denied {5}denied {3}needs write:kb\n/],
    [40, /\n {2}\d\d:\d\d:\d\d {2}ci \(key\) {2}auth\.api_denied\n {4}denied {2}needs write:kb\n/],
  ])('in a terminal of %i columns, with the time of the clock', async (cols, line) => {
    const here = await roomWithKey({ label: 'ci', role: 'viewer' })
    let isRefused = false
    const screen = await inTerminal(here, ['audit', 'follow'], {
      cols,
      answer(text) {
        if (text.includes('following') && !isRefused) {
          isRefused = true
          void refusedTo(here.workspaceId, here.secret)
          return ''
        }
        return text.includes('needs') ? '\x03' : undefined
      },
    })
    expect(screen.status).toBe(0)
    const text = withoutSequences(screen.text)
    expect(text).toMatch(line)
    for (const shown of text.split('\n')) expect(shown.length).toBeLessThanOrEqual(cols)
  })
})
