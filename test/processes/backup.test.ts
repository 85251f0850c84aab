import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { createSandbox } from '../commands/sandbox.ts'
import { makeBase } from '../harness/resources.ts'

vi.setConfig({ testTimeout: 120_000 })

test('a backup during writes contains every document that was confirmed before, also after the server is killed', async () => {
  const sandbox = createSandbox()
  const server = await sandbox.spawnServe()
  const { call } = server
  const base = await makeBase({ call })
  const { params } = base
  const confirmed: string[] = []
  let isOver = false
  const write = async (writer: number) => {
    for (let n = 0; !isOver; n++) {
      const name = `${writer}-${n}.md`
      const body = { text: `Glider ${writer} ${n} flies over hill ${n % 7}.`, sourceFilename: name }
      await call(documents.ingest, { params, query: {}, body })
      confirmed.push(name)
    }
  }
  const writers = [1, 2, 3].map(write)
  await vi.waitFor(() => expect(confirmed.length).toBeGreaterThan(20), { timeout: 30_000 })
  const before = [...confirmed]
  const file = join(sandbox.home, 'backup.tar.gz')
  const backup = await sandbox.spawnWb(['backup', file])
  expect(backup.status, backup.stderr).toBe(0)
  expect(confirmed.length).toBeGreaterThan(before.length)
  isOver = true
  await Promise.all(writers)
  server.process.kill('SIGKILL')
  await server.ended
  const fresh = join(sandbox.home, 'fresh')
  const restored = await sandbox.spawnWb(['restore', file, '--data-dir', fresh])
  expect(restored.status, restored.stderr).toBe(0)
  const again = await sandbox.spawnServe(['--data-dir', fresh])
  const listed: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await again.call(documents.list, { params, query: { limit: 100, cursor } })
    listed.push(...page.items.map(({ sourceFilename }) => String(sourceFilename)))
    if (page.nextCursor === null) break
    cursor = page.nextCursor
  }
  expect(listed).toEqual(expect.arrayContaining(before))
  const body = {
    text: `Glider ${before[7]!.replace('-', ' ').replace('.md', '')}`,
    topK: 1,
    lexicalWeight: 1,
  }
  const [hit] = await again.call(kb.search, { params, body })
  expect(hit?.payload).toMatchObject({ chunkText: expect.stringContaining(body.text) })
  const checked = await sandbox.spawnWb(['doctor', '--deep', '--json', '--data-dir', fresh])
  expect(checked.status, checked.stdout).toBe(0)
})

test('a killed backup leaves no file with its name, and the next one removes its remains', async () => {
  const sandbox = createSandbox()
  await sandbox.wb(['kb', 'create', 'handbook'])
  const [file, out] = [join(sandbox.home, 'out', 'backup.tar.gz'), join(sandbox.home, 'out')]
  mkdirSync(join(out, '.wb-backup-999999999-abc'), { recursive: true })
  writeFileSync(join(out, '.wb-backup-999999999-abc', 'archive'), 'partial')
  expect((await sandbox.wb(['backup', file])).status).toBe(0)
  expect(readdirSync(out)).toEqual(['backup.tar.gz'])
})
