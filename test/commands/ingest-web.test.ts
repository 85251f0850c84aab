import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packTar } from 'modern-tar'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { scratchTree } from '../cli/scratch-tree.ts'
import { listenOnLoopback } from '../fakes/listen-on-loopback.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'

/** Serves pages with an ETag on loopback. Returns the address, and the paths that were sent in full. */
async function serveSite(pages: Record<string, string>) {
  const sent: string[] = []
  const server = createServer(({ url = '', headers }, response) => {
    const page = pages[url]
    const etag = `"${page?.length}"`
    if (page === undefined) return response.writeHead(404).end()
    if (headers['if-none-match'] === etag) return response.writeHead(304).end()
    sent.push(url)
    response.writeHead(200, { 'content-type': 'text/html', etag }).end(page)
  })
  const { host, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return { origin: `http://${host}`, sent, pages }
}

async function ingest(sandbox: Sandbox, ...args: string[]) {
  const { stdout } = await sandbox.wb(['kb', 'ingest', 'handbook', '--create', '--json', ...args])
  return JSON.parse(stdout) as Record<string, unknown>
}

async function documentNames(sandbox: Sandbox): Promise<string[]> {
  const { stdout } = await sandbox.wb(['documents', 'list', 'handbook', '--json'])
  return (JSON.parse(stdout) as { sourceFilename: string }[])
    .map(({ sourceFilename }) => sourceFilename)
    .sort()
}

const page = (title: string, text: string) =>
  `<!doctype html><html><head><title>${title}</title></head><body>${text}</body></html>`

describe('web pages', () => {
  test('are refused on this machine without --allow-private', async () => {
    const sandbox = createSandbox()
    const { origin, sent } = await serveSite({ '/': page('Home', 'Welcome') })
    const refused = await sandbox.wb(['kb', 'ingest', 'handbook', '--create', `${origin}/`])
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('--allow-private') })
    expect(sent).toEqual([])
  })

  test('are stored with title and URL, without tags, and only when they change', async () => {
    const sandbox = createSandbox()
    const site = await serveSite({
      '/docs/': page('Handbook', 'Welcome <a href="keys">Keys</a>'),
      '/docs/keys': page('API keys', '<p>Rotate a key every <b>ninety</b> days.</p>'),
    })
    const args = [`${site.origin}/docs/`, '--depth', '1', '--allow-private']
    expect(await ingest(sandbox, ...args)).toMatchObject({ added: 2, failed: [] })
    expect(await documentNames(sandbox)).toEqual([`${site.origin}/docs/`, `${site.origin}/docs/keys`])
    const found = await sandbox.wb(['documents', 'show', `${site.origin}/docs/keys`, '--full', '--json'])
    expect(JSON.parse(found.stdout)).toMatchObject({
      text: 'Rotate a key every **ninety** days.',
      metadata: { title: 'API keys', url: `${site.origin}/docs/keys` },
    })
    site.sent.length = 0
    expect(await ingest(sandbox, ...args)).toMatchObject({ added: 0, unchanged: 2 })
    expect(site.sent).toEqual(['/docs/'])
    site.pages['/docs/keys'] = page('API keys', 'Rotate a key every thirty days.')
    expect(await ingest(sandbox, ...args)).toMatchObject({ replaced: 1, unchanged: 1 })
  })

  test('and files can be ingested together, in background jobs', async () => {
    const sandbox = createSandbox()
    const { origin } = await serveSite({ '/a': page('A', 'alpha') })
    const tree = scratchTree({ 'b.md': 'beta' })
    const { jobs } = await ingest(sandbox, tree, `${origin}/a`, '--allow-private', '--async')
    expect(jobs).toHaveLength(2)
    expect(await documentNames(sandbox)).toEqual(['b.md', `${origin}/a`])
  })

  test('can be added without a knowledge base', async () => {
    const sandbox = createSandbox()
    const { origin } = await serveSite({ '/guide/': page('A', 'alpha') })
    expect(await sandbox.wb(['add', `${origin}/guide/`, '--allow-private', '--create'])).toMatchObject({
      status: 0,
    })
    expect((await sandbox.wb(['kb', 'list', '--json'])).stdout).toContain('"name":"guide"')
  })
})

describe('repositories and archives', () => {
  test('are read like folders, and their copies are deleted', async () => {
    const sandbox = createSandbox()
    const root = scratchTree({ 'work/docs/keys.md': 'keys', 'work/.hidden.md': 'hidden' })
    const scratch = scratchTree({})
    vi.stubEnv('TMPDIR', scratch)
    const work = join(root, 'work')
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.com', ...args], { cwd: work })
    git('init', '--quiet')
    git('add', '.')
    git('commit', '--quiet', '-m', 'first')
    git('clone', '--quiet', '--bare', '.', join(root, 'handbook.git'))
    const body = 'refunds'
    const entry = { header: { name: 'project-1.0/docs/refunds.md', size: body.length }, body }
    writeFileSync(join(root, 'project.tar'), await packTar([entry]))
    const args = [
      pathToFileURL(join(root, 'handbook.git')).href,
      join(root, 'project.tar'),
      '--allow-private',
    ]
    expect(await ingest(sandbox, ...args)).toMatchObject({ added: 2, failed: [] })
    expect(await documentNames(sandbox)).toEqual(['docs/keys.md', 'docs/refunds.md'])
    expect(await ingest(sandbox, ...args)).toMatchObject({ unchanged: 2 })
    expect(readdirSync(scratch)).toEqual([])
  })

  test('can have the name of a folder, which is then read', async () => {
    const root = scratchTree({ 'project.tar/a.md': 'alpha' })
    const sandbox = createSandbox()
    expect(await ingest(sandbox, join(root, 'project.tar'))).toMatchObject({ added: 1, failed: [] })
  })

  test('that cannot be read do not stop the others', async () => {
    const sandbox = createSandbox()
    const root = scratchTree({ 'broken.tar': 'broken', 'a.md': 'alpha' })
    const summary = await ingest(
      sandbox,
      join(root, 'broken.tar'),
      'https://10.0.0.1/a.git',
      join(root, 'a.md'),
    )
    expect(summary).toMatchObject({
      added: 1,
      failed: [
        { path: join(root, 'broken.tar'), code: 'extraction_failed' },
        { path: 'https://10.0.0.1/a.git', code: 'address_refused' },
      ],
    })
  })
})
