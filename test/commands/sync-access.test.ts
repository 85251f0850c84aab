import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { listenOnLoopback } from '../fakes/listen-on-loopback.ts'
import { createSandbox, serveWithApiKeys } from './sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

interface ListedDocument {
  readonly documentId: string
  readonly sourceFilename: string
  readonly ownerPrincipalId: string
  readonly visibleTo: readonly string[]
  readonly contentHash: string | null
}

const firstText = 'The first version.'
const nextText = 'The next version.'

/** A folder with one file, in a workspace with row-level access in which `alice` may write. */
async function openFolder({ role }: { role: 'admin' | 'editor' }) {
  const sandbox = createSandbox()
  const { url } = await serveWithApiKeys(sandbox)
  await sandbox.wb(['workspaces', 'create', 'acme'])
  await sandbox.wb(['workspaces', 'update', 'acme', '--rlac'])
  await sandbox.wb(['kb', 'create', 'handbook', '-w', 'acme'])
  const request = async (token: string, line: string, body?: object) => {
    const [method, path] = line.split(' ') as [string, string]
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`${url}/api/v1/workspaces${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, text, body: text === '' ? {} : JSON.parse(text) }
  }
  const operator = sandbox.env.WB_API_KEY!
  const { workspaceId } = (await request(operator, 'GET ')).body.items[0]
  const bases = `/${workspaceId}/knowledge-bases`
  const { knowledgeBaseId } = (await request(operator, `GET ${bases}`)).body.items[0]
  const base = `${bases}/${knowledgeBaseId}`
  const keyOf = async (principalId: string, fields: object) => {
    const key = { label: principalId, principalId, ...fields }
    return String((await request(operator, `POST /${workspaceId}/api-keys`, key)).body.plaintext)
  }
  const syncing = await keyOf('sync', { role })
  const alice = await keyOf('alice', { role: 'editor' })
  const folder = join(sandbox.home, 'docs')
  mkdirSync(folder)
  const write = (text: string) => writeFileSync(join(folder, 'secret.md'), `${text}\n`)
  write(firstText)
  const list = async (token: string): Promise<ListedDocument[]> =>
    (await request(token, `GET ${base}/documents`)).body.items
  return {
    write,
    list,
    base,
    operator,
    syncing,
    alice: (line: string, body?: object) => request(alice, line, body),
    asSyncing: (line: string, body?: object) => request(syncing, line, body),
    listAsAlice: () => list(alice),
    ingest: (...args: string[]) =>
      sandbox.wb(['kb', 'ingest', 'handbook', '-w', 'acme', '--json', ...args], {
        env: { WB_API_KEY: syncing },
      }),
    async sync(...flags: string[]) {
      const args = ['kb', 'sync', 'handbook', folder, '-w', 'acme', '--as', 'docs', '--yes', ...flags]
      const result = await sandbox.wb(args, { env: { WB_API_KEY: syncing } })
      expect(result.status, result.stderr).toBe(0)
      return result
    },
  }
}

const planted = {
  sourceFilename: 'secret.md',
  metadata: { syncFolder: 'docs', fileHash: '0'.repeat(64) },
  visibleTo: ['*'],
}

test.each(['admin', 'editor'] as const)(
  'a document that another principal adds with the marks of a folder does not change what a sync with a key of role %s stores',
  async role => {
    const { write, sync, list, alice, listAsAlice, base, operator, syncing } = await openFolder({ role })
    await sync()
    const added = await alice(`POST ${base}/ingest`, { text: 'Planted.', ...planted })
    expect(added.status).toBe(201)
    const before = await listAsAlice()
    write(nextText)
    await sync()
    expect(await listAsAlice()).toEqual(before)
    const own = (await list(syncing)).filter(({ ownerPrincipalId }) => ownerPrincipalId === 'sync')
    expect(own).toMatchObject([{ sourceFilename: 'secret.md', visibleTo: ['sync'] }])
    expect((await list(operator)).length).toBe(2)
    const { text } = await alice(`POST ${base}/search`, { text: 'version' })
    expect(text).not.toContain(nextText)
  },
)

test('a changed file gets the default visibility if several documents of the caller have its name', async () => {
  const { write, sync, asSyncing, listAsAlice, base } = await openFolder({ role: 'editor' })
  await sync()
  expect((await asSyncing(`POST ${base}/documents`, planted)).status).toBe(201)
  expect(await listAsAlice()).toHaveLength(1)
  write(nextText)
  await sync()
  expect(await listAsAlice()).toEqual([])
})

test('another principal can neither mark a document for another file, nor bring back a deleted one', async () => {
  const { write, sync, asSyncing, alice, listAsAlice, base } = await openFolder({ role: 'editor' })
  await sync()
  const [document] = (await asSyncing(`GET ${base}/documents`)).body.items
  const path = `${base}/documents/${document.documentId}`
  expect((await asSyncing(`PATCH ${path}`, { visibleTo: ['*'] })).status).toBe(200)
  const marked = { ...document.metadata, fileHash: '1'.repeat(64) }
  for (const change of [{ metadata: marked }, { contentHash: 'other' }, { sourceFilename: 'other.md' }])
    expect((await alice(`PATCH ${path}`, change)).status).toBe(403)
  expect((await alice(`PATCH ${path}`, { metadata: { ...document.metadata, lang: 'en' } })).status).toBe(200)
  expect((await asSyncing(`DELETE ${path}`)).status).toBe(204)
  const [entry] = (await alice(`GET ${base}/documents/trash`)).body.items
  expect((await alice(`POST ${base}/documents/trash/${entry.entryId}/restore`)).status).toBe(403)
  write(nextText)
  await sync()
  expect(await listAsAlice()).toEqual([])
})

test('a document of another owner does not decide that a web page is unchanged', async () => {
  const { alice, base, ingest, listAsAlice } = await openFolder({ role: 'editor' })
  const server = createServer(({ headers }, response) => {
    if (headers['if-none-match'] === '"1"') response.writeHead(304).end()
    else response.writeHead(200, { 'content-type': 'text/html', etag: '"1"' }).end('<p>The page.')
  })
  const { host, close } = await listenOnLoopback(server)
  onTestFinished(close)
  const url = `http://${host}/`
  const metadata = { url, etag: '"1"' }
  const planted = { text: 'Planted.', sourceFilename: url, metadata, visibleTo: ['*'] }
  expect((await alice(`POST ${base}/ingest`, planted)).status).toBe(201)
  const { stdout } = await ingest(url, '--allow-private')
  expect(JSON.parse(stdout)).toMatchObject({ added: 1, unchanged: 0 })
  expect(await listAsAlice()).toHaveLength(1)
})
