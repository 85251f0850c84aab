import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test, vi } from 'vitest'
import { place } from './wb.ts'

vi.setConfig({ testTimeout: 60_000 })

test('where nothing is yet, nothing is wrong, and nothing is made', async () => {
  const { wb, dataDir } = place()
  const { status, stdout, stderr } = await wb(['doctor', '--deep'])
  expect(stderr).toBe('  ✓ nothing wrong, 1 check\n')
  expect(status).toBe(0)
  expect(stdout.split('\n')).toEqual([
    `node\t${process.version}`,
    `data\t${dataDir}`,
    'server\tnone runs here',
    'config\tthe defaults',
    `store\t${join(dataDir, 'workbase.db')}, not made yet`,
    '',
  ])
  expect(JSON.parse((await wb(['doctor', '--json'])).stdout)).toEqual({
    ok: true,
    node: process.version,
    dataDir,
    server: null,
    config: { path: null, problems: [], warnings: expect.any(Array) },
  })
})

test('what is wrong with the configuration is a failure', async () => {
  const { wb, home } = place()
  const path = join(home, 'broken.yaml')
  writeFileSync(path, 'version: 1\nruntime:\n  prot: 1\n')
  const { status, stdout } = await wb(['doctor', '--deep', '--config', path])
  expect(status).toBe(1)
  expect(stdout).toMatch(/runtime\.prot\t/)
  const told = await wb(['doctor', '--config', path, '--json'])
  expect(told.status).toBe(1)
  expect(JSON.parse(told.stdout)).toMatchObject({ ok: false, config: { path, problems: [{}] } })
})

test('the store is looked through beside a running server, and each finding has a line', async () => {
  const { wb, serve, dataDir } = place()
  const { url, pid } = await serve()
  await wb(['workspaces', 'create', 'demo'])
  const sound = await wb(['doctor', '--deep'])
  expect(sound.stderr).toMatch(/✓ nothing wrong, \d\d checks/)
  expect(sound.stdout).toContain(`server\t${url}, process ${pid}`)
  expect(sound.stdout).toMatch(/workbase\.db, schema \d+\n/)
  expect(sound.status).toBe(0)

  const database = new Database(join(dataDir, 'workbase.db'))
  database.exec(`INSERT INTO documents (version, body) VALUES
    (1, '{"workspaceId":"gone","knowledgeBaseId":"b","documentId":"d"}')`)
  database.close()
  mkdirSync(join(dataDir, 'uploads'), { recursive: true })
  writeFileSync(join(dataDir, 'uploads', '999999999-ab'), 'left')
  const found = await wb(['doctor', '--deep'])
  expect(found.status).toBe(1)
  expect(found.stdout.split('\n').slice(5, -1)).toEqual([
    '1\tdocuments whose workspaceId is gone\tgone/b/d',
    '1\tdocuments whose knowledgeBaseId is gone\tgone/b/d',
    `1\tuploads that a killed process left\t${join(dataDir, 'uploads', '999999999-ab')}`,
  ])
  expect(found.stderr).toContain('3 problems found')
  const told = await wb(['doctor', '--deep', '--json'])
  expect(told.status).toBe(1)
  const { ok, store } = JSON.parse(told.stdout) as { ok: boolean; store: { checks: { count: number }[] } }
  expect(ok).toBe(false)
  expect(store.checks.filter(({ count }) => count > 0)).toHaveLength(3)
})

test('a server in rescue mode is a failure, and so it is for who asks it whether it is ready', async () => {
  const { wb, serve, dataDir } = place()
  mkdirSync(dataDir, { mode: 0o700 })
  writeFileSync(join(dataDir, 'workbase.db'), 'no database '.repeat(1_000))
  await serve()
  const { status, stdout, stderr } = await wb(['doctor'])
  expect({ status, stderr }).toEqual({ status: 1, stderr: '  ✗ 1 problem found\n' })
  expect(stdout).toMatch(/^server\tthis runtime is in rescue mode$/m)
  expect(JSON.parse((await wb(['doctor', '--json'])).stdout)).toMatchObject({
    ok: false,
    server: { ready: false },
  })
  const probe = await wb(['api', 'GET', '/readyz'])
  expect(probe).toMatchObject({ status: 6, stderr: expect.stringContaining('rescue mode (control_plane_') })
  expect(probe.stderr).toContain('POST /setup/restart')
})
