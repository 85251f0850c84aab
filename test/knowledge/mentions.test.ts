import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { filters } from '../../src/contract/filters.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'

const now = '2026-01-01T00:00:00.000Z'

test('S2.7-03: no job, filter, agent or conversation refers to a deleted knowledge base', async () => {
  const wb = await open()
  const [gone, stays] = [await makeBase(wb), await makeBase(wb)]
  const { workspaceId, knowledgeBaseId } = gone.params
  const other = await makeBase(wb, { workspaceId })
  const store = await openEmbeddedStore({ path: join(wb.dataDir, 'workbase.db') })
  onTestFinished(() => store.close())
  const both = [knowledgeBaseId, other.params.knowledgeBaseId]
  const ids = { workspaceId, knowledgeBaseId, jobId: 'j' }
  const mentioning = (table: object, fields: object) =>
    ({
      op: 'insert',
      table,
      row: { workspaceId, knowledgeBaseIds: both, createdAt: now, ...fields },
    }) as const
  expect(
    await store.rows.atomic([
      mentioning(tables.agents, { agentId: 'a', name: 'agent' }) as never,
      mentioning(tables.conversations, { agentId: 'a', conversationId: 'c' }) as never,
      { op: 'insert', table: tables.jobs, row: { ...ids, documentId: null, status: 'running' } },
      { op: 'insert', table: tables.jobInputs, row: { ...ids, body: { text: 'waiting' } } },
      { op: 'insert', table: tables.jobBatches, row: { ...ids, start: 0, vectors: [] } },
    ]),
  ).toEqual({ ok: true })
  await gone.ingest('A document.')
  await wb.call(filters.create, { params: gone.params, body: { name: 'one', filter: {} } })
  await stays.ingest('Another document.')
  await gone.delete()
  const left = [...storeFile(wb.dataDir).tablesContaining(knowledgeBaseId)].filter(table => table !== 'audit')
  expect(left).toEqual([])
  const agents = await store.rows.list(tables.agents, {
    index: 'byWorkspace',
    prefix: [workspaceId],
    limit: 9,
  })
  expect(agents.find(({ row }) => row.agentId === 'a')?.row.knowledgeBaseIds).toEqual([both[1]])
  expect(await stays.documents()).toHaveLength(1)
})
