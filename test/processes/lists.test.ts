import { expect, test } from 'vitest'
import { newId } from '../../src/base/id.ts'
import { api } from '../../src/contract/index.ts'
import type { Route } from '../../src/contract/route.ts'
import type { AnyTable, ColumnValue, RowStore, RowTable, Write } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { messageRow } from '../harness/agents.ts'
import { makeBase } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

/*
 * Reads lists page by page while rows are inserted and deleted. The rows are copies of an existing row, written directly
 * to the store because only reading is tested.
 */

/** Ten pages. */
const rowsPerList = 2_000
/** Rows of one list, to show that the number of pages makes no difference. */
const rowsOfLongList = 10_000
const slice = 1_000
/** Rows that are inserted and deleted between two pages. */
const disturbed = 20
const timeout = 60_000

type Row = Record<string, unknown>

/** A list: its table, the row to copy, and fields that differ between copies besides the ID. */
interface Listing {
  readonly table: AnyTable
  readonly id: string
  readonly index?: string
  readonly prefix?: (place: Place) => readonly ColumnValue[]
  readonly differ?: (n: number) => Row
  /** The field of an item with its ID, if it differs from the column. */
  readonly shownId?: string
}

type Place = Awaited<ReturnType<typeof stage>>

const ofBase = (place: Place) => [place.workspaceId, place.knowledgeBaseId]
const W = '/api/v1/workspaces/:workspaceId'
const KB = `${W}/knowledge-bases/:knowledgeBaseId`

/** Every list of the API, by path. */
const listings: Readonly<Record<string, Listing>> = {
  '/api/v1/workspaces': {
    table: tables.workspaces,
    id: 'workspaceId',
    index: 'byCreation',
    prefix: () => [],
    differ: n => ({ name: `copy ${n}` }),
  },
  '/api/v1/audit': { table: tables.audit, id: 'auditId' },
  '/api/v1/secret-releases': {
    table: tables.secretReleases,
    id: 'releaseId',
    index: 'byOrdinal',
    prefix: () => [],
  },
  [`${W}/audit`]: { table: tables.audit, id: 'auditId' },
  [`${W}/audit/decisions`]: { table: tables.policyAudit, id: 'decisionId' },
  [`${W}/api-keys`]: {
    table: tables.apiKeys,
    id: 'keyId',
    differ: n => ({ prefix: String(n).padStart(12, '0') }),
  },
  [`${W}/principals`]: { table: tables.principals, id: 'principalId' },
  [`${W}/chunking-services`]: { table: tables.chunkingServices, id: 'chunkingServiceId' },
  [`${W}/embedding-services`]: { table: tables.embeddingServices, id: 'embeddingServiceId' },
  [`${W}/reranking-services`]: { table: tables.rerankingServices, id: 'rerankingServiceId' },
  [`${W}/llm-services`]: { table: tables.llmServices, id: 'llmServiceId' },
  [`${W}/mcp-servers`]: { table: tables.mcpServers, id: 'mcpServerId' },
  [`${W}/knowledge-bases`]: {
    table: tables.knowledgeBases,
    id: 'knowledgeBaseId',
    differ: n => ({ vectorCollection: `copy${n}` }),
  },
  [`${KB}/filters`]: { table: tables.knowledgeFilters, id: 'knowledgeFilterId' },
  [`${KB}/documents`]: {
    table: tables.documents,
    id: 'documentId',
    index: 'byKnowledgeBase',
    prefix: ofBase,
    differ: () => ({ ingestKey: null, nameKey: null }),
  },
  [`${KB}/documents/trash`]: {
    table: tables.deletedDocuments,
    id: 'entryId',
    index: 'byKnowledgeBase',
    prefix: ofBase,
  },
  [`${W}/jobs`]: { table: tables.jobs, id: 'jobId' },
  [`${W}/agents`]: { table: tables.agents, id: 'agentId' },
  [`${W}/conversations`]: { table: tables.conversations, id: 'conversationId' },
  [`${W}/agents/:agentId/conversations`]: { table: tables.conversations, id: 'conversationId' },
  [`${W}/agents/:agentId/conversations/:conversationId/messages`]: {
    table: tables.messages,
    id: 'messageId',
  },
  [`${W}/agents/:agentId/conversations/:conversationId/attachments`]: {
    table: tables.attachments,
    id: 'attachmentId',
  },
}

/** A runtime with a workspace that contains one of everything. */
async function stage() {
  let rows: RowStore | undefined
  const wb = await open({
    rows: store => {
      rows = store
      return store
    },
  })
  const base = await makeBase(wb)
  const { workspaceId, knowledgeBaseId } = base.params
  const at = `/api/v1/workspaces/${workspaceId}`
  const make = async (path: string, json: object) => {
    const { status, body, text } = await wb.send(`POST ${path}`, json)
    expect([201, 202], text).toContain(status)
    return body
  }
  await make(`${at}/api-keys`, { label: 'one' })
  await make(`${at}/principals`, { principalId: 'one' })
  await make(`${at}/reranking-services`, { name: 'one', provider: 'p', modelName: 'm' })
  await make(`${at}/mcp-servers`, { label: 'one', url: 'https://tools.example.com/mcp' })
  await make(`${base.path}/filters`, { name: 'one', filter: {} })
  await make(`${base.path}/ingest?async=true`, { text: 'The wing flutters.' })
  const { document } = await make(`${base.path}/ingest`, { text: 'A deleted text.' })
  const { documentId } = document as { documentId: string }
  expect((await wb.send(`DELETE ${base.path}/documents/${documentId}`)).status).toBe(204)
  const { items } = (await wb.send(`GET ${at}/agents`)).body as { items: { agentId: string }[] }
  const { agentId } = items[0]!
  const { conversationId } = await make(`${at}/agents/${agentId}/conversations`, {})
  const form = new FormData()
  form.set('file', new File(['A text.'], 'one.txt'))
  await make(`${at}/agents/${agentId}/conversations/${conversationId}/attachments`, form)
  await makeRelease(wb)
  const place = {
    wb,
    rows: rows!,
    workspaceId,
    knowledgeBaseId,
    agentId,
    conversationId: String(conversationId),
  }
  await place.rows.atomic([
    { op: 'insert', table: tables.messages, row: messageRow(place, 0) },
    { op: 'insert', table: tables.policyAudit, row: decisionRow(place) },
  ])
  return place
}

function decisionRow({ workspaceId, knowledgeBaseId }: Pick<Place, 'workspaceId' | 'knowledgeBaseId'>) {
  const ts = new Date().toISOString()
  return {
    workspaceId,
    auditDay: ts.slice(0, 10),
    ts,
    decisionId: newId(),
    principalId: 'one',
    knowledgeBaseId,
    resourceId: '*',
    action: 'list',
    decision: 'filter',
    reason: 'filtered',
    compiledFilterJson: null,
  } as const
}

async function makeRelease(wb: TestRuntime): Promise<void> {
  const release = { ref: 'env:TOOL_KEY', host: 'tools.example.com' }
  const { status, text } = await wb.sendAsOperator('POST /api/v1/secret-releases', release)
  expect(status, text).toBe(201)
}

/** Lists of the API: routes with a cursor that return pages. */
const declared = Object.values(api)
  .flatMap(topic => Object.values(topic) as Route[])
  .filter(
    // The answers about policies are computed, and exports contain several tables.
    ({ path, query, replies }) =>
      !path.startsWith(`${W}/policy/`) &&
      path !== `${KB}/export` &&
      query &&
      'cursor' in shapeOf(query) &&
      'nextCursor' in shapeOf(replies[200]),
  )
  .map(({ path }) => path)

function shapeOf(schema: unknown): object {
  return (schema as { shape?: object } | null)?.shape ?? {}
}

test('covers every list', () => {
  expect(Object.keys(listings).sort()).toEqual([...declared].sort())
})

test.each(
  declared.map((path): [string, number] => [path, path === `${KB}/documents` ? rowsOfLongList : rowsPerList]),
)(
  'GET %s returns each of %i unchanged rows once during concurrent changes',
  { timeout },
  async (path, count) => {
    const place = await stage()
    const { rows, wb } = place
    const { table, id, index = 'byWorkspace', prefix, differ } = listings[path]!
    const [original] = await rows.list(table as RowTable<Row>, {
      index,
      prefix: prefix?.(place) ?? [place.workspaceId],
      limit: 1,
    })
    let made = 0
    const copies = (count: number): Row[] =>
      Array.from({ length: count }, () => ({ ...original!.row, [id]: newId(), ...differ?.(made++) }))
    const keyOf = (row: Row) => table.key.map(column => row[column] as ColumnValue)
    const insert = (some: Row[]) => some.map((row): Write => ({ op: 'insert', table, row }))
    const lasting = copies(count / 2)
    const passing = copies(count / 2)
    const mixed = lasting.flatMap((row, n) => [row, passing[n]!])
    for (let from = 0; from < mixed.length; from += slice)
      expect(await rows.atomic(insert(mixed.slice(from, from + slice)))).toEqual({ ok: true })

    const seen: string[] = []
    const target = path.replaceAll(/:(\w+)/g, (_, name: keyof Place) => String(place[name]))
    let cursor: string | null = null
    do {
      const more: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const { status, text, body } = await wb.sendAsOperator(`GET ${target}?limit=200${more}`)
      expect(status, text.slice(0, 300)).toBe(200)
      seen.push(...(body.items as Row[]).map(item => String(item[id])))
      cursor = body.nextCursor as string | null
      const going = passing.splice((seen.length * 7) % Math.max(1, passing.length - disturbed), disturbed)
      const gone = going.map((row): Write => ({ op: 'delete', table, key: keyOf(row) }))
      expect(await rows.atomic([...gone, ...insert(copies(disturbed))])).toEqual({ ok: true })
    } while (cursor !== null)

    expect(new Set(seen).size, 'no row is shown twice').toBe(seen.length)
    const shown = new Set(seen)
    expect(
      lasting.filter(row => !shown.has(String(row[id]))),
      'rows that are missing',
    ).toEqual([])
  },
)
