import { describe, expect, onTestFinished, test } from 'vitest'
import type { AuthContext } from '../../src/access/subject.ts'
import type { PlaygroundCommand } from '../../src/contract/playground.ts'
import type { Workspace } from '../../src/contract/workspaces.ts'
import type { RawCommands } from '../../src/storage/content.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { executePlaygroundCommand } from '../../src/workspaces/execute-playground-command.ts'
import { parseCommandTarget } from '../../src/workspaces/parse-command-target.ts'
import { dataApi, remoteStore } from '../fakes/data-api.ts'
import { uniqueName } from '../harness/resources.ts'
import { open, TestClock, type TestRuntime, type TestRuntimeOptions } from '../harness/runtime.ts'
import { anyNumber, exactly } from '../wire/exactly.ts'
import { failure, unknownId } from '../wire/shapes.ts'

const all = '/api/v1/workspaces'
const bound = { url: 'https://db.example.com', credentials: { token: 'env:TOKEN' } }

async function workspace(wb: TestRuntime, body: object = {}): Promise<string> {
  const made = { name: uniqueName('remote'), kind: 'astra', keyspace: 'ks', ...bound, ...body }
  return `${all}/${(await wb.sendAsOperator(`POST ${all}`, made)).body.workspaceId}`
}

/** A runtime with a driver for a database that accepts commands. */
async function remote(options: TestRuntimeOptions = {}) {
  const [api, store] = [await dataApi(), await openEmbeddedStore({ path: ':memory:' })]
  const wb = await open({ ...options, drivers: { astra: remoteStore(api, store.content) } })
  const place = await workspace(wb)
  const execute = (body: object, at = place, headers = {}) =>
    wb.send(`POST ${at}/playground/execute`, body, headers)
  return { wb, api, place, execute, close: store.close }
}

const find = { commandName: 'find', collection: 'books', command: { find: { filter: {} } } }

describe('a command', () => {
  test('runs on the database of the workspace and returns its response unchanged', async () => {
    const { api, execute } = await remote()
    api.response.body = { data: { documents: [{ _id: '1' }], nextPageState: null } }
    const answer = await execute(find)
    expect(answer.status, answer.text).toBe(200)
    exactly(answer.body, {
      ok: true,
      commandName: 'find',
      targetKind: 'collection',
      targetName: 'books',
      collection: 'books',
      table: null,
      keyspace: 'ks',
      command: find.command,
      result: api.response.body,
      elapsedMs: anyNumber,
    })
    expect(api.requests).toEqual([{ path: '/ks/books', command: find.command }])
    const onTable = await execute({ ...find, collection: null, table: 'shelf' })
    expect(onTable.body).toMatchObject({
      targetKind: 'table',
      targetName: 'shelf',
      collection: null,
      table: 'shelf',
    })
    const onKeyspace = await execute({ commandName: 'listTables', command: { listTables: {} } })
    expect(onKeyspace.body).toMatchObject({
      targetKind: 'table',
      targetName: null,
      collection: null,
      table: null,
    })
    expect(api.requests.map(({ path }) => path)).toEqual(['/ks/books', '/ks/shelf', '/ks'])
  })

  test('S7.3-data_api_error S7.3-data_api_unavailable: hides the error message of the database', async () => {
    const { api, execute, wb } = await remote()
    for (const status of [200, 401, 500]) {
      api.response = { status, body: { errors: [{ message: 'token AstraCS:secret' }] } }
      const refused = await execute(find)
      expect(refused.status).toBe(502)
      exactly(refused.body, failure('data_api_error'))
      expect(refused.text).not.toContain('secret')
    }
    await api.stop()
    const silent = await execute(find)
    expect(silent.status).toBe(503)
    exactly(silent.body, failure('data_api_unavailable'))
    expect(silent.text).not.toContain('127.0.0.1')
    expect(wb.loggedProblems.length).toBeGreaterThan(0)
  })

  test('is aborted if its caller disconnects', async () => {
    const leaving = new AbortController()
    let seen: AbortSignal | undefined
    const { content, close } = await openEmbeddedStore({ path: ':memory:' })
    onTestFinished(close)
    const commands: RawCommands = {
      run: async (_place, _command, signal) => {
        seen = signal
        return {}
      },
    }
    const astra = { ...content, commands }
    const auth = { subject: null } as unknown as AuthContext
    const place = { workspaceId: 'w', kind: 'astra', keyspace: 'ks', ...bound } as unknown as Workspace
    const caller = { auth, signal: leaving.signal }
    await executePlaygroundCommand(
      { stores: { astra }, clock: new TestClock() },
      place,
      find as PlaygroundCommand,
      caller,
    )
    leaving.abort()
    expect(seen?.aborted).toBe(true)
  })

  test('with row-level access requires a caller that it does not restrict', async () => {
    const { wb, api, execute } = await remote({
      config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } },
    })
    const guarded = await workspace(wb, { rlacEnabled: true, keyspace: 'guarded' })
    const plain = await workspace(wb, { keyspace: 'plain' })
    const as = async (place: string, scopes: string[]) => {
      const minted = await wb.sendAsOperator(`POST ${place}/api-keys`, { label: 'key', scopes })
      const sent = await execute(find, place, { authorization: `Bearer ${minted.body.plaintext}` })
      return [sent.status, (sent.body.error as { message: string } | undefined)?.message ?? 'done']
    }
    expect(await as(plain, ['write'])).toEqual([200, 'done'])
    expect(await as(guarded, ['write'])).toEqual([403, expect.stringContaining("'manage:access'")])
    expect(await as(guarded, ['write', 'manage:access'])).toEqual([200, 'done'])
    expect(api.requests).toHaveLength(2)
  })
})

describe('errors of a command, in order of the checks', () => {
  const wrong = { ...find, command: { findOne: {} } }

  test('S7.3-workspace_not_found: the workspace does not exist', async () => {
    const { execute } = await remote()
    const answer = await execute(wrong, `${all}/${unknownId}`)
    expect(answer.status).toBe(404)
    exactly(answer.body, failure('workspace_not_found'))
  })

  test.each(['local', 'mock', 'hcd', 'openrag'])(
    'S7.3-unsupported_workspace_kind: a workspace of kind %s does not accept commands',
    async kind => {
      const { wb, execute } = await remote()
      const answer = await execute(wrong, await workspace(wb, { kind, url: null }))
      expect(answer.status).toBe(422)
      exactly(answer.body, failure('unsupported_workspace_kind'))
    },
  )

  test('S7.3-invalid_playground_command: the command is invalid', async () => {
    const { wb, api, execute } = await remote()
    const answer = await execute(wrong, await workspace(wb, { url: null, credentials: {} }))
    expect(answer.status).toBe(400)
    exactly(answer.body, failure('invalid_playground_command'))
    expect(api.requests).toEqual([])
  })

  test.each(['astra', 'mock'])(
    'the command is unknown, also in a workspace of kind %s [S7.3-invalid_playground_command]',
    async kind => {
      const { wb, execute } = await remote()
      const place = await workspace(wb, { kind, url: null, credentials: {} })
      for (const name of ['shutdown', 'constructor']) {
        const answer = await execute({ commandName: name, command: { [name]: {} } }, place)
        expect(answer.status).toBe(400)
        exactly(answer.body, failure('invalid_playground_command'))
        expect(answer.text).toContain('commandName: must be one of findCollections, ')
      }
    },
  )

  test.each([
    ['url', { url: null, keyspace: 'a' }],
    ['keyspace', { keyspace: null }],
    ['credentials.token', { credentials: { other: 'env:TOKEN' }, keyspace: 'b' }],
  ])('S7.3-workspace_misconfigured: the workspace has no %s', async (field, body) => {
    const { wb, execute } = await remote()
    const answer = await execute(find, await workspace(wb, body))
    expect(answer.status).toBe(422)
    exactly(answer.body, failure('workspace_misconfigured'))
    expect(answer.text).toContain(`needs ${field}`)
  })

  test('S7.3-driver_unavailable: the workspace has no driver, or its store does not accept commands', async () => {
    const wb = await open()
    const { content, close } = await openEmbeddedStore({ path: ':memory:' })
    const mute = await open({ drivers: { astra: content } })
    for (const runtime of [wb, mute]) {
      const place = await workspace(runtime)
      const answer = await runtime.send(`POST ${place}/playground/execute`, find)
      expect(answer.status).toBe(503)
      exactly(answer.body, failure('driver_unavailable'))
    }
    await close()
  })
})

describe('data-plane calls of a workspace with a remote database', () => {
  test('S7.3-workspace_misconfigured: are rejected without url, keyspace or token before a missing driver is reported', async () => {
    const wb = await open()
    const cases = [
      ['astra', { url: null, credentials: {} }, 422, 'workspace_misconfigured'],
      ['hcd', { credentials: {} }, 422, 'workspace_misconfigured'],
      ['astra', { url: 'https://one.example.com', keyspace: null }, 422, 'workspace_misconfigured'],
      ['hcd', { url: 'https://two.example.com', keyspace: '' }, 422, 'workspace_misconfigured'],
      ['astra', { keyspace: 'other' }, 503, 'driver_unavailable'],
      ['openrag', { url: null, credentials: {} }, 503, 'driver_unavailable'],
    ] as const
    for (const [kind, body, status, code] of cases) {
      const place = await workspace(wb, { kind, keyspace: uniqueName('k'), ...body })
      const answer = await wb.send(`POST ${place}/knowledge-bases`, { name: 'base' })
      expect(answer.status, answer.text).toBe(status)
      exactly(answer.body, failure(code))
    }
  })
})

describe('the target of a command', () => {
  const target = (body: Partial<PlaygroundCommand> & Pick<PlaygroundCommand, 'commandName'>) =>
    parseCommandTarget({ command: { [body.commandName]: {} }, ...body })

  test.each([
    [{ commandName: 'findCollections' }, { kind: 'collection', name: null }],
    [
      { commandName: 'createCollection', collection: null, table: null },
      { kind: 'collection', name: null },
    ],
    [{ commandName: 'dropTable' }, { kind: 'table', name: null }],
    [
      { commandName: 'listTables', targetKind: 'table' },
      { kind: 'table', name: null },
    ],
    [
      { commandName: 'listIndexes', table: 't' },
      { kind: 'table', name: 't' },
    ],
    [
      { commandName: 'countDocuments', collection: 'c' },
      { kind: 'collection', name: 'c' },
    ],
    [
      { commandName: 'find', collection: 'c' },
      { kind: 'collection', name: 'c' },
    ],
    [
      { commandName: 'find', table: 't' },
      { kind: 'table', name: 't' },
    ],
    [
      { commandName: 'find', targetKind: 'table', table: 't', collection: null },
      { kind: 'table', name: 't' },
    ],
  ] as const)('%j runs on %j', (body, expected) => {
    expect(target(body)).toEqual({ commandName: body.commandName, ...expected })
  })

  test.each([
    [{ commandName: 'find', collection: 'c', command: {} }, /^command: must have one key, 'find'$/],
    [{ commandName: 'find', collection: 'c', command: { findOne: {} } }, /^command: /],
    [{ commandName: 'find', collection: 'c', command: { find: {}, options: {} } }, /^command: /],
    [{ commandName: 'find' }, /^collection: is missing$/],
    [{ commandName: 'find', targetKind: 'table' }, /^table: is missing$/],
    [{ commandName: 'find', targetKind: 'table', collection: 'c' }, /^collection: the target is a table$/],
    [{ commandName: 'find', targetKind: 'collection', table: 't' }, /^table: the target is a collection$/],
    [{ commandName: 'find', collection: 'c', table: 't' }, /^collection: the target is a table$/],
    [
      { commandName: 'findCollections', collection: 'c' },
      /^'findCollections' does not take a collection or a table$/,
    ],
    [{ commandName: 'createTable', table: 't' }, /^'createTable' does not take/],
    [{ commandName: 'dropTable', targetKind: 'collection' }, /^targetKind: 'dropTable' operates on tables$/],
    [{ commandName: 'createIndex', collection: 'c', targetKind: 'collection' }, /operates on a table$/],
    [{ commandName: 'createIndex' }, /^table: is missing$/],
    [{ commandName: 'updateMany', table: 't' }, /^'updateMany' operates on a collection$/],
    [{ commandName: 'countDocuments' }, /^collection: is missing$/],
  ] as const)('S7.3-invalid_playground_command: %j has no target', (body, message) => {
    expect(() => target(body)).toThrow(
      expect.objectContaining({
        code: 'invalid_playground_command',
        message: expect.stringMatching(message),
      }),
    )
  })
})
