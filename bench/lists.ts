/**
 * Compares the time of a page near the end of a long list with that of the first page of a short list, alternating.
 *
 * npm run bench:lists
 */
import { call, remove, startServer, unlimited } from './server.ts'
import { median, table } from './statistics.ts'

const pageRows = 100
const longRows = 10_000
const depth = 9_900
const rounds = 400
const writersAtOnce = 16

interface Page {
  readonly items: unknown[]
  readonly nextCursor: string | null
}

const server = await startServer(undefined, { config: unlimited })
try {
  const { workspaceId } = await call<{ workspaceId: string }>(server, 'POST', '/api/v1/workspaces', {
    name: 'bench',
  })
  const short = await documentsOf('short', workspaceId, pageRows)
  const long = await documentsOf('long', workspaceId, longRows)
  const targets = {
    [`first page of ${pageRows} rows`]: `${short}?limit=${pageRows}`,
    [`first page of ${longRows} rows`]: `${long}?limit=${pageRows}`,
    [`page at row ${depth} of ${longRows}`]: `${long}?limit=${pageRows}&cursor=${await cursorAt(long, depth)}`,
  }
  const times = new Map<string, number[]>(Object.keys(targets).map(name => [name, []]))
  for (let round = 0; round < rounds; round++)
    for (const [name, path] of Object.entries(targets)) times.get(name)!.push(await timed(path))
  const [base] = [...times.values()].map(median)
  const rows = [...times].map(([name, sample]) => [
    name,
    `${median(sample).toFixed(2)} ms`,
    (median(sample) / base!).toFixed(2),
  ])
  console.log(table(['list', 'time', 'ratio'], rows))
} finally {
  await server.stop()
  remove(server.dataDir)
}

/** Creates a list of `count` documents, and returns its path. */
async function documentsOf(name: string, workspaceId: string, count: number): Promise<string> {
  const bases = `/api/v1/workspaces/${workspaceId}/knowledge-bases`
  const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(server, 'POST', bases, { name })
  const path = `${bases}/${knowledgeBaseId}/documents`
  let created = 0
  const write = async () => {
    while (created < count) await call(server, 'POST', path, { sourceFilename: `${created++}.md` })
  }
  await Promise.all(Array.from({ length: writersAtOnce }, write))
  return path
}

async function cursorAt(path: string, row: number): Promise<string> {
  let cursor = ''
  for (let read = 0; read < row; read += pageRows) {
    const more = cursor && `&cursor=${cursor}`
    const page = await call<Page>(server, 'GET', `${path}?limit=${pageRows}${more}`)
    cursor = encodeURIComponent(page.nextCursor!)
  }
  return cursor
}

async function timed(path: string): Promise<number> {
  const startedAt = performance.now()
  const { items } = await call<Page>(server, 'GET', path)
  const took = performance.now() - startedAt
  if (items.length !== pageRows) throw new Error(`${path} returned ${items.length} rows`)
  return took
}
