/**
 * Measures requests of a principal before and after rows are added that are hidden from it, and requests for a hidden and a
 * missing document.
 *
 * npm run bench:hidden-rows
 */
import { call, remove, startServer, unlimited } from './server.ts'
import { median, table } from './statistics.ts'
import { wrongToken } from './tokens.ts'

const hiddenDocuments = 5_000
const hiddenJobs = 1_000
const visibleRows = 20
const rounds = 300
const writersAtOnce = 16
const largeMetadata = { note: 'x'.repeat(60_000) }
const policies = {
  'built-in policy': { policyEnabled: false },
  'policy on metadata': {
    policyDsl: "team = $principal.team OR '*' = ANY(visible_to)",
    policyEnabled: true,
  },
  'policy with NOT': { policyDsl: "NOT (team = 'red')", policyEnabled: true },
}

interface Caller {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

const token = wrongToken()
const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BENCH_TOKEN' }
const server = await startServer(undefined, { config: { ...unlimited, auth }, env: { BENCH_TOKEN: token } })
const callerWith = (key: string): Caller => ({
  url: server.url,
  headers: { authorization: `Bearer ${key}` },
})
const operator = callerWith(token)

async function createPrincipal(workspace: string, principalId: string, team: string): Promise<Caller> {
  await call(operator, 'POST', `${workspace}/principals`, { principalId, attributes: { team } })
  const body = { label: principalId, role: 'editor', principalId }
  const key = await call<{ plaintext: string }>(operator, 'POST', `${workspace}/api-keys`, body)
  return callerWith(key.plaintext)
}

/** Calls `write` with 0 to `count - 1`, several times at once. */
async function writeMany(count: number, write: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const run = async () => {
    while (next < count) await write(next++)
  }
  await Promise.all(Array.from({ length: writersAtOnce }, run))
}

async function addRows(caller: Caller, base: string, team: string, documents: number, jobs: number) {
  await writeMany(documents, n =>
    call(caller, 'POST', `${base}/documents`, { sourceFilename: `${n}.md`, metadata: { team } }),
  )
  await writeMany(jobs, n =>
    call(caller, 'POST', `${base}/ingest?async=true`, { text: `Text ${n} of ${team}.`, metadata: { team } }),
  )
  for (;;) {
    const { items } = await call<{ items: { status: string }[] }>(
      caller,
      'GET',
      `${base.slice(0, base.indexOf('/knowledge-bases'))}/jobs?limit=200`,
    )
    if (items.every(({ status }) => status === 'succeeded')) return
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}

async function timeOf(caller: Caller, path: string): Promise<number> {
  const startedAt = performance.now()
  const response = await fetch(new URL(path, caller.url), { headers: caller.headers })
  await response.text()
  return performance.now() - startedAt
}

/** Returns the median time of each request in milliseconds, measured in turns. */
async function measure(caller: Caller, paths: Readonly<Record<string, string>>) {
  const times = Object.entries(paths).map(([name, path]) => ({ name, path, sample: [] as number[] }))
  for (let round = 0; round < rounds; round++)
    for (const { path, sample } of times) sample.push(await timeOf(caller, path))
  return new Map(times.map(({ name, sample }) => [name, median(sample)]))
}

async function measurePolicies(caller: Caller, base: string, paths: Readonly<Record<string, string>>) {
  const found = new Map<string, number>()
  for (const [policy, fields] of Object.entries(policies)) {
    await call(operator, 'PATCH', base, fields)
    for (const [name, ms] of await measure(caller, paths)) found.set(`${name}, ${policy}`, ms)
  }
  return found
}

try {
  const body = { name: 'bench', kind: 'local', rlacEnabled: true }
  const { workspaceId } = await call<{ workspaceId: string }>(operator, 'POST', '/api/v1/workspaces', body)
  const workspace = `/api/v1/workspaces/${workspaceId}`
  const bases = `${workspace}/knowledge-bases`
  const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(operator, 'POST', bases, { name: 'kb' })
  const base = `${bases}/${knowledgeBaseId}`
  const alice = await createPrincipal(workspace, 'alice', 'blue')
  const bob = await createPrincipal(workspace, 'bob', 'red')
  await addRows(alice, base, 'blue', visibleRows, visibleRows)
  const lists = {
    'list of documents': `${base}/documents?limit=50`,
    'list of jobs': `${workspace}/jobs?limit=50`,
    'knowledge base': base,
  }
  const without = await measurePolicies(alice, base, lists)
  await addRows(bob, base, 'red', hiddenDocuments, hiddenJobs)
  const hidden = await measurePolicies(alice, base, lists)
  const rows = [...without].map(([name, ms]) => [name, ms.toFixed(2), hidden.get(name)!.toFixed(2)])
  const counts = `${hiddenDocuments} hidden documents, ${hiddenJobs} hidden jobs`
  console.log(`\n${table(['p50 in ms', 'no hidden rows', counts], rows)}`)

  const large = { metadata: { team: 'red', ...largeMetadata } }
  const { documentId } = await call<{ documentId: string }>(bob, 'POST', `${base}/documents`, large)
  const found = await measurePolicies(alice, base, {
    'hidden document with 60 KB of metadata': `${base}/documents/${documentId}`,
    'missing document': `${base}/documents/${crypto.randomUUID()}`,
  })
  console.log(
    `\n${table(
      ['p50 in ms', ''],
      [...found].map(([name, ms]) => [name, ms.toFixed(2)]),
    )}`,
  )
} finally {
  await server.stop()
  remove(server.dataDir)
}
