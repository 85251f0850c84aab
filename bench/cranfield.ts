/**
 * Measures retrieval quality over HTTP with default settings, on a collection in BEIR format.
 *
 * npm run bench:cranfield -- [DATA_FOLDER] [--chunker whole|PRESET]
 */
import { parseArgs } from 'node:util'
import { relevantHits } from '../src/agents/chat/relevance.ts'
import { cranfield, qualityAt10, readEntries, readGrades } from '../test/harness/beir.ts'
import { ingestCorpus } from './beir-base.ts'
import { call, createBase, remove, type Server, startServer, untilFitted } from './server.ts'
import { mean, median, quantile, table } from './statistics.ts'

interface Hit {
  score: number
  coverage?: number
  payload: { documentId: string }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { chunker: { type: 'string' } },
})
const folder = positionals[0] ?? cranfield

async function score(server: Server, base: string, sourceIds: Map<string, string>, mode: object) {
  const grades = readGrades(folder)
  const measured: { ndcg: number; recall: number; ms: number }[] = []
  for (const query of readEntries(folder, 'queries.jsonl')) {
    const judged = grades.get(query._id)
    if (!judged) continue
    const started = performance.now()
    const hits = await call<Hit[]>(server, 'POST', `${base}/search`, { text: query.text, topK: 100, ...mode })
    const ms = performance.now() - started
    const kept = 'includeCoverage' in mode ? relevantHits(hits, query.text) : hits
    const ranking = [...new Set(kept.map(hit => sourceIds.get(hit.payload.documentId)!))]
    measured.push({ ...qualityAt10(ranking, judged), ms })
  }
  const times = measured.map(one => one.ms)
  return [
    mean(measured.map(one => one.ndcg)).toFixed(4),
    mean(measured.map(one => one.recall)).toFixed(4),
    median(times).toFixed(2),
    quantile(times, 0.99).toFixed(2),
  ]
}

const modes: Record<string, object> = {
  lexical: { hybrid: true, lexicalWeight: 1 },
  vector: { hybrid: false },
  hybrid: {},
  'hybrid, relevance floor': { includeCoverage: true },
  'vector, rerank': { hybrid: false, rerank: true },
  'hybrid, rerank': { rerank: true },
}

const server = await startServer(undefined, { env: { WB_SEMANTIC_SEARCH: 'on' } })
try {
  const isWhole = values.chunker === 'whole'
  const base = await createBase(server, { chunker: isWhole ? undefined : values.chunker })
  const sourceIds = await ingestCorpus(server, base, folder, { isWhole })
  await untilFitted(server, base, 600)
  const rows: string[][] = []
  for (const [name, mode] of Object.entries(modes))
    rows.push([name, ...(await score(server, base, sourceIds, mode))])
  console.log(table(['mode', 'nDCG@10', 'recall@10', 'p50 ms', 'p99 ms'], rows))
} finally {
  await server.stop()
  remove(server.dataDir)
}
