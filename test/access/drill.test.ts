import { expect, test } from 'vitest'
import { fullVisibility } from '../../src/access/row-access.ts'
import { systemClock } from '../../src/base/clock.ts'
import { changeProbes } from '../../src/drill/change-probes.ts'
import { runDrill } from '../../src/drill/drill.ts'
import type { DrillReport } from '../../src/drill/drill-report.ts'
import { echoModel } from '../../src/drill/echo-model.ts'
import type { RouteProbe } from '../../src/drill/probe.ts'
import { historyProbes, readProbes } from '../../src/drill/read-probes.ts'
import { workspaceRoutes } from '../../src/drill/route-names.ts'
import { routesWithoutContent } from '../../src/drill/routes-without-content.ts'
import { trashProbes } from '../../src/drill/trash-probes.ts'
import type { RuntimeOverrides } from '../../src/runtime.ts'
import type { Stored } from '../../src/storage/rows.ts'
import { openRestrictedWorkspace } from './restricted-workspace.ts'

const timeout = 120_000
const teamPolicy = "team = $principal.team OR owner_id = $principal.id OR '*' = ANY(visible_to)"

/** Routes that each principal uses to start its conversation. */
const plantingRoutes: ReadonlyMap<string, RouteProbe['proof']> = new Map([
  ['conversations.create', 'neither'],
  ['chat.stream', 'shows'],
])

/** Runs a drill in a workspace with two policies. */
async function drill(
  overrides: RuntimeOverrides = {},
  { signal = new AbortController().signal, settled = () => {} } = {},
): Promise<DrillReport> {
  const { wb, workspace, operator } = await openRestrictedWorkspace({
    config: { mcp: { exposeChat: true }, chat: { retrievalK: 64 } },
    outbound: echoModel,
    ...overrides,
  })
  await operator(`POST ${workspace}/principals`, { principalId: 'ada', attributes: { team: 'red' } })
  await operator(`POST ${workspace}/principals`, { principalId: 'bob', attributes: { team: 'blue' } })
  await operator(`POST ${workspace}/principals`, { principalId: 'root', role: 'admin' })
  const { knowledgeBaseId } = (await operator(`POST ${workspace}/knowledge-bases`, { name: 'teams' })).body
  const policy = { policyDsl: teamPolicy, policyEnabled: true }
  await operator(`PATCH ${workspace}/knowledge-bases/${knowledgeBaseId}`, policy)
  return runDrill({
    send: (request, as) => wb.runtime.fetch(request, as),
    settle: () => wb.settle().then(settled),
    clock: systemClock,
    version: '1.0.0',
    workspaceId: workspace.split('/').at(-1)!,
    workspaceName: 'w',
    signal,
    onProgress() {},
  })
}

test('each route below a workspace is tested in a drill, or declared to have no content', () => {
  const declared = [...workspaceRoutes.keys()].sort()
  const tested = [plantingRoutes, historyProbes, readProbes, trashProbes, changeProbes].flatMap(each => [
    ...each.keys(),
  ])
  expect([...tested, ...routesWithoutContent.keys()].sort()).toEqual(declared)
})

test('a drill finds no leaks, and each route shows canaries or refuses requests as declared', {
  timeout,
}, async () => {
  const report = await drill()
  expect(report.findings).toEqual([])
  expect(report).toMatchObject({ leaks: 0, wrongRefusals: 0, principalsTotal: 3 })
  expect(report.principals).toEqual(['ada', 'bob', 'root', 'drill-unknown-principal'])
  expect(report.policies.map(({ dsl }) => dsl)).toEqual([null, teamPolicy])
  const proofs = new Map([
    ...plantingRoutes,
    ...[...historyProbes, ...readProbes, ...trashProbes, ...changeProbes].map(
      ([name, { proof }]) => [name, proof] as const,
    ),
  ])
  const results = new Map(report.routes.map(result => [result.name, result]))
  for (const [name, proof] of proofs) {
    const { requests, shown, refused } = results.get(name)!
    expect(requests, name).toBeGreaterThan(0)
    if (proof === 'shows') expect(shown, name).toBeGreaterThan(0)
    if (proof === 'refuses') expect(refused, name).toBeGreaterThan(0)
  }
})

test('a drill that is interrupted while it plants canaries ends before its next request', {
  timeout,
}, async () => {
  const interrupted = new AbortController()
  const reads: string[] = []
  const report = drill(
    {
      rows: store => ({
        ...store,
        async get(table, ...key) {
          if (interrupted.signal.aborted) reads.push(table.name)
          return store.get(table, ...key)
        },
      }),
    },
    { signal: interrupted.signal, settled: () => interrupted.abort(new Error('interrupted')) },
  )
  await expect(report).rejects.toThrow('interrupted')
  expect(reads).not.toContain('documents')
})

/** Returns a content store that shows all rows to everyone. */
function withoutVisibility<T extends object>(store: T): T {
  const showAll = (argument: unknown) =>
    typeof argument === 'object' && argument !== null && 'visibility' in argument
      ? { ...argument, visibility: fullVisibility() }
      : argument
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value === 'function')
        return (...args: unknown[]) => Reflect.apply(value, target, args.map(showAll))
      return typeof value === 'object' && value !== null ? withoutVisibility(value) : value
    },
  })
}

const leakingRoutes = ({ routes }: DrillReport) =>
  routes.filter(({ leaks }) => leaks > 0).map(({ name }) => name)

test('a drill finds searches and answers that ignore the visibility', { timeout }, async () => {
  const report = await drill({ content: withoutVisibility })
  expect(leakingRoutes(report)).toEqual(
    expect.arrayContaining(['kb.search', 'kb.searchMany', 'filters.create', 'mcp.send', 'chat.stream']),
  )
  expect(report.leaks).toBe(report.findings.filter(({ kind }) => kind === 'leak').length)
})

test('a drill finds documents and jobs that are shown to everyone', { timeout }, async () => {
  const showAll = <Row extends object>(stored: Stored<Row>): Stored<Row> => ({
    ...stored,
    row: { ...stored.row, visibleTo: ['*'] },
  })
  const report = await drill({
    rows: store => ({
      ...store,
      async get(table, key) {
        const stored = await store.get(table, key)
        return stored && table.name === 'documents' ? showAll(stored) : stored
      },
      async list(table, query) {
        const stored = await store.list(table, { ...query, tags: undefined })
        return table.name === 'documents' ? stored.map(showAll) : stored
      },
    }),
  })
  expect(leakingRoutes(report)).toEqual(
    expect.arrayContaining(['documents.list', 'documents.show', 'jobs.list', 'jobs.show', 'jobs.events']),
  )
  expect(leakingRoutes(report)).toEqual(expect.arrayContaining(['documents.update', 'documents.delete']))
})

test('a drill finds a principal that does not get what it may see', { timeout }, async () => {
  const report = await drill({
    rows: store => ({
      ...store,
      list: async (table, query) => (table.name === 'documents' ? [] : store.list(table, query)),
    }),
  })
  expect(report.findings.map(({ kind }) => kind)).toContain('wrongRefusal')
  expect(report.routes.find(({ name }) => name === 'documents.list')?.wrongRefusals).toBeGreaterThan(0)
})
