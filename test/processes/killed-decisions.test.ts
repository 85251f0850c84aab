import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { PolicyDecision } from '../../src/contract/policy.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { createSandbox } from '../commands/sandbox.ts'
import { failedStoreChecks } from '../harness/store-check.ts'

const timeout = 60_000
const json = { 'content-type': 'application/json' }

test('a killed server loses only decisions that were not stored yet, and does not damage the store', {
  timeout,
}, async () => {
  const { spawnServe, dataDir } = createSandbox(onTestFinished)
  const { url, process } = await spawnServe()
  const send = async (path: string, body?: object): Promise<Record<string, unknown>> => {
    const headers = { ...json, 'x-view-as-principal': 'alice' }
    const options = body ? { method: 'POST', body: JSON.stringify(body) } : {}
    const response = await fetch(`${url}/api/v1${path}`, { headers, ...options })
    return (await response.json()) as Record<string, unknown>
  }
  const { workspaceId } = await send('/workspaces', { name: 'w', kind: 'local', rlacEnabled: true })
  const workspace = `/workspaces/${workspaceId}`
  const { knowledgeBaseId } = await send(`${workspace}/knowledge-bases`, { name: 'kb' })
  const search = () => send(`${workspace}/knowledge-bases/${knowledgeBaseId}/search`, { text: 'turbine' })
  for (let n = 0; n < 30; n++) await search()
  const { items } = await send(`${workspace}/audit/decisions`)
  expect(items).toHaveLength(30)
  const searches = Array.from({ length: 120 }, search)
  await Promise.any(searches)
  process.kill('SIGKILL')
  const answered = (await Promise.allSettled(searches)).filter(({ status }) => status === 'fulfilled').length

  expect(await failedStoreChecks(dataDir)).toEqual([])
  const { rows, close } = await openEmbeddedStore({ path: join(dataDir, 'workbase.db') })
  onTestFinished(close)
  const list = { index: 'byOrdinal', prefix: [], limit: 200 }
  const stored = (await rows.list(tables.policyAudit, list)).map(({ row }) => row)
  expect(stored.slice(0, 30).reverse()).toEqual(items as PolicyDecision[])
  expect(answered).toBeGreaterThan(0)
  expect(stored.length).toBeLessThanOrEqual(150)
  expect(new Set(stored.map(({ decisionId }) => decisionId)).size).toBe(stored.length)
})
