import { beforeEach, describe, expect, test } from 'vitest'
import type { PolicyDecision } from '../../src/contract/policy.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { itemsOf, type Send } from './principal-requests.ts'
import { openRestrictedWorkspace, type RestrictedWorkspace } from './restricted-workspace.ts'
import { disconnectWhen, slowTimer } from './turns.ts'

const hiddenCount = 6_000
let place: RestrictedWorkspace
/** Number of decisions that were read from the store. */
let decisionsRead: number

/** One denial of alice, followed by many decisions of bob that she may not see. */
beforeEach(async () => {
  let rows: RowStore | undefined
  place = await openRestrictedWorkspace({
    rows: store => {
      rows = withCount(store)
      return rows
    },
  })
  await place.as('alice')(`GET ${place.base}`)
  const workspaceId = place.workspace.split('/').at(-1)!
  const decisionOf = (n: number): PolicyDecision => ({
    workspaceId,
    auditDay: n < 2 ? '2030-01-01' : '2030-01-02',
    ts: `2030-01-0${n < 2 ? 1 : 2}T00:00:00.000Z`,
    decisionId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    principalId: n === 0 ? 'alice' : 'bob',
    knowledgeBaseId: place.knowledgeBaseId,
    resourceId: 'd',
    action: 'get',
    decision: n === 0 ? 'deny' : 'filter',
    reason: 'filtered',
    compiledFilterJson: null,
  })
  const writes = Array.from({ length: hiddenCount + 1 }, (_, n) => ({
    op: 'insert' as const,
    table: tables.policyAudit,
    row: decisionOf(n),
  }))
  expect(await rows!.atomic(writes)).toEqual({ ok: true })
  decisionsRead = 0
})

function withCount(store: RowStore): RowStore {
  return {
    ...store,
    async list(table, query) {
      const found = await store.list(table, query)
      if (table.name === tables.policyAudit.name) decisionsRead += found.length
      return found
    },
  }
}

async function page(send: Send, query: string) {
  const answer = await send(`GET ${place.workspace}/audit/decisions?${query}`)
  expect(answer.status, answer.text).toBe(200)
  return { items: itemsOf(answer), nextCursor: answer.body.nextCursor as string | null }
}

describe('a page of decisions', () => {
  test('security: ends early after many decisions that the caller may not see', async () => {
    const first = await page(place.as('alice'), 'limit=50')
    expect(first.items).toEqual([])
    expect(first.nextCursor).not.toBeNull()
    expect(decisionsRead).toBeLessThan(5_100)
    const second = await page(place.as('alice'), `limit=50&cursor=${first.nextCursor}`)
    expect(second).toMatchObject({ items: [{ principalId: 'alice' }], nextCursor: null })
  })

  test('security: reads nothing if no decision matches one of the conditions', async () => {
    const { knowledgeBaseId } = place
    const query = `limit=50&knowledgeBaseId=${knowledgeBaseId}&auditDay=2020-01-01`
    expect(await page(place.operator, query)).toEqual({ items: [], nextCursor: null })
    expect(decisionsRead).toBeLessThan(5)
  })

  test('security: is not read further when the caller disconnects', async () => {
    const { wb, workspace } = place
    const url = `http://localhost${workspace}/audit/decisions?principalId=bob&decision=deny`
    slowTimer()
    await disconnectWhen(
      () => decisionsRead > 100,
      signal => wb.runtime.fetch(new Request(url, { signal }), 'operator'),
    )
    expect(decisionsRead).toBeLessThan(2_000)
  })

  test('GET policy/audit, which has no pages, finds a decision behind many others', async () => {
    const { workspace, operator } = place
    const oldest = await operator(`GET ${workspace}/policy/audit?principalId=bob&auditDay=2030-01-01`)
    expect(itemsOf(oldest)).toMatchObject([{ principalId: 'bob', auditDay: '2030-01-01' }])
    expect(decisionsRead).toBeGreaterThan(5_100)
  })
})
