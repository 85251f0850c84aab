import { resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createEnvironment } from '../../../src/config/config-environment.ts'
import { McpProcesses } from '../../../src/models/mcp/mcp-processes.ts'
import { scratchDir, TestClock, waitUntil } from '../../harness/runtime.ts'

test('logs standard error output of a program, truncated and with secrets redacted', async () => {
  const lines: string[] = []
  const clock = new TestClock()
  const processes = new McpProcesses({
    clock,
    environment: createEnvironment({ CHOSEN: 'plain-looking-secret' }),
    folder: scratchDir(),
    log: {
      debug() {},
      warn() {},
      error() {},
      info: facts => void lines.push((facts as { line: string }).line),
    },
  })
  onTestFinished(() => processes.close())
  const server = {
    id: 'local',
    command: process.execPath,
    args: [resolve('test/fixtures/mcp/stdio-server.mjs')],
    env: {},
    secretEnv: { TOKEN: 'env:CHOSEN' },
    enabled: true,
    allowedTools: null,
    workspaces: null,
  }
  const complain = (words: string, times = 1) => {
    const call = { name: 'complain', args: { words, times } }
    return processes.callTool(server, call, new AbortController().signal)
  }
  await complain('got plain-looking-secret and Bearer abcdef123456')
  await waitUntil(() => lines.length === 1)
  expect(lines[0]).toBe('got [redacted] and Bearer [redacted]')
  await complain('x'.repeat(10_000))
  await waitUntil(() => lines.length === 2)
  expect(lines[1]).toHaveLength(500)
  await complain('again', 1_000)
  await waitUntil(() => lines.length === 101)
  expect(lines.at(-1)).toBe('(further lines are omitted for up to a minute)')
  clock.advance(60_000)
  await complain('later')
  await waitUntil(() => lines.at(-1) === 'later')
  expect(lines).toHaveLength(102)
})
