import { expect, test } from 'vitest'
import { mcpServers } from '../../src/contract/mcp-servers.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import { open, TestClock, waitUntil } from '../harness/runtime.ts'

test('a server that lists no tools within ten seconds times out and is reported', async () => {
  const clock = new TestClock()
  let given: AbortSignal | undefined
  const listTools = (_server: unknown, signal: AbortSignal) => {
    given = signal
    return new Promise<never>(() => {})
  }
  const { call } = await open({ clock, listTools })
  const { workspaceId } = await call(workspaces.create, { body: { name: 'w', kind: 'mock' } })
  const body = { label: 'silent', url: 'https://tools.example/mcp' }
  const creating = call(mcpServers.create, { params: { workspaceId }, body })
  await waitUntil(() => given !== undefined)
  // The request that adds a server does not wait for it.
  clock.advance(5_000)
  const { mcpServerId } = await creating
  given = undefined
  const testing = call(mcpServers.testConnection, { params: { workspaceId, mcpServerId } })
  await waitUntil(() => given !== undefined)
  clock.advance(9_999)
  expect(given!.aborted).toBe(false)
  clock.advance(1)
  expect(await testing).toEqual({
    ok: false,
    toolCount: 0,
    tools: [],
    latencyMs: 10_000,
    error: { code: 'timeout', message: 'The server did not respond in time.' },
  })
  expect(given!.aborted).toBe(true)
})
