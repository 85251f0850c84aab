/**
 * Measures the share of questions for which the tool `search_kb` returns a relevant document, on a collection
 * in BEIR format. A model can request up to eight passages; for comparison, ten come from a search without
 * the tool.
 *
 * npm run bench:search-tool -- [DATA_FOLDER]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noPrincipal } from '../src/access/row-access.ts'
import { anonymousContext } from '../src/access/subject.ts'
import type { ToolContext } from '../src/agents/tools/tool.ts'
import { createEnvironment } from '../src/config/config-environment.ts'
import { loadConfig } from '../src/config/load-config.ts'
import { openRuntime, type RuntimeOverrides } from '../src/runtime.ts'
import { cranfield, readEntries, readRelevantIds } from '../test/harness/beir.ts'
import { openAccess } from '../test/harness/open-access.ts'
import { table } from './statistics.ts'

type Tools = Parameters<NonNullable<RuntimeOverrides['tools']>>[0]

const folder = process.argv[2] ?? cranfield
const { signal } = new AbortController()

const dataDir = mkdtempSync(join(tmpdir(), 'wb-bench-'))
const environment = createEnvironment({})
let tools: Tools | undefined
const runtime = await openRuntime(
  {
    config: loadConfig({ path: null }, environment).config,
    environment,
    dataDir,
    threads: true,
    loopback: true,
    server: false,
    log: { debug() {}, info() {}, warn: console.error, error: console.error },
  },
  {
    tools: opened => {
      tools = opened
    },
  },
)

async function send(path: string, body: string, type = 'application/json'): Promise<string> {
  const headers = { 'content-type': type }
  const answer = await runtime.fetch(
    new Request(`http://localhost/api/v1/workspaces${path}`, { method: 'POST', headers, body }),
  )
  return answer.text()
}

async function post<T>(path: string, body: object): Promise<T> {
  return JSON.parse(await send(path, JSON.stringify(body))) as T
}

/** Ingests the collection. Returns the document IDs of the collection by the IDs of the knowledge base. */
async function ingest(base: string): Promise<Map<string, string>> {
  const body = readEntries(folder, 'corpus.jsonl')
    .filter(({ text }) => text)
    .map(({ _id, title, text }) => JSON.stringify({ text, sourceDocId: _id, metadata: { title } }))
  const answer = await send(`${base}/ingest/batch`, body.join('\n'), 'application/x-ndjson')
  const ids = new Map<string, string>()
  for (const line of answer.split('\n').filter(Boolean)) {
    const { document } = JSON.parse(line) as { document?: { documentId: string; sourceDocId: string } }
    if (document) ids.set(document.documentId, document.sourceDocId)
  }
  return ids
}

try {
  const { workspaceId } = await post<{ workspaceId: string }>('', { name: 'bench' })
  const bases = `/${workspaceId}/knowledge-bases`
  const { knowledgeBaseId } = await post<{ knowledgeBaseId: string }>(bases, { name: 'cranfield' })
  const ids = await ingest(`${bases}/${knowledgeBaseId}`)
  await runtime.settle({ signal, onProgress() {} })
  const auth = anonymousContext('disabled')
  const offer = await tools!.toolbox.forAgent({ workspaceId, toolIds: ['search_kb'] }, auth, signal)
  const [search] = offer.tools
  const rowAccess = (id: string) => openAccess(noPrincipal, id)
  const caller = { auth, client: '', reauthorize: async () => {}, rowAccess, signal, requestId: 'bench' }
  const context: ToolContext = {
    workspaceId,
    caller,
    knowledgeBaseIds: [],
    passageTokens: 8_000,
    signal,
    cite: () => 1,
    addSource: () => {},
  }
  const ofTool = async (query: string, limit: number) => {
    const { content } = await search!.call({ query, limit }, context)
    const { results } = JSON.parse(content) as { results: { documentId: string }[] }
    return results.map(({ documentId }) => ids.get(documentId)!)
  }
  const ofSearch = async (text: string, topK: number) => {
    const path = `${bases}/${knowledgeBaseId}/search`
    const hits = await post<{ payload: { documentId: string } }[]>(path, { text, topK })
    return hits.map(({ payload }) => ids.get(payload.documentId)!)
  }
  const relevant = readRelevantIds(folder)
  const asked = readEntries(folder, 'queries.jsonl').filter(({ _id }) => relevant.has(_id))
  const rows: string[][] = []
  for (const [passages, ask] of [
    [5, ofTool],
    [8, ofTool],
    [10, ofSearch],
  ] as const) {
    let found = 0
    for (const { _id, text } of asked)
      if ((await ask(text, passages)).some(id => relevant.get(_id)!.has(id))) found++
    const share = ((100 * found) / asked.length).toFixed(1)
    const source = ask === ofTool ? 'search_kb' : 'the search of the API'
    rows.push([`first ${passages} of ${source}`, `${found} of ${asked.length}`, `${share} %`])
  }
  console.log(table(['passages', 'questions with a relevant document', 'share'], rows))
} finally {
  await runtime.close()
  rmSync(dataDir, { recursive: true, force: true })
}
