/**
 * Kills a server (`kill -9`) at random moments while it ingests and fits. After each kill, every acknowledged
 * document must be stored with all its chunks, and no document may be incomplete.
 *
 * npm run bench:durability -- [--rounds 50] [--seed 1]
 */
import { request } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { parseArgs } from 'node:util'
import { randomNumbers } from '../src/base/random-numbers.ts'
import { SqliteConnection } from '../src/storage/sqlite/connection.ts'
import Database from '../src/storage/sqlite/driver.ts'
import { findPostingFaults, indexedRecords } from '../src/storage/sqlite/postings/check-postings.ts'
import { findActivePostingIndex } from '../src/storage/sqlite/postings/index-rows.ts'
import { call, remove, type Server, startServer, temporaryFolder } from './server.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
})
const rounds = Number(values.rounds)
/** Number of documents that a round sends: more than the server can ingest before the kill. */
const documentsMax = 20_000
const lastDocuments = 400
/** Maximum time between the first acknowledgement and the kill. */
const killWithinMs = 500

interface Outcome {
  status: number
  document?: { documentId: string }
}

function textOf(round: number, at: number): string {
  return `Document ${at} of round ${round}. `.repeat(1 + (at % 40))
}

function* linesOf(round: number, count: number): Generator<string> {
  for (let at = 0; at < count; at++) yield `${JSON.stringify({ text: textOf(round, at) })}\n`
}

interface Ingesting {
  /** Ids in order of acknowledgement. */
  readonly acknowledged: string[]
  /** Resolves at the first acknowledgement. */
  readonly began: Promise<void>
  /** Resolves when the stream ends or breaks. */
  readonly ended: Promise<void>
}

/** Sends documents as one stream, and collects the acknowledged ids while it runs. */
function ingest(server: Server, base: string, round: number, count: number): Ingesting {
  const acknowledged: string[] = []
  const { promise: began, resolve: begin } = withResolvers()
  const { promise: ended, resolve: end } = withResolvers()
  const sent = request(`${server.url}${base}/ingest/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
  })
  sent.on('error', end).on('response', answer => {
    let rest = ''
    answer.setEncoding('utf8').on('error', end).on('close', end)
    answer.on('data', (part: string) => {
      const complete = (rest + part).split('\n')
      rest = complete.pop()!
      for (const line of complete) {
        const outcome = JSON.parse(line) as Outcome
        if (outcome.status === 201) acknowledged.push(outcome.document!.documentId)
      }
      if (acknowledged.length > 0) begin()
    })
  })
  Readable.from(linesOf(round, count)).pipe(sent)
  return { acknowledged, began, ended }
}

function withResolvers() {
  let resolve = () => {}
  const promise = new Promise<void>(done => {
    resolve = done
  })
  return { promise, resolve }
}

/** Checks the store file, and looks for acknowledged documents in it. */
function inspect(dataDir: string, acknowledged: readonly string[]) {
  const database = new Database(join(dataDir, 'workbase.db'), { readonly: true })
  try {
    return database.transaction(() => {
      const count = (sql: string) => database.prepare(`SELECT count(*) FROM ${sql}`).pluck().get() as number
      const chunks = new Map(
        database.prepare('SELECT document_id, count(*) FROM record GROUP BY document_id').raw().all() as [
          string,
          number,
        ][],
      )
      const documents = database
        .prepare("SELECT documentId, body ->> '$.status', body ->> '$.chunkTotal' FROM documents")
        .raw()
        .all() as [string, string, number | null][]
      const ready = new Set(documents.flatMap(([id, status]) => (status === 'ready' ? [id] : [])))
      const known = new Set(documents.map(([id]) => id))
      const collection = database
        .prepare(
          `SELECT c.id, s.id AS space, generation, records FROM collection c JOIN vector_space s ON s.collection = c.id`,
        )
        .get() as {
        id: number
        space: number
        generation: number
        records: number
      }
      const vectors = `vec_${collection.space}_${collection.generation}`
      const connection = new SqliteConnection(database)
      const index = findActivePostingIndex(connection, collection.id)!
      const indexed = [...indexedRecords(connection, index.id)].length
      const faults = [
        database.pragma('integrity_check', { simple: true }) !== 'ok',
        count('record') !== collection.records,
        count(`record r JOIN ${vectors} USING (record)`) !== collection.records,
        count(vectors) !== collection.records,
        findPostingFaults(connection).length > 0,
        indexed !== collection.records,
        [...chunks.keys()].some(id => !known.has(id)),
        documents.some(([id, , total]) => (chunks.get(id) ?? 0) !== total),
      ]
      return {
        lost: acknowledged.filter(id => !ready.has(id)).length,
        isValid: !faults.includes(true),
        generation: collection.generation,
      }
    })()
  } finally {
    database.close()
  }
}

/** Ends the lease of the killed process, so that the next one can fit. */
function endLease(dataDir: string): void {
  const database = new Database(join(dataDir, 'workbase.db'))
  database.prepare('UPDATE vector_space SET lease_until = 0').run()
  database.close()
}

const dataDir = temporaryFolder()
const next = randomNumbers(Number(values.seed))
let server = await startServer(dataDir)
const { workspaceId } = await call<{ workspaceId: string }>(server, 'POST', '/api/v1/workspaces', {
  name: 'bench',
})
const bases = `/api/v1/workspaces/${workspaceId}/knowledge-bases`
const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(server, 'POST', bases, { name: 'kill' })
const base = `${bases}/${knowledgeBaseId}`

const acknowledged: string[] = []
const wrong = { lost: 0, invalid: 0, unfound: 0 }
for (let round = 0; round < rounds; round++) {
  const ingesting = ingest(server, base, round, documentsMax)
  await ingesting.began
  await new Promise(resolve => setTimeout(resolve, next() * killWithinMs))
  process.kill(server.pid, 'SIGKILL')
  await ingesting.ended
  if (ingesting.acknowledged.length === documentsMax) throw new Error('the kill came after the last document')
  acknowledged.push(...ingesting.acknowledged)
  endLease(dataDir)
  server = await startServer(dataDir)
  const { lost, isValid } = inspect(dataDir, acknowledged)
  wrong.lost += lost
  if (!isValid) wrong.invalid++
  const last = acknowledged.at(-1)!
  const [chunk] = await call<{ text: string }[]>(server, 'GET', `${base}/documents/${last}/chunks`)
  const hits = await call<{ payload: { documentId: string } }[]>(server, 'POST', `${base}/search`, {
    text: chunk!.text.slice(0, 100),
    filter: { documentId: last },
  })
  if (hits.length === 0) wrong.unfound++
}
const final = ingest(server, base, rounds, lastDocuments)
await final.ended
const { generation } = inspect(dataDir, acknowledged)
await server.stop()
remove(dataDir)
console.log(
  `${rounds} kills: ${acknowledged.length} documents confirmed, ${wrong.lost} lost; the store was invalid ` +
    `${wrong.invalid} times, the last document was not found ${wrong.unfound} times; the embedder was fitted ` +
    `${generation} times; the next ingest confirmed ${final.acknowledged.length} of ${lastDocuments} documents`,
)
if (Object.values(wrong).some(count => count > 0) || final.acknowledged.length !== lastDocuments)
  process.exitCode = 1
