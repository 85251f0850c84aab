import { expect, test } from 'vitest'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { configSchema } from '../../src/config/schema.ts'
import { openOperation } from '../../src/operation/open.ts'
import { TestClock } from '../harness/runtime.ts'

const outcome = { requestId: 'r', method: 'GET', route: '/a', status: 429, durationMs: 1 }

function opened() {
  const operation = openOperation({
    chat: configSchema.parse({ version: 1 }).chat,
    environment: createEnvironment({}),
    outbound: () => Promise.reject(new Error('not dialled')),
    clock: new TestClock(),
    build: { version: '1.2.3', commit: 'abc' },
    countWorkspaces: async () => 0,
    requireSpace: async () => {},
    ingestLoad: async () => ({ active: 2, capacity: 4, queued: 7 }),
    countLostDecisions: () => 3,
  })
  const text = async () => (await operation.metrics.text({ active: 2, capacity: 4, queued: 7 })).text
  return { operation, text }
}

test('rate-limited requests are counted by kind of credential and are not recent errors', async () => {
  const { operation, text } = opened()
  await operation.metrics.start()
  for (const credential of ['bearer', 'session', 'session', 'none', 'other'])
    operation.observer.onFailure(outcome, 'rate_limited', credential)
  const counted = await text()
  for (const [type, count] of [
    ['bearer', 1],
    ['session', 2],
    ['ip', 2],
  ])
    expect(counted).toContain(`workbase_rate_limit_rejections_total{key_type="${type}"} ${count}\n`)
  expect(operation.handlers.recentErrors({} as never, {} as never)).toMatchObject({ body: { entries: [] } })
})

test('gauges show the ingest of the process', async () => {
  const counted = await opened().text()
  expect(counted).toContain('workbase_ingest_workers_active 2\n')
  expect(counted).toContain('workbase_ingest_workers_queued 7\n')
})

test('a failed ingest is counted, and one that another process takes over is not', async () => {
  const { operation, text } = opened()
  await operation.metrics.start()
  const perform = operation.withIngestCount(() => Promise.reject(new Error('unreadable')))
  const live = { isLost: false, signal: new AbortController().signal }
  for (const claim of [live, { ...live, isLost: true }, { ...live, signal: AbortSignal.abort() }])
    await expect(perform(claim)).rejects.toThrow('unreadable')
  expect(await text()).toContain('workbase_ingest_documents_total{outcome="failed"} 1\n')
})
