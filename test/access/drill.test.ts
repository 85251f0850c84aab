import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { askedRoutes, runDrill } from '../../src/drill/drill.ts'
import type { DrillReport } from '../../src/drill/drill-report.ts'
import { echoModel } from '../../src/drill/echo-model.ts'
import {
  changeProbes,
  historyProbes,
  plantingRoutes,
  readProbes,
  routesWithoutContent,
} from '../../src/drill/probes.ts'
import { workspaceRoutes } from '../../src/drill/route-names.ts'
import type { RuntimeOverrides } from '../../src/runtime.ts'
import { openRestrictedWorkspace } from './restricted-workspace.ts'

const timeout = 120_000
const teamPolicy = "team = $principal.team OR owner_id = $principal.id OR '*' = ANY(visible_to)"

/** Runs a drill in a workspace with two policies. */
async function drill(overrides: RuntimeOverrides = {}): Promise<DrillReport> {
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
    settle: () => wb.settle(),
    clock: systemClock,
    version: '1.0.0',
    workspaceId: workspace.split('/').at(-1)!,
    workspaceName: 'w',
    signal: new AbortController().signal,
    onProgress() {},
  })
}

test('each route below a workspace is asked in a drill, or declared to have no content', () => {
  const declared = [...workspaceRoutes.keys()].sort()
  expect([...askedRoutes, ...routesWithoutContent.keys()].sort()).toEqual(declared)
})

test('a drill finds no leaks, and each route shows canaries or refuses requests as declared', {
  timeout,
}, async () => {
  const report = await drill()
  const counts = new Map<string, number>()
  for (const f of report.findings) {
    const k = `${f.kind} ${f.route} ${f.description.replace(/[0-9a-f-]{30,}/, 'ID').slice(0, 160)}`
    counts.set(k, (counts.get(k) ?? 0) + 1)
  }
  console.log(counts)
  console.table(
    report.routes.map(({ name, requests, shown, refused, leaks, wrongRefusals }) => ({
      name,
      requests,
      shown,
      refused,
      leaks,
      wrongRefusals,
    })),
  )
  expect(report.findings).toEqual([])
  expect(report).toMatchObject({ leaks: 0, wrongRefusals: 0, principalsTotal: 3 })
  expect(report.principals).toEqual(['ada', 'bob', 'root', 'drill-stranger'])
  expect(report.policies.map(({ dsl }) => dsl)).toEqual([null, teamPolicy])
  const proofs = new Map([
    ...plantingRoutes,
    ...[...historyProbes, ...readProbes, ...changeProbes].map(([name, { proof }]) => [name, proof] as const),
  ])
  const results = new Map(report.routes.map(result => [result.name, result]))
  for (const [name, proof] of proofs) {
    const { requests, shown, refused } = results.get(name)!
    expect(requests, name).toBeGreaterThan(0)
    if (proof === 'shows') expect(shown, name).toBeGreaterThan(0)
    if (proof === 'refuses') expect(refused, name).toBeGreaterThan(0)
  }
})
