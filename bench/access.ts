/**
 * Compares searches with and without row-level access over HTTP, side by side, for principals that see 1 %, 10 % and 100 %
 * of the chunks: CPU time of the server, latency, and recall. Then compares how long a hidden and a missing row take.
 *
 * npm run bench:access -- [--chunks 100000] [--queries 300] [--requests 2000]
 */
import { parseArgs } from 'node:util'
import { cpuSecondsOf } from '../test/harness/process-usage.ts'
import { drawChunk, drawQuery, type RandomChunk, wordOf } from './random-chunks.ts'
import { call, remove, startServer, unlimited } from './server.ts'
import { median, quantile, table } from './statistics.ts'
import { wrongToken } from './tokens.ts'

const { values } = parseArgs({
  options: {
    chunks: { type: 'string', default: '100000' },
    queries: { type: 'string', default: '300' },
    requests: { type: 'string', default: '2000' },
  },
})
const chunkCount = Number(values.chunks)
const queryCount = Number(values.queries)
const requestCount = Number(values.requests)
const recordsPerRequest = 500
const dimension = 384
/** Number of different principals that have some rows in common with the measured ones. */
const otherPrincipals = 500
/** Searches of one caller before the next caller's turn. */
const blockSize = 30
const recallQueries = 30
/** A search for an unknown word takes longer than the other timed requests. */
const timedSearchesMax = 200
const searchesAfterWrites = 50
/** Number of principals that search in turn, and the policy with which each sees 90 % of the rows. */
const manyPrincipals = 100
const mostRowsPolicy = "$principal.admin = 'true' OR share >= 10 OR current_principal_id() = ANY(visible_to)"
/** Time for merges after the last write. */
const quietMs = 10_000

/** Percentages of the rows that the principals see, which are named after them. */
const shares = [1, 10, 100]
/** One chunk in so many is visible to all measured principals. Questions are about these chunks. */
const commonStep = 100
const modes: Readonly<Record<string, object>> = {
  lexical: { lexicalWeight: 1 },
  vector: { hybrid: false },
  hybrid: {},
}

interface Caller {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

interface Hit {
  readonly id: string
  readonly score: number
}

const token = wrongToken()
const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BENCH_TOKEN' }
const server = await startServer(undefined, { config: { ...unlimited, auth }, env: { BENCH_TOKEN: token } })
const callerWith = (key: string): Caller => ({ url: server.url, headers: { authorization: `Bearer ${key}` } })
/** Creates what the benchmark needs. Its requests are audited, so its searches are not measured. */
const operator = callerWith(token)

async function createWorkspace(): Promise<string> {
  const body = { name: 'bench', kind: 'local', rlacEnabled: true }
  const made = await call<{ workspaceId: string }>(operator, 'POST', '/api/v1/workspaces', body)
  return `/api/v1/workspaces/${made.workspaceId}`
}

async function createBase(workspace: string, name: string, embeddingServiceId: string): Promise<string> {
  const path = `${workspace}/knowledge-bases`
  const body = { name, embeddingServiceId }
  const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(operator, 'POST', path, body)
  return `${path}/${knowledgeBaseId}`
}

async function createPrincipal(workspace: string, principalId: string): Promise<Caller> {
  const body = { label: principalId, role: 'editor', principalId }
  const key = await call<{ plaintext: string }>(operator, 'POST', `${workspace}/api-keys`, body)
  return callerWith(key.plaintext)
}

const textOf = (ranks: readonly number[]) => ranks.map(wordOf).join(' ')
const isVisible = (share: number, at: number) => at % (100 / share) === 0

function recordOf({ title, text }: RandomChunk, at: number) {
  const principals = shares.filter(share => isVisible(share, at)).map(share => `sees${share}`)
  return {
    id: `r${at}`,
    text: textOf(text),
    payload: { title: textOf(title), share: at % 100 },
    visibleTo: [...principals, `other${at % otherPrincipals}`],
  }
}

/** Stores all chunks in one knowledge base, and the visible ones of each share also in another. Returns the queries. */
async function store(base: string, visibleBases: ReadonlyMap<number, string>): Promise<string[]> {
  const queries: string[] = []
  for (let first = 0; first < chunkCount; first += recordsPerRequest) {
    const chunks = Array.from({ length: Math.min(recordsPerRequest, chunkCount - first) }, drawChunk)
    for (const [at, chunk] of chunks.entries())
      if ((first + at) % commonStep === 0) queries.push(drawQuery(chunk).join(' '))
    const records = chunks.map((chunk, at) => recordOf(chunk, first + at))
    await call(operator, 'POST', `${base}/records`, { records })
    for (const [share, visibleBase] of visibleBases) {
      const visible = records.filter((_, at) => isVisible(share, first + at))
      await call(operator, 'POST', `${visibleBase}/records`, { records: visible })
    }
  }
  return queries.slice(0, queryCount)
}

async function search(caller: Caller, base: string, text: string, mode: object): Promise<Hit[]> {
  return call<Hit[]>(caller, 'POST', `${base}/search`, { text, ...mode })
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

const cpuMs = () => 1_000 * cpuSecondsOf(server.pid)

/** Returns the share of the hits in a knowledge base without hidden rows that a search with hidden rows returns. */
async function recallOf(
  caller: Caller,
  base: string,
  visibleBase: string,
  mode: object,
  queries: readonly string[],
) {
  let [wanted, found] = [0, 0]
  for (const text of queries.slice(0, recallQueries)) {
    const ids = new Set((await search(caller, base, text, mode)).map(({ id }) => id))
    const expected = await search(operator, visibleBase, text, mode)
    wanted += expected.length
    found += expected.filter(({ id }) => ids.has(id)).length
  }
  return found / wanted
}

/** Measures the searches of all callers in turns, after each has made all searches once. The first caller is the baseline. */
async function compareSearches(
  base: string,
  callers: ReadonlyMap<string, Caller>,
  visibleBaseOf: ReadonlyMap<string, string>,
  queries: readonly string[],
  searches: Readonly<Record<string, object>> = modes,
): Promise<string[][]> {
  const rows: string[][] = []
  for (const [modeName, mode] of Object.entries(searches)) {
    const times = new Map([...callers.keys()].map(name => [name, [] as number[]]))
    const cpu = new Map([...callers.keys()].map(name => [name, 0]))
    for (const caller of callers.values()) for (const text of queries) await search(caller, base, text, mode)
    const turns = [...callers]
    for (let from = 0; from < queries.length; from += blockSize) {
      for (const [name, caller] of turns) {
        const before = cpuMs()
        for (const text of queries.slice(from, from + blockSize))
          times.get(name)!.push(await timeOf(() => search(caller, base, text, mode)))
        cpu.set(name, cpu.get(name)! + cpuMs() - before)
      }
      // Each caller is first in turn, because the first one fills caches.
      turns.push(turns.shift()!)
    }
    const [baseline] = callers.keys()
    for (const [name, caller] of callers) {
      const p50 = median(times.get(name)!)
      const visibleBase = visibleBaseOf.get(name)
      rows.push([
        modeName,
        name,
        p50.toFixed(1),
        quantile(times.get(name)!, 0.95).toFixed(1),
        (cpu.get(name)! / queries.length).toFixed(1),
        (p50 / median(times.get(baseline!)!)).toFixed(2),
        (cpu.get(name)! / cpu.get(baseline!)!).toFixed(2),
        visibleBase ? (await recallOf(caller, base, visibleBase, mode, queries)).toFixed(3) : '',
      ])
    }
  }
  return rows
}

/** Measures hybrid searches that each follow a write of one record. */
async function compareAfterWrites(
  base: string,
  callers: ReadonlyMap<string, Caller>,
  queries: readonly string[],
): Promise<string[][]> {
  const times = new Map([...callers.keys()].map(name => [name, [] as number[]]))
  for (const text of queries.slice(0, searchesAfterWrites))
    for (const [name, caller] of callers) {
      const record = { id: 'written', text, visibleTo: ['nobody'] }
      await call(operator, 'POST', `${base}/records`, { records: [record] })
      times.get(name)!.push(await timeOf(() => search(caller, base, text, {})))
    }
  const [baseline] = callers.keys()
  return [...times].map(([name, sample]) => [
    name,
    median(sample).toFixed(1),
    (median(sample) / median(times.get(baseline!)!)).toFixed(2),
  ])
}

/** Measures searches of many principals in turn, each of which has searched before. */
async function compareManyPrincipals(
  workspace: string,
  base: string,
  administrator: Caller,
  queries: readonly string[],
) {
  await call(operator, 'PATCH', base, { policyDsl: mostRowsPolicy, policyEnabled: true })
  const principals: Caller[] = []
  for (let at = 0; at < manyPrincipals; at++) principals.push(await createPrincipal(workspace, `other${at}`))
  const callersOf = { without: [administrator], '90 %': principals }
  const rows: string[][] = []
  for (const [modeName, mode] of Object.entries(modes)) {
    const cpu = { without: 0, '90 %': 0 }
    const times = { without: [] as number[], '90 %': [] as number[] }
    for (const round of ['warm', 'measured', 'measured'])
      for (const name of ['without', '90 %'] as const) {
        const before = cpuMs()
        for (let at = 0; at < manyPrincipals; at++) {
          const caller = callersOf[name][at % callersOf[name].length]!
          const ms = await timeOf(() => search(caller, base, queries[at % queries.length]!, mode))
          if (round === 'measured') times[name].push(ms)
        }
        if (round === 'measured') cpu[name] += cpuMs() - before
      }
    for (const name of ['without', '90 %'] as const) {
      const [p50, baseline] = [median(times[name]), median(times.without)]
      const cpuOfEach = cpu[name] / times[name].length
      const ratios = [p50 / baseline, cpu[name] / cpu.without].map(ratio => ratio.toFixed(2))
      rows.push([modeName, name, p50.toFixed(1), cpuOfEach.toFixed(1), ...ratios])
    }
  }
  return rows
}

/** Measures requests about hidden and missing rows in turns. */
async function compareTimings(base: string, caller: Caller): Promise<string[][]> {
  const { documentId } = await call<{ documentId: string }>(operator, 'POST', `${base}/documents`, {
    visibleTo: ['nobody'],
  })
  const missing = crypto.randomUUID()
  const hiddenWord = 'zeppelinhidden'
  const record = { id: 'hidden', text: hiddenWord, visibleTo: ['nobody'] }
  await call(operator, 'POST', `${base}/records`, { records: [record] })
  const send = (method: string, path: string, body?: object) =>
    fetch(new URL(path, server.url), {
      method,
      headers: { ...caller.headers, ...(body && { 'content-type': 'application/json' }) },
      body: body ? JSON.stringify(body) : null,
    }).then(response => response.text())
  const pairs: Readonly<Record<string, (isHidden: boolean) => Promise<unknown>>> = {
    'read a document': isHidden => send('GET', `${base}/documents/${isHidden ? documentId : missing}`),
    'change a document': isHidden =>
      send('PATCH', `${base}/documents/${isHidden ? documentId : missing}`, { fileType: 'text' }),
    'delete a document': isHidden => send('DELETE', `${base}/documents/${isHidden ? documentId : missing}`),
    'delete a record': isHidden => send('DELETE', `${base}/records/${isHidden ? 'hidden' : 'missing'}`),
    'search a word': isHidden =>
      send('POST', `${base}/search`, {
        text: isHidden ? hiddenWord : 'zeppelinmissing',
        lexicalWeight: 1,
      }),
  }
  const rows: string[][] = []
  for (const [name, request] of Object.entries(pairs)) {
    const [hidden, absent]: [number[], number[]] = [[], []]
    const count = name.startsWith('search') ? Math.min(requestCount, timedSearchesMax) : requestCount
    for (let at = 0; at < count; at++)
      for (const isHidden of at % 2 === 0 ? [true, false] : [false, true])
        (isHidden ? hidden : absent).push(await timeOf(() => request(isHidden)))
    const difference = median(hidden) / median(absent) - 1
    rows.push([
      name,
      median(hidden).toFixed(2),
      median(absent).toFixed(2),
      `${(100 * difference).toFixed(1)} %`,
    ])
  }
  return rows
}

try {
  const workspace = await createWorkspace()
  const service = {
    name: 'bench',
    provider: 'mock',
    modelName: 'mock-embedder',
    embeddingDimension: dimension,
  }
  const { embeddingServiceId } = await call<{ embeddingServiceId: string }>(
    operator,
    'POST',
    `${workspace}/embedding-services`,
    service,
  )
  const base = await createBase(workspace, 'all', embeddingServiceId)
  const visibleBases = new Map<number, string>()
  for (const share of shares.filter(each => each < 100))
    visibleBases.set(share, await createBase(workspace, `visible${share}`, embeddingServiceId))
  // An administrator searches all rows without a filter.
  await call(operator, 'POST', `${workspace}/principals`, { principalId: 'root', role: 'admin' })
  const administrator = await createPrincipal(workspace, 'root')
  const callers = new Map<string, Caller>([['without', administrator]])
  for (const share of shares) callers.set(`${share} %`, await createPrincipal(workspace, `sees${share}`))
  const visibleBaseOf = new Map(shares.map(share => [`${share} %`, visibleBases.get(share) ?? base]))
  const queries = await store(base, visibleBases)
  await new Promise(resolve => setTimeout(resolve, quietMs))

  const first: string[][] = []
  for (const [name, caller] of callers)
    first.push([name, (await timeOf(() => search(caller, base, queries[0]!, {}))).toFixed(0)])
  console.log(`\n${table(['first hybrid search, rows visible', 'ms'], first)}`)
  const heads = [
    'search',
    'rows visible',
    'p50 ms',
    'p95 ms',
    'CPU ms',
    'ratio of p50',
    'ratio of CPU',
    'recall',
  ]
  console.log(`\n${table(heads, await compareSearches(base, callers, visibleBaseOf, queries))}`)
  const unknown = queries.slice(0, blockSize).map((text, at) => `${text} zeppelin${wordOf(at)}`)
  const unknownMode = { 'lexical, with an unknown word': { lexicalWeight: 1 } }
  const unknownRows = await compareSearches(base, callers, visibleBaseOf, unknown, unknownMode)
  console.log(`\n${table(heads, unknownRows)}`)
  const afterWrites = await compareAfterWrites(base, callers, queries)
  console.log(`\n${table(['hybrid search after a write, rows visible', 'p50 ms', 'ratio'], afterWrites)}`)
  const manyHeads = [
    `search, ${manyPrincipals} principals in turn`,
    'rows visible',
    'p50 ms',
    'CPU ms',
    'ratio of p50',
    'ratio of CPU',
  ]
  console.log(`\n${table(manyHeads, await compareManyPrincipals(workspace, base, administrator, queries))}`)
  const timings = await compareTimings(base, callers.get('10 %')!)
  console.log(`\n${table(['request', 'hidden: p50 ms', 'missing: p50 ms', 'difference'], timings)}`)
} finally {
  await server.stop()
  remove(server.dataDir)
}
