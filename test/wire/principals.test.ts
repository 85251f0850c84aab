import { describe, expect, test } from 'vitest'
import { exactly, isoMs, uuid } from './exactly.ts'
import { makeWorkspace } from './fixtures.ts'
import { past, type Row, useServer } from './harness.ts'
import { unknownId } from './shapes.ts'

const wire = useServer()

function principal(known: Row = {}): Row {
  return {
    workspaceId: uuid,
    principalId: 'alice',
    label: null,
    attributes: {},
    role: 'viewer',
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

async function place() {
  const workspace = await makeWorkspace(wire)
  const workspaceId = workspace.slice(workspace.lastIndexOf('/') + 1)
  const shape = (known: Row = {}) => principal({ workspaceId, ...known })
  return { workspace, workspaceId, principals: `${workspace}/principals`, shape }
}

describe('principals', () => {
  test('S1-08 S2.7-03 S4.2-19: are created, shown, changed and deleted, with the documented fields', async () => {
    const { principals, shape } = await place()
    const bare = await wire.exchange(`POST ${principals}`, { principalId: 'alice' }, 201, shape())
    await wire.exchange(`GET ${principals}/alice`, undefined, 200, bare)
    const chosen = {
      principalId: 'bob.b@example.com',
      label: 'Bob',
      attributes: { team: 'blue', admin: 'true' },
      role: 'editor',
    }
    const bob = await wire.exchange(`POST ${principals}`, chosen, 201, shape(chosen))
    expect(bob.createdAt).toBe(bob.updatedAt)
    await past(bob.updatedAt)
    const changed = { ...bob, label: null, attributes: { team: 'red' }, role: 'admin', updatedAt: isoMs }
    const after = await wire.exchange(
      `PATCH ${principals}/bob.b%40example.com`,
      { label: null, attributes: { team: 'red' }, role: 'admin' },
      200,
      changed,
    )
    expect(String(after.updatedAt) > String(bob.updatedAt)).toBe(true)
    await wire.exchange(`PATCH ${principals}/alice`, {}, 200, { ...bare, updatedAt: isoMs })
    await wire.exchange(`DELETE ${principals}/alice`, undefined, 204, undefined)
    await wire.exchange(`GET ${principals}`, undefined, 200, { items: [after], nextCursor: null })
  })

  test('are listed by ID, in pages', async () => {
    const { principals } = await place()
    for (const principalId of ['zoe', 'Zoe', 'anna', 'b+c', '1'])
      await wire.make(principals, { principalId }, 'principalId')
    const first = await wire.get(`${principals}?limit=3`)
    const ids = (items: unknown) => (items as Row[]).map(({ principalId }) => principalId)
    expect(ids(first.items)).toEqual(['1', 'Zoe', 'anna'])
    const second = await wire.get(`${principals}?limit=3&cursor=${first.nextCursor}`)
    expect(ids(second.items)).toEqual(['b+c', 'zoe'])
    expect(second.nextCursor).toBeNull()
    await wire.refused(`GET ${principals}?cursor=x`, {}, 400, 'invalid_cursor')
  })

  test('S7.3-conflict: have IDs that are unique within their workspace only', async () => {
    const { principals, workspaceId } = await place()
    await wire.make(principals, { principalId: 'alice', label: 'first' }, 'principalId')
    const message = new RegExp(`^principal 'alice' already exists in workspace '${workspaceId}'$`)
    const again = { json: { principalId: 'alice' } }
    await wire.refused(`POST ${principals}`, again, 409, 'conflict', message)
    expect((await wire.get(`${principals}/alice`)).label).toBe('first')
    await wire.make((await place()).principals, { principalId: 'alice' }, 'principalId')
  })

  test('S2.7-03 S7.3-principal_not_found: return 404 for an unknown ID when shown, changed or deleted', async () => {
    const { principals } = await place()
    const message = /^principal 'nobody' not found$/
    await wire.refused(`GET ${principals}/nobody`, {}, 404, 'principal_not_found', message)
    await wire.refused(`PATCH ${principals}/nobody`, { json: {} }, 404, 'principal_not_found', message)
    await wire.refused(`DELETE ${principals}/nobody`, {}, 404, 'principal_not_found', message)
  })

  test('S7.3-workspace_not_found: return 404 in an unknown workspace', async () => {
    const principals = `/api/v1/workspaces/${unknownId}/principals`
    for (const [line, sent] of [
      [`GET ${principals}`, {}],
      [`POST ${principals}`, { json: { principalId: 'a' } }],
      [`GET ${principals}/a`, {}],
      [`PATCH ${principals}/a`, { json: {} }],
      [`DELETE ${principals}/a`, {}],
    ] as const)
      await wire.refused(line, sent, 404, 'workspace_not_found')
  })

  test.each([
    [{}, /^principalId: /],
    [{ principalId: 'a b' }, /^principalId: /],
    [{ principalId: 'x'.repeat(129) }, /^principalId: /],
    [{ principalId: 'a', role: 'owner' }, /^role: /],
    [{ principalId: 'a', attributes: { team: 5 } }, /^attributes\.team: /],
    [{ principalId: 'a', label: 'x'.repeat(201) }, /^label: /],
    [{ principalId: 'a', scopes: ['read'] }, /scopes/],
  ])('S7.3-validation_error: reject %j', async (json, message) => {
    const { principals } = await place()
    await wire.refused(`POST ${principals}`, { json }, 400, 'validation_error', message)
    expect(await wire.items(principals)).toEqual([])
  })

  test('S7.3-validation_error: cannot change their ID', async () => {
    const { principals } = await place()
    const alice = await wire.make(principals, { principalId: 'alice' }, 'principalId')
    const json = { principalId: 'bob' }
    await wire.refused(`PATCH ${principals}/${alice}`, { json }, 400, 'validation_error', /principalId/)
    exactly(
      (await wire.items(principals)).map(({ principalId }) => principalId),
      ['alice'],
    )
  })
})
