import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const timeout = 60_000
const unknown = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'

/** Creates a sandbox with a folder of documents. */
function sandboxWithDocs(count = 3): Sandbox & { docs: string } {
  const sandbox = createSandbox()
  const docs = join(sandbox.home, 'docs')
  mkdirSync(docs)
  for (let n = 1; n <= count; n++) writeFileSync(join(docs, `${n}.md`), `# Wing ${n}\n\nIt flutters.\n`)
  return { ...sandbox, docs }
}

async function ids({ wb, docs }: ReturnType<typeof sandboxWithDocs>): Promise<string[]> {
  const { status, stdout } = await wb(['kb', 'ingest', 'handbook', docs, '--create', '--async', '--no-wait'])
  expect(status).toBe(0)
  return stdout.trim().split('\n')
}

describe.each(['in process', 'a server'])('wb kb ingest --async, %s', way => {
  test('prints job IDs in a pipe, and each job can be shown, watched and cancelled', {
    timeout,
  }, async () => {
    const sandbox = sandboxWithDocs()
    if (way === 'a server') await sandbox.serve()
    const { wb } = sandbox
    const jobs = await ids(sandbox)
    expect(jobs).toHaveLength(3)
    for (const job of jobs) {
      const { status, stdout } = await wb(['jobs', 'watch', job, '--json'])
      expect([status, JSON.parse(stdout)]).toMatchObject([
        0,
        { jobId: job, status: 'succeeded', result: { chunks: 1 } },
      ])
    }
    const listed = JSON.parse((await wb(['jobs', 'list', '--json'])).stdout) as { jobId: string }[]
    expect(listed.map(({ jobId }) => jobId).sort()).toEqual([...jobs].sort())
    const shown = await wb(['jobs', 'show', '--json'])
    expect(JSON.parse(shown.stdout)).toEqual(listed[0])
    expect(await wb(['jobs', 'cancel', jobs[0]!])).toMatchObject({
      status: 0,
      stderr: `  ${jobs[0]} has already ended: succeeded\n`,
    })
    const again = await wb(['kb', 'ingest', 'handbook', sandbox.docs, '--async', '--json'])
    expect(JSON.parse(again.stdout)).toMatchObject({ unchanged: 3, added: 0, jobs: [] })
  })
})

test('a terminal lists jobs in 80 columns, and finds a job by the beginning of its ID', {
  timeout,
}, async () => {
  const sandbox = sandboxWithDocs(2)
  const [job] = await ids(sandbox)
  const { text } = await runInFakeTerminal(sandbox, ['jobs', 'list'])
  const table = stripSequences(text).split(/\r?\n/)
  const row = table.find(line => line.includes(job!.slice(0, 8)))!
  expect(row).toMatch(/\d\.md +handbook$/)
  expect(row).not.toContain(job)
  expect(Math.max(...table.map(line => line.length))).toBeLessThanOrEqual(80)
  const shown = await sandbox.wb(['jobs', 'show', job!.slice(0, 8)])
  expect(shown).toMatchObject({ status: 0, stdout: expect.stringContaining(`id\t${job}\n`) })
  const none = await sandbox.wb(['jobs', 'show', '00000000'])
  expect(none).toMatchObject({ status: 4, stderr: expect.stringContaining('job_not_found') })
})

test('cancels a waiting job, and watching the job then ends with status 1', { timeout }, async () => {
  const sandbox = sandboxWithDocs(1)
  const [job] = await ids(sandbox)
  const cancelled = await sandbox.wb(['jobs', 'cancel', job!, '--no-wait'])
  expect(cancelled).toMatchObject({ status: 0, stdout: '', stderr: `  ✓ cancelled ${job}\n` })
  const { status, stdout } = await sandbox.wb(['jobs', 'watch'])
  expect(status).toBe(1)
  expect(stdout).toContain('error\tcancelled\n')
})

test('reports an unknown job', { timeout }, async () => {
  const sandbox = sandboxWithDocs(1)
  await sandbox.serve()
  expect(await sandbox.wb(['workspaces', 'create', 'demo'])).toMatchObject({ status: 0 })
  const none = await sandbox.wb(['jobs', 'show'])
  expect(none).toMatchObject({
    status: 4,
    stderr: expect.stringMatching(/are no jobs yet \(job_not_found\)/i),
  })
  expect(await sandbox.wb(['jobs', 'watch', unknown])).toMatchObject({
    status: 4,
    stderr: expect.stringContaining('job_not_found'),
  })
  const misnamed = await sandbox.wb(['jobs', 'show', 'handbook'])
  expect(misnamed).toMatchObject({ status: 2, stderr: expect.stringContaining('wb jobs list') })
  const unknownJob = await sandbox.wb(['jobs', 'cancel'])
  expect(unknownJob).toMatchObject({ status: 2, stderr: expect.stringContaining('JOB is missing') })
  const list = await sandbox.wb(['jobs', 'list'])
  expect(list).toMatchObject({ status: 0, stderr: expect.stringContaining('--async') })
})

test('shows progress in a terminal until all jobs end, and failures with their files', {
  timeout,
}, async () => {
  const sandbox = sandboxWithDocs(2)
  const provider = await startEmbeddingServer(3)
  onTestFinished(() => provider.close())
  provider.script({ status: 400 })
  const service = {
    name: 'space',
    provider: 'ollama',
    modelName: 'm',
    embeddingDimension: 3,
    endpointBaseUrl: provider.url,
  }
  const workspace = (await sandbox.wb(['workspaces', 'create', 'demo'])).stdout.trim()
  const W = `/api/v1/workspaces/${workspace}`
  const created = await sandbox.wb(['api', 'post', `${W}/embedding-services`, '-d', JSON.stringify(service)])
  const { embeddingServiceId } = JSON.parse(created.stdout) as Record<string, string>
  const base = { name: 'handbook', embeddingServiceId }
  await sandbox.wb(['api', 'post', `${W}/knowledge-bases`, '-d', JSON.stringify(base)])
  const { status, text } = await runInFakeTerminal(sandbox, [
    'kb',
    'ingest',
    'handbook',
    sandbox.docs,
    '--async',
  ])
  const seen = stripSequences(text)
  expect(seen).toMatch(/1 added {3}1 failed/)
  expect(seen).toMatch(/✗ .*[12]\.md {3}.*responded with\s+status 400 \(job_failed\)/)
  expect(status).toBe(1)
})

test('vectors that --no-wait leaves are listed, and computed by the next ingest, not by reading', {
  timeout,
}, async () => {
  const { wb, docs, env } = sandboxWithDocs(2)
  env.WB_SEMANTIC_SEARCH = 'on'
  const left = await wb(['kb', 'ingest', 'handbook', docs, '--create', '--no-wait'])
  expect(left.stderr).toContain('1 task left for the next ingest or wb serve')
  const found = await wb(['kb', 'search', 'handbook', 'keys'])
  expect(found.stderr).not.toContain('task')
  const { stdout, stderr } = await wb(['jobs', 'list'])
  expect(stdout).toBe('')
  expect(stderr).toContain('  search by meaning in handbook: 0 of 2 chunks\n')
  expect((await wb(['jobs', 'list', '--quiet'])).stderr).not.toContain('search by meaning')
  await wb(['kb', 'ingest', 'handbook', docs])
  expect((await wb(['jobs', 'list'])).stderr).not.toContain('search by meaning')
})
