/**
 * kill -9 of a server at random moments of an ingest; every acknowledged document must be there afterwards.
 *
 * npm run bench:durability -- [--rounds 50] [--seed 1]
 */
import { parseArgs } from 'node:util'
import { call, remove, type Server, startServer, temporaryFolder } from './server.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
})
const rounds = Number(values.rounds)
const documentsPerRound = 400
const killWithinMs = 600

/** Numbers from 0 to 1, the same for a seed. @see mulberry32 */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Outcome {
  status: number
  document?: { documentId: string }
}

function textOf(round: number, at: number): string {
  return `Document ${at} of round ${round}. `.repeat(1 + (at % 40))
}

/** Ingest until the stream breaks; ids in the order of their acknowledgement. */
async function ingest(server: Server, base: string, round: number): Promise<string[]> {
  const acknowledged: string[] = []
  const lines = Array.from({ length: documentsPerRound }, (_, at) =>
    JSON.stringify({ text: textOf(round, at) }),
  )
  try {
    const response = await fetch(`${server.url}${base}/ingest/batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: lines.join('\n'),
    })
    let rest = ''
    const decoder = new TextDecoder()
    for await (const part of response.body!) {
      const complete = (rest + decoder.decode(part, { stream: true })).split('\n')
      rest = complete.pop()!
      for (const line of complete) {
        const outcome = JSON.parse(line) as Outcome
        if (outcome.status === 201) acknowledged.push(outcome.document!.documentId)
      }
    }
  } catch {
    // The connection breaks when the server is killed; what was read before counts.
  }
  return acknowledged
}

const dataDir = temporaryFolder()
const next = random(Number(values.seed))
let server = await startServer(dataDir)
const { workspaceId } = await call<{ workspaceId: string }>(server, 'POST', '/api/v1/workspaces', {
  name: 'bench',
})
const bases = `/api/v1/workspaces/${workspaceId}/knowledge-bases`
const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(server, 'POST', bases, { name: 'kill' })
const base = `${bases}/${knowledgeBaseId}`

let acknowledged = 0
let lost = 0
let unsearchable = 0
let killedMidway = 0
for (let round = 0; round < rounds; round++) {
  const ingesting = ingest(server, base, round)
  await new Promise(resolve => setTimeout(resolve, next() * killWithinMs))
  process.kill(server.pid, 'SIGKILL')
  const ids = await ingesting
  if (ids.length > 0 && ids.length < documentsPerRound) killedMidway++
  acknowledged += ids.length
  server = await startServer(dataDir)
  for (const id of ids) {
    const document = await call<{ status: string; chunkTotal: number }>(
      server,
      'GET',
      `${base}/documents/${id}`,
    ).catch(() => undefined)
    if (document?.status !== 'ready') lost++
    const chunks = await call<unknown[]>(server, 'GET', `${base}/documents/${id}/chunks`).catch(() => [])
    if (chunks.length !== document?.chunkTotal) unsearchable++
  }
}
const last = await ingest(server, base, rounds)
await server.stop()
remove(dataDir)
console.log(
  `${rounds} kills, ${killedMidway} of them midway: ${acknowledged} documents acknowledged, ${lost} lost, ` +
    `${unsearchable} without their chunks; the next ingest took ${last.length} of ${documentsPerRound}`,
)
if (lost > 0 || unsearchable > 0 || last.length !== documentsPerRound) process.exitCode = 1
