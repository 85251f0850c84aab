import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { PolicyDecision } from '../../src/contract/policy.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { arrayOf, matching, oneOf } from './exactly.ts'
import { idOf, makeKnowledgeBase, makeWorkspace } from './fixtures.ts'
import { type Row, useServer } from './harness.ts'
import { unknownId } from './shapes.ts'

const wire = useServer()
const predicate =
  "$principal.admin = 'true' OR current_principal_id() = ANY(visible_to) OR '*' = ANY(visible_to)"

let workspace: string
beforeAll(async () => {
  workspace = await makeWorkspace(wire)
  const principals = `${workspace}/principals`
  await wire.make(principals, { principalId: 'alice', attributes: { team: 'blue' } }, 'principalId')
  await wire.make(principals, { principalId: 'root', role: 'admin' }, 'principalId')
  const pinned = { principalId: 'pinned', role: 'admin', attributes: { admin: 'false' } }
  await wire.make(principals, pinned, 'principalId')
})

function preview(known: Row): Row {
  return { ok: true, parseError: null, issues: [], compiledFilter: {}, principalId: null, ...known }
}

describe('policy preview', () => {
  const ask = (body: Row, expected: Row) =>
    wire.exchange(`POST ${workspace}/policy/compile-preview`, body, 200, preview(expected))

  test('S1-08 S4.2-20: shows the filter of a principal, based on its attributes and role', async () => {
    const visible = (id: string) => ({ $or: [{ visible_to: id }, { visible_to: '*' }] })
    const as = (principalId: string, compiledFilter: Row) =>
      ask({ dsl: predicate, principalId }, { principalId, compiledFilter })
    await as('alice', visible('alice'))
    await as('stranger', visible('stranger'))
    await as('root', {})
    await as('pinned', visible('pinned'))
    await ask({ dsl: predicate }, { compiledFilter: visible('<unset>') })
    const team = { dsl: 'team = $principal.team', principalId: 'alice' }
    await ask(team, { compiledFilter: { team: 'blue' }, principalId: 'alice' })
    const missing = { dsl: 'team = $principal.team', principalId: 'root' }
    const sentinel = { team: matching(/^[^\x20-\x7e]__missing__$/) }
    await ask(missing, { compiledFilter: sentinel, principalId: 'root' })
    await ask({ dsl: "$principal.team = 'red'" }, { compiledFilter: { _no_match: true } })
  })

  test('reports the position of a policy error with status 200', async () => {
    const wrong = { ok: false, compiledFilter: null }
    await ask({ dsl: 'status =' }, { ...wrong, parseError: matching(/^col 9: expected /) })
    const issue = (code: string) => ({ code, message: matching(/^col 1: /), hint: matching(/\.$/) })
    await ask(
      { dsl: 'a = b' },
      { ...wrong, parseError: matching(/^col 1: /), issues: [issue('row_to_row_comparison')] },
    )
    await ask({ dsl: '1 = 1' }, { ok: false, issues: [issue('constant_only_comparison')] })
    const deep = `${'('.repeat(1_900)}a = 1${')'.repeat(1_900)}`
    await ask({ dsl: deep }, { ...wrong, parseError: matching(/^col 33: the policy is nested deeper/) })
  })

  test('S7.3-workspace_not_found S7.3-validation_error: requires an existing workspace and a body without unknown fields', async () => {
    const elsewhere = `/api/v1/workspaces/${unknownId}/policy/compile-preview`
    for (const json of [{ dsl: 'a = 1' }, { dsl: 'a = 1', principalId: 'alice' }])
      await wire.refused(`POST ${elsewhere}`, { json }, 404, 'workspace_not_found')
    for (const json of [{}, { dsl: '' }, { dsl: 'x'.repeat(4_001) }, { dsl: 'a = 1', as: 'alice' }])
      await wire.refused(`POST ${workspace}/policy/compile-preview`, { json }, 400, 'validation_error')
  })
})

describe('policy of a knowledge base', () => {
  test('S7.3-validation_error: is parsed when it is set, and rejected with the position of an error', async () => {
    const kb = await makeKnowledgeBase(wire, await makeWorkspace(wire))
    const set = { policyDsl: predicate, policyEnabled: true }
    expect((await wire.send(`PATCH ${kb}`, { json: set })).status).toBe(200)
    const cases: [string, RegExp][] = [
      ['anything at all', /^policyDsl: col 10: expected /],
      ['', /^policyDsl: col 1: expected /],
      ["team = 'x' AND a = b", /^policyDsl: col 16: a column is compared with another column/],
      [`a = '${'x'.repeat(4_000)}'`, /^policyDsl: col 4001: /],
    ]
    for (const [policyDsl, message] of cases)
      await wire.refused(`PATCH ${kb}`, { json: { policyDsl } }, 400, 'validation_error', message)
    expect(await wire.get(kb)).toMatchObject(set)
    expect((await wire.send(`PATCH ${kb}`, { json: { policyDsl: null } })).body).toMatchObject({
      policyDsl: null,
    })
  })
})

describe('policy audit', () => {
  const knowledgeBaseId = '5e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1'

  function decision(n: number, known: Partial<PolicyDecision> = {}): PolicyDecision {
    return {
      workspaceId: idOf(workspace),
      auditDay: '2026-01-01',
      ts: `2026-01-01T00:00:00.${String(n).padStart(3, '0')}Z`,
      decisionId: `9b1c1a52-6f0e-4c0e-9d53-${String(n).padStart(12, '0')}`,
      principalId: n % 2 === 0 ? 'alice' : null,
      knowledgeBaseId: n % 3 === 0 ? knowledgeBaseId : unknownId,
      resourceId: '*',
      action: 'search',
      decision: 'filter',
      reason: 'filtered',
      compiledFilterJson: '{}',
      ...known,
    }
  }

  beforeAll(async () => {
    const { rows, close } = await openEmbeddedStore({ path: join(wire.serving.dataDir, 'workbase.db') })
    const other = decision(999, { workspaceId: unknownId })
    const late = decision(605, { auditDay: '2026-01-02', principalId: 'bob' })
    const all = Array.from({ length: 605 }, (_, n) => decision(n))
    await rows.atomic([...all, late, other].map(row => ({ op: 'insert', table: tables.policyAudit, row })))
    await close()
  })

  const list = async (query: string) => {
    const { items, nextCursor } = await wire.get(`${workspace}/policy/audit${query}`)
    expect(nextCursor).toBeNull()
    return items as Row[]
  }
  const numbers = (items: Row[]) => items.map(({ ts }) => Number(String(ts).slice(20, 23)))

  test('S1-08 S2.7-03 S4.2-20: lists decisions with the documented fields, newest first', async () => {
    const body = { items: arrayOf({ ...decision(0), ...anyDecision }), nextCursor: null }
    await wire.exchange(`GET ${workspace}/policy/audit`, undefined, 200, body)
    expect(numbers(await list('')).slice(0, 3)).toEqual([605, 604, 603])
    expect(await list('')).toHaveLength(100)
    expect(await list('?limit=500')).toHaveLength(500)
    expect(numbers(await list('?limit=2'))).toEqual([605, 604])
  })

  test('filters by principal, knowledge base and day, and by all of them', async () => {
    expect(numbers(await list('?principalId=alice&limit=2'))).toEqual([604, 602])
    expect(numbers(await list(`?knowledgeBaseId=${knowledgeBaseId}&limit=2`))).toEqual([603, 600])
    expect(numbers(await list('?auditDay=2026-01-02'))).toEqual([605])
    const all = `?principalId=alice&knowledgeBaseId=${knowledgeBaseId}&auditDay=2026-01-01&limit=500`
    const found = numbers(await list(all))
    expect(found).toHaveLength(101)
    expect(found.at(-1)).toBe(0)
    expect(await list('?principalId=nobody')).toEqual([])
  })

  test.each(['limit=0', 'limit=501', 'limit=x', 'auditDay=yesterday', 'knowledgeBaseId=x'])(
    'S7.3-validation_error: rejects ?%s',
    async query => {
      const line = `GET ${workspace}/policy/audit?${query}`
      await wire.refused(line, {}, 400, 'validation_error', new RegExp(`^${query.split('=')[0]}: `))
    },
  )

  test('S7.3-workspace_not_found: returns 404 for an unknown workspace', async () => {
    const line = `GET /api/v1/workspaces/${unknownId}/policy/audit`
    await wire.refused(line, {}, 404, 'workspace_not_found')
  })
})

const anyDecision = {
  ts: matching(/^2026-/),
  auditDay: matching(/^2026-01-0[12]$/),
  decisionId: matching(/^9b1c1a52-/),
  principalId: oneOf('alice', 'bob', null),
  knowledgeBaseId: matching(/^[0-9a-f-]{36}$/),
}
