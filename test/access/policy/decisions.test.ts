import { expect, onTestFinished, test } from 'vitest'
import { listDecisions } from '../../../src/access/policy/decisions.ts'
import type { PolicyDecision } from '../../../src/contract/policy.ts'
import type { Workspace } from '../../../src/contract/workspaces.ts'
import { openEmbeddedStore } from '../../../src/storage/open.ts'
import { tables } from '../../../src/storage/tables.ts'

test('listDecisions finds each matching decision once among many others, for all filters combined', async () => {
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  onTestFinished(close)
  const workspaceId = 'w'
  const decisions = Array.from(
    { length: 1_200 },
    (_, n) =>
      ({
        workspaceId,
        decisionId: `d${n}`,
        principalId: n % 2 ? 'odd' : 'even',
        knowledgeBaseId: n % 3 ? 'other' : 'third',
        auditDay: n < 600 ? '2026-01-01' : '2026-01-02',
      }) as PolicyDecision,
  )
  await rows.atomic([
    { op: 'insert', table: tables.workspaces, row: { workspaceId } as Workspace },
    ...decisions.map(row => ({ op: 'insert' as const, table: tables.policyAudit, row })),
  ])
  const found = async (query: object, limit = 2_000) =>
    (await listDecisions(rows, workspaceId, { limit, ...query })).map(({ decisionId }) => decisionId)
  const expected = (wanted: (row: PolicyDecision) => boolean) =>
    decisions
      .filter(wanted)
      .map(({ decisionId }) => decisionId)
      .reverse()
  expect(await found({})).toEqual(expected(() => true))
  expect(await found({}, 700)).toEqual(expected(() => true).slice(0, 700))
  const filters = { principalId: 'odd', knowledgeBaseId: 'third', auditDay: '2026-01-01' }
  for (const left of [[], ['principalId'], ['knowledgeBaseId'], ['auditDay']]) {
    const query = Object.entries(filters).filter(([name]) => !left.includes(name))
    expect(await found(Object.fromEntries(query))).toEqual(
      expected(row => query.every(([name, value]) => row[name as 'auditDay'] === value)),
    )
  }
})
