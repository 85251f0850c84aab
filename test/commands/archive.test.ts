import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test, vi } from 'vitest'
import { kb } from '../../src/contract/knowledge.ts'
import { type Sandbox, sandboxFactory } from './sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A knowledge base whose file has several pages. */
const handbook = sandboxFactory(async ({ wb, home }) => {
  mkdirSync(join(home, 'docs'))
  for (let n = 0; n < 12; n++)
    writeFileSync(
      join(home, 'docs', `${n}.md`),
      `# Glider ${n}\n\nGlider ${n} flies.\n\n${`Sentence about wing ${n}. `.repeat(12_000)}\n`,
    )
  const created = await wb(['kb', 'ingest', 'handbook', join(home, 'docs'), '--create', '--no-wait'])
  expect(created.status, created.stderr).toBe(0)
})

const run = async ({ wb }: Sandbox, ...args: string[]) => {
  const { status, stdout, stderr } = await wb(args)
  expect(status, stderr).toBe(0)
  return stdout.trim()
}
const documentsOf = async (sandbox: Sandbox, name: string) =>
  (JSON.parse(await run(sandbox, 'documents', 'list', name, '--json')) as Record<string, unknown>[]).map(
    ({ sourceFilename, chunkTotal, contentHash }) => ({ sourceFilename, chunkTotal, contentHash }),
  )

describe.each(['in process', 'with a server'])('wb kb export and import, %s', way => {
  test('copy a knowledge base through a private file', async () => {
    const sandbox = await handbook()
    if (way === 'with a server') await sandbox.serve()
    const file = join(sandbox.home, 'handbook.wbkb')
    expect(await run(sandbox, 'kb', 'export', 'handbook', file)).toBe(file)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(existsSync(`${file}.partial.json`)).toBe(false)
    const refused = await sandbox.wb(['kb', 'export', 'handbook', file])
    expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining('--force') })
    await run(sandbox, 'kb', 'import', file, '--name', 'copy')
    expect(await documentsOf(sandbox, 'copy')).toEqual(await documentsOf(sandbox, 'handbook'))
    expect(await sandbox.wb(['kb', 'import', file, '--name', 'copy'])).toMatchObject({
      status: 5,
      stderr: expect.stringContaining('add --name to import it under another name'),
    })
    const ambiguous = await sandbox.wb(['documents', 'show', '3.md'])
    expect(ambiguous).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/add --kb with the knowledge base\n.* {2}handbook {2}.*\n.* {2}copy {2}/),
    })
    expect((await sandbox.wb(['doctor', '--deep', '--json'])).status).toBe(0)
  })
})

test('an interrupted export continues with the next page', async () => {
  const sandbox = await handbook()
  const file = join(sandbox.home, 'handbook.wbkb')
  const { call } = await sandbox.serve()
  await run(sandbox, 'kb', 'export', 'handbook', file)
  const whole = gunzipSync(readFileSync(file)).toString('utf8')
  const { workspaceId, knowledgeBaseId } = JSON.parse(await run(sandbox, 'kb', 'show', 'handbook', '--json'))
  const page = await call(kb.export, { params: { workspaceId, knowledgeBaseId }, query: {} })
  expect(page).toMatchObject({ isComplete: false, nextCursor: expect.any(String) })
  const part = gzipSync(`${page.lines.join('\n')}\n`)
  writeFileSync(`${file}.partial`, Buffer.concat([part, Buffer.from('cut off')]))
  const state = { knowledgeBaseId, all: false, next: { cursor: page.nextCursor, bytes: part.length } }
  writeFileSync(`${file}.partial.json`, JSON.stringify(state))
  const { isResumed } = JSON.parse(await run(sandbox, 'kb', 'export', 'handbook', file, '--force', '--json'))
  expect(isResumed).toBe(true)
  const lines = (text: string) => text.split('\n').slice(1, -2)
  expect(lines(gunzipSync(readFileSync(file)).toString('utf8'))).toEqual(lines(whole))
  await run(sandbox, 'kb', 'import', file, '--name', 'copy')
})

test('an export starts again if its cursor is invalid, because the embedding service has changed', async () => {
  const sandbox = await handbook()
  const file = join(sandbox.home, 'handbook.wbkb')
  await run(sandbox, 'kb', 'export', 'handbook', file)
  const whole = gunzipSync(readFileSync(file)).toString('utf8')
  const { knowledgeBaseId } = JSON.parse(await run(sandbox, 'kb', 'show', 'handbook', '--json'))
  const part = gzipSync('{"another":"embedding"}\n')
  writeFileSync(`${file}.partial`, part)
  const place = { cursor: 'of-another-service', bytes: part.length }
  writeFileSync(
    `${file}.partial.json`,
    JSON.stringify({ knowledgeBaseId, all: false, next: place, whole: place }),
  )
  await run(sandbox, 'kb', 'export', 'handbook', file, '--force')
  const lines = (text: string) => text.split('\n').slice(1, -2)
  expect(lines(gunzipSync(readFileSync(file)).toString('utf8'))).toEqual(lines(whole))
})

test('a damaged or truncated file changes nothing', async () => {
  const sandbox = await handbook()
  const file = join(sandbox.home, 'handbook.wbkb')
  await run(sandbox, 'kb', 'export', 'handbook', file)
  const text = gunzipSync(readFileSync(file)).toString('utf8')
  const bytes = readFileSync(file)
  const files: [Buffer, string][] = [
    [bytes.subarray(0, bytes.length / 2), 'archive_damaged'],
    [bytes.subarray(0, bytes.length - 1), 'archive_damaged'],
    [gzipSync(text.replace('wing 3', 'wing 4')), 'archive_damaged'],
    [gzipSync(text.split('\n').slice(0, -2).join('\n')), 'archive_damaged'],
    [gzipSync(`${text}{"document":{}}\n`), 'archive_damaged'],
    [Buffer.from('text'), 'archive_not_supported'],
  ]
  for (const [content, code] of files) {
    writeFileSync(file, content)
    const { status, stderr } = await sandbox.wb(['kb', 'import', file, '--name', 'copy'])
    expect({ status, code: stderr.includes(`(${code})`) }, stderr).toEqual({ status: 1, code: true })
  }
  expect(await run(sandbox, 'kb', 'list')).not.toContain('copy')
})

test('an import whose server is killed leaves a marked knowledge base, and continues', async () => {
  const sandbox = await handbook()
  const file = join(sandbox.home, 'handbook.wbkb')
  await run(sandbox, 'kb', 'export', 'handbook', file)
  const lines = gunzipSync(readFileSync(file)).toString('utf8').trimEnd().split('\n')
  const server = await sandbox.spawnServe()
  const { workspaceId } = JSON.parse(await run(sandbox, 'kb', 'show', 'handbook', '--json'))
  const begun = await server.call(kb.beginImport, {
    params: { workspaceId },
    body: { header: lines[0]!, name: 'copy' },
  })
  const params = { workspaceId, knowledgeBaseId: begun.knowledgeBase.knowledgeBaseId }
  await server.call(kb.importLines, { params, body: { from: 1, lines: lines.slice(1, 40) } })
  const more = server.call(kb.importLines, { params, body: { from: 40, lines: lines.slice(40, 80) } })
  server.process.kill('SIGKILL')
  await more.catch(() => {})
  await server.ended
  expect(await run(sandbox, 'kb', 'show', 'copy')).toContain('import incomplete')
  const { isResumed } = JSON.parse(await run(sandbox, 'kb', 'import', file, '--name', 'copy', '--json'))
  expect(isResumed).toBe(true)
  expect(await run(sandbox, 'kb', 'show', 'copy')).not.toContain('incomplete')
  expect(await documentsOf(sandbox, 'copy')).toEqual(await documentsOf(sandbox, 'handbook'))
  expect((await sandbox.wb(['doctor', '--deep', '--json'])).status).toBe(0)
})
