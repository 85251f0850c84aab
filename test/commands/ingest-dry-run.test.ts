import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { approximateTokenCount } from '../../src/base/approximate-token-count.ts'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import { pdf } from '../formats/files.ts'
import { createSandbox } from './sandbox.ts'

async function setUp() {
  const provider = await startEmbeddingServer(3)
  onTestFinished(() => provider.close())
  const sandbox = createSandbox()
  const folder = join(sandbox.home, 'files')
  mkdirSync(folder)
  const paragraph = 'The wing of the aircraft bends in the wind. '.repeat(40)
  writeFileSync(join(folder, 'a.md'), `# Wings\n\n${paragraph}`)
  writeFileSync(join(folder, 'b.txt'), `Two. ${paragraph}`)
  writeFileSync(join(folder, 'c.pdf'), await pdf([[[12, paragraph]]]))
  writeFileSync(join(folder, 'c.png'), Buffer.from([0x89, 0x50, 0, 1]))
  const service = [
    'services',
    'create',
    'hosted',
    '--type',
    'embedding',
    '--provider',
    'ollama',
    '--model',
    'm',
  ]
  await sandbox.wb(['workspaces', 'create', 'w'])
  await sandbox.wb([...service, '--dimension', '3', '--endpoint', provider.url])
  await sandbox.wb(['kb', 'create', 'papers', '--embedding', 'hosted'])
  return { sandbox, folder, provider }
}

test('kb ingest --dry-run shows what would be embedded and its estimated cost, and sends nothing', async () => {
  const { sandbox, folder, provider } = await setUp()
  const dryRun = ['kb', 'ingest', 'papers', folder, '--dry-run', '--json']
  const plan = JSON.parse((await sandbox.wb([...dryRun, '--price', '0.5'])).stdout)
  expect(plan).toMatchObject({
    dryRun: true,
    files: 3,
    unchanged: 0,
    skipped: 1,
    failed: [],
    provider: 'ollama',
    modelName: 'm',
    pricePerMillionTokens: 0.5,
  })
  expect(plan.estimatedCost).toBeCloseTo((plan.estimatedTokens * 0.5) / 1_000_000, 10)
  expect(provider.received).toEqual([])
  expect((await sandbox.wb(['documents', 'list', 'papers', '--json'])).stdout.trim()).toBe('[]')

  await sandbox.wb(['kb', 'ingest', 'papers', folder])
  const sent = provider.received.flatMap(({ body }) => body.input ?? [])
  expect(sent).toHaveLength(plan.chunks)
  const tokens = sent.reduce((sum, text) => sum + approximateTokenCount(text), 0)
  expect(plan.estimatedTokens).toBe(tokens)
  const again = JSON.parse((await sandbox.wb(dryRun)).stdout)
  expect(again).toMatchObject({ files: 0, unchanged: 3, chunks: 0, estimatedTokens: 0, estimatedCost: null })
})

test('kb ingest --dry-run does not create a knowledge base', async () => {
  const { sandbox, folder } = await setUp()
  const { status, stdout } = await sandbox.wb(['kb', 'ingest', 'new', folder, '--dry-run'])
  expect(status).toBe(0)
  expect(stdout).toMatch(/model\tworkbase workbase-lsa\ntokens\tnone are sent/)
  expect((await sandbox.wb(['kb', 'list', '--json'])).stdout).not.toContain('"new"')
})

test('--price needs --dry-run and a number', async () => {
  const { wb } = createSandbox()
  for (const flags of [
    ['--price', '1'],
    ['--dry-run', '--price', 'x'],
    ['--dry-run', '--price=-1'],
  ])
    expect((await wb(['kb', 'ingest', 'papers', '.', ...flags])).status).toBe(2)
})
