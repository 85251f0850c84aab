import { expect, onTestFinished, test } from 'vitest'
import { DecisionRecords } from '../../src/access/decisions/decision-records.ts'
import { noPrincipal } from '../../src/access/row-access.ts'
import { anonymousContext } from '../../src/access/subject.ts'
import type { DecisionPageQuery } from '../../src/contract/audit.ts'
import type { PolicyDecision } from '../../src/contract/policy.ts'
import type { Workspace } from '../../src/contract/workspaces.ts'
import { Cursors, Pager } from '../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { openAccess } from '../harness/open-access.ts'

test('lists each matching decision once among many others, for all combinations of filters and page sizes', async () => {
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
        decision: n % 5 ? 'filter' : 'deny',
      }) as PolicyDecision,
  )
  await rows.atomic([
    { op: 'insert', table: tables.workspaces, row: { workspaceId } as Workspace },
    ...decisions.map(row => ({ op: 'insert' as const, table: tables.policyAudit, row })),
  ])
  const pager = new Pager(rows, new Cursors('a key'))
  const records = new DecisionRecords({ rows, pager, recorder: { flushed: async () => {} } })
  const caller = {
    auth: anonymousContext('disabled'),
    rowAccess: (id: string) => openAccess(noPrincipal, id),
    signal: new AbortController().signal,
  }
  async function found(query: Partial<DecisionPageQuery>, limit: number) {
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = await records.list(workspaceId, { limit, cursor, ...query }, caller)
      ids.push(...page.items.map(({ decisionId }) => decisionId))
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
    return ids
  }
  const filters = {
    principalId: 'odd',
    knowledgeBaseId: 'third',
    auditDay: '2026-01-01',
    decision: 'deny',
  } as const
  const names = Object.keys(filters) as (keyof typeof filters)[]
  for (let set = 0; set < 1 << names.length; set++) {
    const query = Object.fromEntries(
      names.filter((_, at) => set & (1 << at)).map(name => [name, filters[name]]),
    )
    const expected = decisions
      .filter(row => Object.entries(query).every(([name, value]) => row[name as 'auditDay'] === value))
      .map(({ decisionId }) => decisionId)
      .reverse()
    for (const limit of [7, 500]) expect(await found(query, limit)).toEqual(expected)
  }
})
