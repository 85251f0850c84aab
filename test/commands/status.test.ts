import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { createSandbox } from './sandbox.ts'
import { runInTerminal, stripSequences } from './terminal.ts'

vi.setConfig({ testTimeout: 60_000 })

test('shows an overview, in process and with a key at a server', async () => {
  const { wb, serve, home, dataDir, env } = createSandbox()
  env.WB_CONFIG = join(home, 'keys.yaml')
  writeFileSync(env.WB_CONFIG, 'version: 1\nauth:\n  mode: apiKey\n')
  const empty = await wb(['status'])
  expect(empty.status).toBe(0)
  expect(empty.stdout).toContain('workspace\tthere is no workspace yet\n')
  expect(empty.stderr).toContain('wb workspaces create')

  const papers = join(home, 'papers')
  mkdirSync(papers)
  writeFileSync(join(papers, 'a.md'), '# A\n\nFlow.\n')
  writeFileSync(join(papers, 'b.md'), '# B\n\nHeat.\n')
  await wb(['kb', 'ingest', 'papers', papers, '--create', '--no-wait'])
  const key = await wb(['keys', 'create', 'ci', '--role', 'viewer', '--as-operator'])
  const status = await wb(['status'])
  expect(status.stdout.split('\n')).toEqual([
    expect.stringMatching(/^runtime\tin this process, version \d+\.\d+\.\d+, 1 workspace$/),
    `data\t${dataDir}`,
    'workspace\tdefault (local)',
    'knowledge\t1 knowledge base, 2 documents, 2 chunks',
    expect.stringMatching(/^agents\t\d+$/),
    'jobs\tnone running',
    'you\tanonymous; no credential is sent',
    '',
  ])

  const { url } = await serve()
  await wb(['workspaces', 'create', 'other'])
  const [known, other, unknown, piped] = await Promise.all([
    wb(['status', '--json'], { env: { WB_API_KEY: key.stdout.trim() } }),
    wb(['status', '-w', 'other']),
    wb(['status', '-w', 'nothing']),
    wb(['status', '--watch']),
  ])
  expect(JSON.parse(known.stdout)).toEqual({
    runtime: { kind: 'server', url, dataDir, version: expect.any(String), workspaces: 2 },
    workspace: { workspaceId: expect.any(String), name: 'default', kind: 'local' },
    counts: { knowledgeBases: 1, documents: 2, chunks: 2, complete: true, agents: expect.any(Number) },
    jobs: { pending: 0, running: 0, succeeded: 0, failed: 0 },
    you: expect.objectContaining({
      type: 'apiKey',
      label: 'ci',
      role: 'viewer',
    }),
  })
  expect(other.stdout).toContain('workspace\tother (local)\nknowledge\t0 knowledge bases')
  expect(unknown).toMatchObject({ status: 4, stderr: expect.stringContaining('nothing') })
  expect(piped).toMatchObject({ status: 2, stderr: expect.stringContaining('wb status') })
})

test('--watch redraws in place, also while the runtime is down, until Ctrl-C', async () => {
  const sandbox = createSandbox()
  const server = await sandbox.spawnServe()
  await sandbox.wb(['workspaces', 'create', 'demo'])
  let step = 0
  const { status, text } = await runInTerminal(sandbox, ['status', '--watch'], {
    cols: 60,
    answer(written) {
      const drawn = stripSequences(written)
      if (step === 0 && drawn.includes('none running')) {
        step = 1
        server.process.kill('SIGKILL')
        return ''
      }
      return step === 1 && /No runtime responds[\s\S]*Ctrl-C to stop\n$/.test(drawn) ? '\x03' : undefined
    },
  })
  expect(status).toBe(0)
  const [first, second] = text.split('\x1b[J')
  const height = first!.split('\r\n').length - 1
  expect(second!.startsWith(`\x1b[${height}A`)).toBe(true)
  expect(stripSequences(second!)).toContain('✗ No runtime responds at')
  for (const drawn of [first!, second!]) expect(stripSequences(drawn)).toMatch(/\n {2}Ctrl-C to stop\n$/)
})
