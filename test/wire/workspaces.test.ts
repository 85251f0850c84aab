import { describe, expect, test } from 'vitest'
import { makeKnowledgeBase, makeWorkspace } from './fixtures.ts'
import { past, useServer } from './harness.ts'
import { notUuid, unknownId, workspace } from './shapes.ts'

const wire = useServer()
const all = '/api/v1/workspaces'

describe('creating workspaces', () => {
  test('S4.2-03 S1-06 S2.7-02: POST returns the created workspace, of kind local by default', async () => {
    const plain = workspace({ name: 'plain', kind: 'local' })
    const created = await wire.exchange(`POST ${all}`, { name: 'plain' }, 201, plain)
    await wire.exchange(`GET ${all}/${created.workspaceId}`, undefined, 200, created)
    const workspaceId = '3d1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d73'
    const chosen = { name: 'of a chosen id', workspaceId }
    await wire.exchange(`POST ${all}`, chosen, 201, workspace(chosen))
  })

  test('creates a mock workspace', async () => {
    await wire.exchange(
      `POST ${all}`,
      { kind: 'mock', name: 'sequence one' },
      201,
      workspace({
        name: 'sequence one',
        kind: 'mock',
        credentials: {},
        keyspace: null,
        url: null,
        rlacEnabled: false,
      }),
    )
  })

  test('stores and returns every field that callers can set', async () => {
    const chosen = {
      workspaceId: '0b0e7a52-6f0e-4c0e-9d53-2f3a4b5c6d70',
      name: 'all fields',
      kind: 'astra',
      url: 'https://db.example.com',
      keyspace: 'prod',
      credentials: { token: 'env:ASTRA_TOKEN', other: 'file:/run/secrets/other' },
      rlacEnabled: true,
    }
    const created = await wire.exchange(`POST ${all}`, chosen, 201, workspace(chosen))
    expect(created.createdAt).toBe(created.updatedAt)
    await wire.exchange(`GET ${all}/${chosen.workspaceId}`, undefined, 200, created)
  })

  test.each(['local', 'astra', 'hcd', 'openrag', 'mock'])('creates a workspace of kind %s', async kind => {
    await wire.exchange(`POST ${all}`, { name: `kind ${kind}`, kind }, 201, workspace({ kind }))
  })

  test('accepts a secret reference as URL if its provider is known', async () => {
    const url = 'astra-cli:work:0b0e:endpoint'
    await wire.exchange(`POST ${all}`, { name: 'referenced', url }, 201, workspace({ url }))
    await wire.refused(
      `POST ${all}`,
      { json: { name: 'unreferenced', url: 'no address' } },
      400,
      'validation_error',
      /^url: /,
    )
  })

  test('rejects a plain secret in credentials with its path, without its value', async () => {
    for (const token of [
      'AstraCS:plain-secret',
      'plain-secret',
      'https://secret.example',
      'vault:plain-secret',
      '',
    ]) {
      const body = { name: 'leaky', credentials: { token } }
      const reply = await wire.refused(
        `POST ${all}`,
        { json: body },
        400,
        'validation_error',
        /^credentials\.token: /,
      )
      expect(reply.text).not.toContain('plain-secret')
    }
    expect(await names()).not.toContain('leaky')
  })

  test.each([
    ['no name', {}, /^name: /],
    ['an empty name', { name: '' }, /^name: /],
    ['a null name', { name: null }, /^name: /],
    ['an unknown kind', { name: 'k', kind: 'oracle' }, /^kind: /],
    ['an id that is no UUID', { name: 'k', workspaceId: notUuid }, /^workspaceId: /],
    ['a flag that is text', { name: 'k', rlacEnabled: 'yes' }, /^rlacEnabled: /],
    ['null credentials', { name: 'k', credentials: null }, /^credentials: /],
  ])('S7.3-validation_error: rejects %s', async (_, json, message) => {
    await wire.refused(`POST ${all}`, { json }, 400, 'validation_error', message)
  })

  test('S7.3-conflict: an existing ID is 409', async () => {
    const workspaceId = '1c1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d71'
    await wire.exchange(`POST ${all}`, { name: 'first holder', workspaceId }, 201, workspace({ workspaceId }))
    await wire.refused(`POST ${all}`, { json: { name: 'second holder', workspaceId } }, 409, 'conflict')
    expect((await wire.get(`${all}/${workspaceId}`)).name).toBe('first holder')
    expect(await names()).not.toContain('second holder')
  })

  test('S7.3-workspace_name_conflict S7.3-06: names are unique across kinds and case-sensitive', async () => {
    await wire.exchange(`POST ${all}`, { name: 'Unique' }, 201, workspace({ name: 'Unique' }))
    await wire.refused(
      `POST ${all}`,
      { json: { name: 'Unique', kind: 'mock' } },
      409,
      'workspace_name_conflict',
    )
    await wire.exchange(`POST ${all}`, { name: 'unique' }, 201, workspace({ name: 'unique' }))
    expect((await names()).filter(name => name === 'Unique')).toHaveLength(1)
  })

  test('S7.3-workspace_database_conflict: a database belongs to one workspace; the name is checked first', async () => {
    const bound = { url: 'https://one.example.com', keyspace: 'k' }
    const created = { name: 'bound', kind: 'astra', ...bound }
    await wire.exchange(`POST ${all}`, created, 201, workspace(created))
    await wire.refused(
      `POST ${all}`,
      { json: { name: 'again', ...bound } },
      409,
      'workspace_database_conflict',
    )
    await wire.refused(`POST ${all}`, { json: { name: 'bound', ...bound } }, 409, 'workspace_name_conflict')
    const beside = { name: 'beside', url: bound.url, keyspace: 'other' }
    await wire.exchange(`POST ${all}`, beside, 201, workspace(beside))
    const unbound = { name: 'unbound', keyspace: 'k' }
    await wire.exchange(`POST ${all}`, unbound, 201, workspace(unbound))
    await wire.exchange(`POST ${all}`, { ...unbound, name: 'unbound too' }, 201, workspace({ keyspace: 'k' }))
  })

  test('only one of two concurrent requests with one name succeeds', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => wire.send(`POST ${all}`, { json: { name: 'raced' } })),
    )
    expect(replies.map(reply => reply.status).sort()).toEqual([201, 409, 409, 409, 409, 409, 409, 409])
    expect((await names()).filter(name => name === 'raced')).toHaveLength(1)
  })

  test('S7.3-workspace_database_conflict: PATCH cannot use the database of another workspace', async () => {
    const bind = async (name: string, body: object) =>
      wire.make(all, { name, kind: 'astra', ...body }, 'workspaceId')
    const url = 'https://two.example.com'
    await bind('holder', { url, keyspace: 'a "quoted" \\ keyspace' })
    const other = await bind('other', { url, keyspace: null })
    const conflict = [409, 'workspace_database_conflict'] as const
    const taken = { keyspace: 'a "quoted" \\ keyspace' }
    await wire.refused(`PATCH ${all}/${other}`, { json: taken }, ...conflict)
    await wire.refused(`POST ${all}`, { json: { name: 'third', url } }, ...conflict)
    expect(await wire.get(`${all}/${other}`)).toMatchObject({ url, keyspace: null })
    await wire.send(`PATCH ${all}/${other}`, { json: { url: null } })
    expect(await bind('third', { url })).not.toBe(other)
    await wire.refused(`PATCH ${all}/${other}`, { json: { url } }, ...conflict)
    const text = (await wire.send(`GET ${all}?limit=200`)).text
    expect(text).not.toContain('databaseKey')
  })

  test('S7.3-workspace_database_conflict: only one of two concurrent requests with one database succeeds', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        wire.send(`POST ${all}`, { json: { name: `racing ${n}`, url: 'https://raced.example.com' } }),
      ),
    )
    expect(replies.map(reply => reply.status).sort()).toEqual([201, 409, 409, 409, 409, 409, 409, 409])
  })
})

describe('listing and showing workspaces', () => {
  test('S4.2-01 S1-06: GET lists workspaces, oldest first', async () => {
    const before = await wire.items(`${all}?limit=200`)
    const one = await wire.get(await makeWorkspace(wire, { name: 'listed one' }))
    const two = await wire.get(await makeWorkspace(wire, { name: 'listed two', kind: 'mock' }))
    const items = [...before, one, two]
    await wire.exchange(`GET ${all}?limit=200`, undefined, 200, { items, nextCursor: null })
  })

  test('S7.3-workspace_not_found: an unknown ID is 404', async () => {
    await wire.refused(
      `GET ${all}/${unknownId}`,
      {},
      404,
      'workspace_not_found',
      new RegExp(`^workspace '${unknownId}' not found$`),
    )
    await wire.refused(`GET ${all}/00000000-0000-0000-0000-000000000000`, {}, 404, 'workspace_not_found')
  })

  test.each(['nope', notUuid])('S7.3-13: rejects the ID %s', async id => {
    await wire.refused(`GET ${all}/${id}`, {}, 400, 'validation_error', /^workspaceId: /)
  })
})

describe('changing workspaces', () => {
  test('S4.2-06 S2.7-02: PATCH changes the name and rlacEnabled and leaves other fields unchanged', async () => {
    const path = await makeWorkspace(wire, { kind: 'mock', keyspace: 'kept' })
    const before = await wire.get(path)
    await past(before.updatedAt)
    const patch = { name: 'renamed', rlacEnabled: true }
    const after = await wire.exchange(`PATCH ${path}`, patch, 200, {
      ...before,
      ...patch,
      updatedAt: workspace().updatedAt,
    })
    expect(String(after.updatedAt) > String(before.updatedAt)).toBe(true)
    await wire.exchange(`GET ${path}`, undefined, 200, after)
  })

  test('null clears a field, and a map is replaced completely', async () => {
    const path = await makeWorkspace(wire, {
      url: 'https://cleared.example.com',
      keyspace: 'cleared',
      credentials: { token: 'env:A', more: 'env:B' },
    })
    const patch = { url: null, keyspace: null, credentials: { token: 'env:C' } }
    await wire.exchange(`PATCH ${path}`, patch, 200, workspace(patch))
  })

  test('an empty PATCH changes only updatedAt', async () => {
    const path = await makeWorkspace(wire)
    const before = await wire.get(path)
    await past(before.updatedAt)
    const after = await wire.exchange(`PATCH ${path}`, {}, 200, {
      ...before,
      updatedAt: workspace().updatedAt,
    })
    expect(String(after.updatedAt) > String(before.updatedAt)).toBe(true)
  })

  test.each([
    ['kind', { kind: 'local' }],
    ['workspaceId', { workspaceId: unknownId }],
    ['createdAt', { createdAt: '2026-01-01T00:00:00.000Z' }],
    ['colour', { name: 'never', colour: 'red' }],
  ])('S7.3-13: PATCH rejects %s by name and changes nothing', async (field, json) => {
    const path = await makeWorkspace(wire, { kind: 'mock' })
    const before = await wire.get(path)
    await wire.refused(`PATCH ${path}`, { json }, 400, 'validation_error', new RegExp(field))
    await wire.exchange(`GET ${path}`, undefined, 200, before)
  })

  test('the name cannot be cleared, and a credential has to be a reference', async () => {
    const path = await makeWorkspace(wire)
    await wire.refused(`PATCH ${path}`, { json: { name: null } }, 400, 'validation_error', /^name: /)
    const json = { credentials: { token: 'sk-raw' } }
    await wire.refused(`PATCH ${path}`, { json }, 400, 'validation_error', /^credentials\.token: /)
  })

  test('S7.3-workspace_name_conflict: a rename to an existing name is 409, and to its own name succeeds', async () => {
    await makeWorkspace(wire, { name: 'in use' })
    const path = await makeWorkspace(wire, { name: 'to rename' })
    await wire.refused(`PATCH ${path}`, { json: { name: 'in use' } }, 409, 'workspace_name_conflict')
    await wire.exchange(`PATCH ${path}`, { name: 'to rename' }, 200, workspace({ name: 'to rename' }))
  })

  test('S7.3-workspace_not_found: changing an unknown ID is 404', async () => {
    await wire.refused(`PATCH ${all}/${unknownId}`, { json: { name: 'x' } }, 404, 'workspace_not_found')
  })

  test('a change to the database of another workspace is 409', async () => {
    const bound = { url: 'https://owned.example.com', keyspace: 'k' }
    await makeWorkspace(wire, bound)
    const path = await makeWorkspace(wire, { url: bound.url, keyspace: 'elsewhere' })
    await wire.refused(`PATCH ${path}`, { json: { keyspace: 'k' } }, 409, 'workspace_database_conflict')
    expect((await wire.get(path)).keyspace).toBe('elsewhere')
  })
})

describe('deleting workspaces', () => {
  test('S4.2-09: DELETE returns 204 with an empty body and deletes all resources of the workspace', async () => {
    const path = await makeWorkspace(wire, { name: 'to delete' })
    const kb = await makeKnowledgeBase(wire, path)
    await wire.exchange(`DELETE ${path}`, undefined, 204, undefined)
    await wire.refused(`GET ${path}`, {}, 404, 'workspace_not_found')
    await wire.refused(`GET ${kb}`, {}, 404, 'workspace_not_found')
    await wire.refused(`DELETE ${path}`, {}, 404, 'workspace_not_found')
    await wire.exchange(`POST ${all}`, { name: 'to delete' }, 201, workspace({ name: 'to delete' }))
  })

  test('S7.3-workspace_not_found: deleting an unknown ID is 404', async () => {
    await wire.refused(`DELETE ${all}/${unknownId}`, {}, 404, 'workspace_not_found')
  })

  test('deletes a workspace without a driver and without knowledge bases', async () => {
    const path = await makeWorkspace(wire, { kind: 'openrag' })
    await wire.exchange(`DELETE ${path}`, undefined, 204, undefined)
  })
})

async function names(): Promise<unknown[]> {
  return (await wire.items(`${all}?limit=200`)).map(item => item.name)
}
