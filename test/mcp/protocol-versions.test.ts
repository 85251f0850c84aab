import { resolve } from 'node:path'
import { Client as Client2026, StreamableHTTPClientTransport as Http2026 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2026 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientMarch2025 } from 'mcp-sdk-2025-03/client/index.js'
import { StdioClientTransport as StdioMarch2025 } from 'mcp-sdk-2025-03/client/stdio.js'
import { StreamableHTTPClientTransport as HttpMarch2025 } from 'mcp-sdk-2025-03/client/streamableHttp.js'
import { LATEST_PROTOCOL_VERSION as march2025 } from 'mcp-sdk-2025-03/types.js'
import { Client as ClientNovember2025 } from 'mcp-sdk-2025-11/client/index.js'
import { StdioClientTransport as StdioNovember2025 } from 'mcp-sdk-2025-11/client/stdio.js'
import { StreamableHTTPClientTransport as HttpNovember2025 } from 'mcp-sdk-2025-11/client/streamableHttp.js'
import { LATEST_PROTOCOL_VERSION as november2025 } from 'mcp-sdk-2025-11/types.js'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { apiKeys } from '../../src/contract/keys.ts'
import { createSandbox, serveWithApiKeys } from '../commands/sandbox.ts'
import { makeBase, makeWorkspace } from '../harness/resources.ts'

const bin = resolve('bin/run.js')
const here = createSandbox(afterAll)
const documentCount = 25
const passage = 'The ornithopter flaps its wings.'

/** Address of the server, and results of the scenario. */
let stage: { url: URL; key: string; workspace: string; knowledgeBaseId: string }

beforeAll(async () => {
  const { url, call } = await serveWithApiKeys(here)
  const { workspaceId, name: workspace } = await makeWorkspace({ call })
  const base = await makeBase({ call }, { workspaceId })
  for (let at = 1; at < documentCount; at++)
    await base.ingest(`Glider number ${at} does not flap.`, { sourceFilename: `glider${at}.txt` })
  await base.ingest(passage, { sourceFilename: 'wings.txt' })
  const body = { label: 'agent', scopes: ['read' as const] }
  const { plaintext: key } = await call(apiKeys.create, { params: { workspaceId }, body })
  stage = {
    url: new URL(`/api/v1/workspaces/${workspaceId}/mcp`, url),
    key,
    workspace,
    knowledgeBaseId: base.params.knowledgeBaseId,
  }
}, 60_000)

interface ToolAnswer {
  readonly content: readonly { readonly type: string; readonly text: string }[]
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
}

interface Cursor {
  readonly cursor?: string | undefined
}

interface Resource {
  readonly uri: string
  readonly name: string
}

/** Common interface of the official clients of all versions. */
interface OfficialClient {
  connect(transport: unknown): Promise<void>
  close(): Promise<void>
  getInstructions(): string | undefined
  listTools(page: Cursor): Promise<{ tools: { name: string }[]; nextCursor?: string }>
  callTool(call: { name: string; arguments: object }): Promise<ToolAnswer>
  listResources(page: Cursor): Promise<{ resources: Resource[]; nextCursor?: string }>
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>
  readResource(asked: { uri: string }): Promise<{ contents: { uri: string; text: string }[] }>
}

interface Version {
  readonly version: string
  readonly client: () => unknown
  readonly http: new (url: URL, options: { requestInit: RequestInit }) => unknown
  readonly stdio: new (options: Started) => unknown
}

interface Started {
  readonly command: string
  readonly args: string[]
  readonly env: Record<string, string>
  readonly cwd: string
}

const info = { name: 'test', version: '1' }
const versions: Version[] = [
  {
    version: march2025,
    client: () => new ClientMarch2025(info),
    http: HttpMarch2025,
    stdio: StdioMarch2025,
  },
  {
    version: november2025,
    client: () => new ClientNovember2025(info),
    http: HttpNovember2025,
    stdio: StdioNovember2025,
  },
  {
    version: '2026-07-28',
    client: () => new Client2026(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    http: Http2026,
    stdio: Stdio2026,
  },
]

const transports = {
  HTTP: ({ http: Http }: Version) =>
    new Http(stage.url, { requestInit: { headers: { authorization: `Bearer ${stage.key}` } } }),
  stdio: ({ stdio: Stdio }: Version) =>
    new Stdio({
      command: process.execPath,
      args: [bin, 'mcp', 'serve', '-w', stage.workspace],
      env: { ...here.env, WB_API_KEY: stage.key },
      cwd: here.home,
    }),
}

/** Returns all items of a list, and the number of pages. */
async function everything<T>(
  read: (page: Cursor) => Promise<{ items: T[]; nextCursor?: string | undefined }>,
) {
  const items: T[] = []
  let pages = 0
  let cursor: string | undefined
  do {
    const page = await read({ cursor })
    items.push(...page.items)
    cursor = page.nextCursor
    pages++
  } while (cursor !== undefined)
  return { items, pages }
}

const cases = versions.flatMap(version =>
  (Object.keys(transports) as (keyof typeof transports)[]).map(transport => [version, transport] as const),
)

describe('official clients', () => {
  test('cover three protocol versions', () => {
    expect(versions.map(({ version }) => version)).toEqual(['2025-03-26', '2025-11-25', '2026-07-28'])
  })

  test.each(
    cases.map(([version, transport]) => ({
      ...version,
      transport,
      make: () => transports[transport](version),
    })),
  )(
    'of $version can search and read, and get errors, over $transport',
    { timeout: 60_000 },
    async ({ client: open, make }) => {
      const client = open() as OfficialClient
      await client.connect(make())
      onTestFinished(() => client.close())
      expect(client.getInstructions()).toContain('list_knowledge_bases')
      const call = async (name: string, args: object) => {
        const { content, isError, _meta } = await client.callTool({ name, arguments: args })
        return {
          isError: isError ?? false,
          value: JSON.parse(content[0]!.text) as Record<string, string>[],
          nextCursor: _meta?.['workbase/nextCursor'] as string | undefined,
        }
      }

      const tools = await everything(async page => {
        const { tools: items, nextCursor } = await client.listTools(page)
        return { items, nextCursor }
      })
      expect(tools.items.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['search_kb', 'get_document']),
      )

      const { knowledgeBaseId } = stage
      const listed = await everything(async page => {
        const { value: items, nextCursor } = await call('list_documents', { knowledgeBaseId, ...page })
        return { items, nextCursor }
      })
      expect([listed.items.length, listed.pages]).toEqual([documentCount, 2])

      const [hit] = (await call('search_kb', { knowledgeBaseId, text: 'ornithopter', topK: 1 })).value
      expect(hit).toMatchObject({ content: passage, citation: 'wings.txt' })
      const { documentId } = hit!
      const document = await call('get_document', { knowledgeBaseId, documentId })
      expect(document).toMatchObject({
        isError: false,
        value: { text: passage, sourceFilename: 'wings.txt' },
      })

      const resources = await everything(async page => {
        const { resources: items, nextCursor } = await client.listResources(page)
        return { items, nextCursor }
      })
      const { uri } = resources.items.find(({ name }) => name === 'wings.txt')!
      expect(resources.items).toHaveLength(documentCount)
      expect((await client.readResource({ uri })).contents).toMatchObject([{ uri, text: passage }])
      const { resourceTemplates } = await client.listResourceTemplates()
      expect(resourceTemplates).toHaveLength(1)

      const refused = await call('ingest_text', { knowledgeBaseId, text: 'more' })
      expect(refused).toMatchObject({ isError: true, value: { outcome: 'denied', required: 'write:ingest' } })
      await expect(client.readResource({ uri: `${uri}0` })).rejects.toMatchObject({ code: -32_602 })
    },
  )
})
