import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const timeout = 60_000

/** Creates a sandbox with a knowledge base of two documents, and a chunking service with small chunks. */
async function createBase(way: string): Promise<Sandbox> {
  const sandbox = createSandbox()
  if (way === 'with a server') await sandbox.serve()
  const docs = join(sandbox.home, 'docs')
  mkdirSync(docs)
  for (const name of ['keys', 'roles'])
    writeFileSync(join(docs, `${name}.md`), `# ${name}\n\n${'It flutters. '.repeat(20)}`)
  expect(await sandbox.wb(['kb', 'ingest', 'handbook', docs, '--create'])).toMatchObject({ status: 0 })
  const service = { engine: 'langchain_ts', strategy: 'recursive', maxChunkSize: 80 }
  const { workspaceId } = JSON.parse((await sandbox.wb(['kb', 'show', '--json'])).stdout) as Record<
    string,
    string
  >
  const line = ['api', 'post', `/api/v1/workspaces/${workspaceId}/chunking-services`]
  const created = await sandbox.wb([...line, '-d', JSON.stringify({ name: 'small', ...service })])
  expect(created.status, created.stderr).toBe(0)
  return sandbox
}

describe.each(['in process', 'with a server'])('wb kb reindex, %s', way => {
  test('splits the documents again, and reports what changed', { timeout }, async () => {
    const sandbox = await createBase(way)
    const none = await sandbox.wb(['kb', 'reindex', 'handbook'])
    expect(none).toMatchObject({ status: 0, stdout: 'split again\t0\nunchanged\t2\nkept\t0\nchunks\t2\n' })
    const missing = await sandbox.wb(['kb', 'reindex', 'handbook', '--chunking', 'structure'])
    expect(missing.stderr).toContain('    wb services create --preset structure\n')
    const screen = await runInFakeTerminal(sandbox, ['kb', 'reindex', 'handbook', '--chunking', 'small'])
    expect(stripSequences(screen.text)).toMatch(/split again +2[\s\S]*✓ reindexed handbook/)
    const { stdout } = await sandbox.wb(['kb', 'reindex', 'handbook', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({
      job: { kind: 'reindex', status: 'succeeded' },
      documents: { rechunked: 0, unchanged: 2, kept: 0 },
    })
    const started = await sandbox.wb(['kb', 'reindex', 'handbook', '--async'])
    expect(started).toMatchObject({ status: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) })
    expect(await sandbox.wb(['jobs', 'watch', started.stdout.trim()])).toMatchObject({ status: 0 })
    const listed = await runInFakeTerminal(sandbox, ['jobs', 'list'])
    expect(stripSequences(listed.text)).toMatch(/reindex +succeeded .* handbook/)
  })
})

test('a reindex that fails prints the reason, and the same command continues', { timeout }, async () => {
  const sandbox = await createBase('in process')
  const provider = await startEmbeddingServer(3)
  onTestFinished(() => provider.close())
  const fields = { provider: 'ollama', modelName: 'm', embeddingDimension: 3, endpointBaseUrl: provider.url }
  const { workspaceId } = JSON.parse((await sandbox.wb(['kb', 'show', '--json'])).stdout) as Record<
    string,
    string
  >
  const path = `/api/v1/workspaces/${workspaceId}/embedding-services`
  await sandbox.wb(['api', 'post', path, '-d', JSON.stringify({ name: 'space', ...fields })])
  provider.script({ status: 400 })
  const args = ['kb', 'reindex', 'handbook', '--embedding', 'space']
  expect(await sandbox.wb(args)).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/responded with status 400[\s\S]*again to continue/),
  })
  expect(await sandbox.wb(args)).toMatchObject({ status: 0, stderr: '  ✓ reindexed handbook\n' })
})
