import { describe, expect, test } from 'vitest'
import { scopeToWorkspace } from '../../src/access/scope-to-workspace.ts'
import { verifiedContext } from '../../src/access/subject.ts'
import type { Role } from '../../src/contract/scopes.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { audience, startProvider } from '../harness/identity-provider.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

const all = '/api/v1/workspaces'
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

async function createWorkspace(wb: TestRuntime, name = 'one'): Promise<string> {
  return `${all}/${(await wb.sendAsOperator(`POST ${all}`, { name })).body.workspaceId}`
}

describe('role of a principal', () => {
  const groups = { 'wb-viewers': 'viewer', 'wb-editors': 'editor', 'wb-admins': 'admin' }

  async function openWithOidc(roleMapping: object | null, mode = 'oidc') {
    const idp = await startProvider()
    const oidc = { issuer: idp.issuer, audience, ...(roleMapping && { roleMapping }) }
    const wb = await open({
      server: true,
      config: { auth: { mode, anonymousPolicy: 'reject', oidc } },
    })
    const [here, elsewhere] = [await createWorkspace(wb, 'here'), await createWorkspace(wb, 'elsewhere')]
    const setRole = (role: Role) =>
      wb.sendAsOperator(`POST ${here}/principals`, { principalId: 'alice', role })
    /** Returns the statuses of a read, a write and a manage request by alice, whose token has the given claim. */
    const tier = async (place: string, claim: string) => {
      const headers = bearer(await idp.sign({ groups: claim }))
      const responses = [
        wb.send(`GET ${place}`, undefined, headers),
        wb.send(`PATCH ${place}`, {}, headers),
        wb.send(`GET ${place}/principals`, undefined, headers),
      ]
      return (await Promise.all(responses)).map(({ status }) => status)
    }
    return { wb, here, elsewhere, setRole, tier }
  }
  const mapped = { claim: 'groups', values: groups, default: 'viewer' }
  const tiers = { viewer: [200, 403, 403], editor: [200, 200, 403], admin: [200, 200, 200] }

  test('S5.6-02: replaces the role of the token in its workspace at once, whether higher or lower', async () => {
    const { wb, here, elsewhere, setRole, tier } = await openWithOidc(mapped)
    expect(await tier(here, 'wb-admins')).toEqual(tiers.admin)
    expect((await setRole('viewer')).status).toBe(201)
    expect(await tier(here, 'wb-admins')).toEqual(tiers.viewer)
    expect(await tier(elsewhere, 'wb-admins')).toEqual(tiers.admin)
    const alice = `${here}/principals/alice`
    await wb.sendAsOperator(`PATCH ${alice}`, { role: 'editor' })
    for (const claim of ['wb-viewers', 'wb-admins']) expect(await tier(here, claim)).toEqual(tiers.editor)
    await wb.sendAsOperator(`PATCH ${alice}`, { role: 'admin' })
    expect(await tier(here, 'wb-viewers')).toEqual(tiers.admin)
    expect(await tier(elsewhere, 'wb-viewers')).toEqual(tiers.viewer)
    await wb.sendAsOperator(`DELETE ${alice}`)
    expect(await tier(here, 'wb-viewers')).toEqual(tiers.viewer)
  })

  test('S4.2-19: cannot be removed by a caller who holds less than the role that the token would restore [security rule 7]', async () => {
    const { wb, here, setRole, tier } = await openWithOidc(mapped, 'any')
    const keyOf = async (scopes: string[]) => {
      const made = await wb.sendAsOperator(`POST ${here}/api-keys`, { label: 'key', scopes })
      return bearer(String(made.body.plaintext))
    }
    const [some, all] = [await keyOf(['manage:access', 'write']), await keyOf(['manage'])]
    const alice = `${here}/principals/alice`
    for (const role of ['viewer', 'editor'] as const) {
      await setRole(role)
      const refused = await wb.send(`DELETE ${alice}`, undefined, some)
      expect([refused.status, refused.body.error]).toEqual([
        403,
        expect.objectContaining({
          code: 'forbidden',
          message: expect.stringContaining("'manage'"),
          hint: expect.stringContaining('viewer'),
        }),
      ])
      expect(await tier(here, 'wb-admins')).toEqual(tiers[role])
      expect((await wb.send(`DELETE ${alice}`, undefined, all)).status).toBe(204)
      expect(await tier(here, 'wb-admins')).toEqual(tiers.admin)
    }
    await setRole('admin')
    expect((await wb.send(`DELETE ${alice}`, undefined, some)).status).toBe(204)
    expect((await wb.send(`DELETE ${alice}`, undefined, some)).status).toBe(404)
    expect(await tier(here, 'wb-viewers')).toEqual(tiers.viewer)
  })

  test('fails to be deleted with a conflict if it is changed at the same time [security rule 7]', async () => {
    const rows = (store: RowStore): RowStore => ({
      ...store,
      async atomic(writes) {
        const isDeletion = writes.some(({ op, table }) => op === 'delete' && table.name === 'principals')
        if (isDeletion) await changed()
        return store.atomic(writes)
      },
    })
    const wb = await open({ rows })
    const alice = `${await createWorkspace(wb)}/principals/alice`
    await wb.sendAsOperator(`POST ${alice.replace('/alice', '')}`, { principalId: 'alice', role: 'admin' })
    const changed = () => wb.sendAsOperator(`PATCH ${alice}`, { role: 'viewer' })
    const refused = await wb.sendAsOperator(`DELETE ${alice}`)
    expect([refused.status, refused.body.error]).toMatchObject([409, { code: 'conflict' }])
    expect((await wb.sendAsOperator(`GET ${alice}`)).body.role).toBe('viewer')
  })

  test('S5.6-02: has no effect without a role mapping', async () => {
    const { here, setRole, tier } = await openWithOidc(null)
    expect((await setRole('viewer')).status).toBe(201)
    expect(await tier(here, 'wb-viewers')).toEqual(tiers.admin)
  })

  test('S5.6-02: is looked up once per request, and only for OIDC subjects', async () => {
    const subject = {
      id: 'alice',
      label: null,
      workspaceScopes: null,
      scopes: null,
      principalId: null,
      keyLifetimeMaxMs: null,
    }
    const lookups: string[][] = []
    const roles = async (...path: string[]) => {
      lookups.push(path)
      return 'viewer' as const
    }
    for (const type of ['apiKey', 'bootstrap', 'system', 'oidc'] as const)
      await scopeToWorkspace(verifiedContext('any', { ...subject, type, role: 'admin' }), 'w', roles)
    expect(lookups).toEqual([['w', 'alice']])
  })
})

describe('granting a role', () => {
  async function openWithKeys() {
    const wb = await open({ config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } } })
    const place = await createWorkspace(wb)
    const keyOf = async (scopes: string[]) => {
      const made = await wb.sendAsOperator(`POST ${place}/api-keys`, { label: 'key', scopes })
      return bearer(String(made.body.plaintext))
    }
    const principals = `${place}/principals`
    return { wb, principals, keyOf, roleOf: (id: string) => roleIn(wb, `${principals}/${id}`) }
  }

  async function roleIn(wb: TestRuntime, path: string): Promise<unknown> {
    return (await wb.sendAsOperator(`GET ${path}`)).body.role
  }

  test.each([
    [['manage:access'], 'viewer', null],
    [['manage:access'], 'editor', 'write'],
    [['manage:access'], 'admin', 'write'],
    [['manage:access', 'write'], 'editor', null],
    [['manage:access', 'write'], 'admin', 'manage'],
    [['manage:access', 'write:kb'], 'editor', 'write'],
    [['manage'], 'admin', null],
  ])('S4.2-19: with %j grants %s, or lacks %s', async (scopes, role, lacks) => {
    const { wb, principals, keyOf, roleOf } = await openWithKeys()
    const headers = await keyOf(scopes)
    const made = await wb.send(`POST ${principals}`, { principalId: 'made', role }, headers)
    await wb.sendAsOperator(`POST ${principals}`, { principalId: 'raised' })
    const raised = await wb.send(`PATCH ${principals}/raised`, { role }, headers)
    expect([made.status, raised.status]).toEqual(lacks === null ? [201, 200] : [403, 403])
    expect([await roleOf('made'), await roleOf('raised')]).toEqual(
      lacks === null ? [role, role] : [undefined, 'viewer'],
    )
    for (const { body } of lacks === null ? [] : [made, raised])
      expect(body.error).toMatchObject({ code: 'forbidden', message: expect.stringContaining(`'${lacks}'`) })
  })

  test('S4.2-19: is not required to edit other fields of an admin or to lower their role', async () => {
    const { wb, principals, keyOf, roleOf } = await openWithKeys()
    const headers = await keyOf(['manage:access'])
    await wb.sendAsOperator(`POST ${principals}`, { principalId: 'root', role: 'admin' })
    const same = await wb.send(`PATCH ${principals}/root`, { label: 'Root', role: 'admin' }, headers)
    expect(same).toMatchObject({ status: 200, body: { label: 'Root', role: 'admin' } })
    expect((await wb.send(`PATCH ${principals}/root`, { role: 'editor' }, headers)).status).toBe(403)
    expect((await wb.send(`PATCH ${principals}/root`, { role: 'viewer' }, headers)).status).toBe(200)
    expect(await roleOf('root')).toBe('viewer')
  })

  test('S6-09: audits each creation, change and deletion of a principal, and no failed attempt', async () => {
    const { wb, principals, keyOf } = await openWithKeys()
    const headers = await keyOf(['manage:access', 'write'])
    await wb.send(`POST ${principals}`, { principalId: 'bob', role: 'editor' }, headers)
    await wb.send(`POST ${principals}`, { principalId: 'bob' }, headers)
    await wb.send(`PATCH ${principals}/bob`, { role: 'admin' }, headers)
    await wb.send(`PATCH ${principals}/bob`, { label: 'Bob' }, headers)
    await wb.send(`PATCH ${principals}/nobody`, { label: 'Bob' }, headers)
    await wb.send(`DELETE ${principals}/bob`, undefined, headers)
    await wb.send(`DELETE ${principals}/bob`, undefined, headers)
    const trail = await wb.sendAsOperator(`GET ${principals.replace('principals', 'audit')}`)
    const records = (trail.body.items as { action: string; outcome: string; details: object }[])
      .filter(({ action }) => action.startsWith('principal.'))
      .map(({ action, outcome, details }) => [action, outcome, details])
    const details = { principalId: 'bob' }
    expect(records.reverse()).toEqual([
      ['principal.create', 'success', details],
      ['principal.update', 'success', details],
      ['principal.delete', 'success', details],
    ])
  })
})
