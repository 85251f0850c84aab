import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { createSandbox } from '../commands/sandbox.ts'

const bin = resolve('bin/run.js')

test('eight wb mcp serve processes share one data directory', { timeout: 120_000 }, async () => {
  const { env, home, wb } = createSandbox()
  await wb(['workspaces', 'create', 'demo'])
  await wb(['kb', 'create', 'notes'])
  const params = { name: 'list_knowledge_bases', arguments: {} }
  const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const ask = () =>
    new Promise<{ status: number | null; stdout: string }>(done => {
      const child = spawn(process.execPath, [bin, 'mcp', 'serve'], { cwd: home, env })
      let stdout = ''
      child.stdout.setEncoding('utf8').on('data', text => {
        stdout += text
      })
      child.on('close', status => done({ status, stdout }))
      child.stdin.end(message)
    })
  for (const { status, stdout } of await Promise.all(Array.from({ length: 8 }, ask))) {
    expect(status).toBe(0)
    expect(stdout).toContain('notes')
  }
})
