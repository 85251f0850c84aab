/**
 * Measures the memory and CPU time that floods of large request bodies take, and how long another caller waits.
 *
 * npm run bench:bodies -- [stalled | strangers | searches | chunks]…
 */
import { startSignInProvider } from '../test/harness/body-attacks.ts'
import { cpuSecondsOf, memoryOf } from '../test/harness/process-usage.ts'
import { runBenchProgram } from './bench-program.ts'
import type { BodyFlood } from './body-flood.ts'
import { paced } from './paced.ts'
import { call, remove, startServer, unlimited } from './server.ts'
import { quantile, table } from './statistics.ts'

const chosen = process.argv.slice(2)
const bootstrap = 'b'.repeat(40)
const megabyte = 1_000_000

interface Stage {
  readonly port: number
  readonly workspace: string
  readonly base: string
  readonly viewer: string
  readonly editor: string
}

interface Attack {
  readonly title: string
  readonly connections: number
  readonly declaredBytes: number
  readonly sentBytes: number
  /** Size of the chunks of the body in bytes; if set, no length is declared. */
  readonly chunkBytes?: number
  request(stage: Stage): { line: string; token?: string }
}

const attacks: Readonly<Record<string, Attack>> = {
  stalled: {
    title: '1,000 ingests declare 49 MB and send 12 MB',
    connections: 1_000,
    declaredBytes: 49 * megabyte,
    sentBytes: 12 * megabyte,
    request: ({ base, editor }) => ({ line: `POST ${base}/ingest`, token: editor }),
  },
  strangers: {
    title: '110 posts of 9.9 MB to /auth/device/token without a credential',
    connections: 110,
    declaredBytes: 9.9 * megabyte,
    sentBytes: 9.9 * megabyte,
    request: () => ({ line: 'POST /auth/device/token' }),
  },
  searches: {
    title: '300 searches of 9.9 MB with a read-only key',
    connections: 300,
    declaredBytes: 9.9 * megabyte,
    sentBytes: 9.9 * megabyte,
    request: ({ base, viewer }) => ({ line: `POST ${base}/search`, token: viewer }),
  },
  chunks: {
    title: '1,000 searches of 100 KB in chunks of one byte with a read-only key',
    connections: 1_000,
    declaredBytes: 0.1 * megabyte,
    sentBytes: 0.1 * megabyte,
    chunkBytes: 1,
    request: ({ base, viewer }) => ({ line: `POST ${base}/search`, token: viewer }),
  },
}

const seconds = 12
const provider = await startSignInProvider()

async function measure(attack: Attack): Promise<(string | number)[]> {
  const auth = { ...provider.auth, bootstrapTokenRef: 'env:BENCH_BOOTSTRAP' }
  const server = await startServer(undefined, {
    config: { auth, ...unlimited },
    env: { BENCH_BOOTSTRAP: bootstrap },
  })
  try {
    const operator = { url: server.url, headers: { authorization: `Bearer ${bootstrap}` } }
    const { workspaceId } = await call<{ workspaceId: string }>(operator, 'POST', '/api/v1/workspaces', {
      name: 'bench',
    })
    const workspace = `/api/v1/workspaces/${workspaceId}`
    const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(
      operator,
      'POST',
      `${workspace}/knowledge-bases`,
      { name: 'bench' },
    )
    const base = `${workspace}/knowledge-bases/${knowledgeBaseId}`
    for (let at = 0; at < 20; at++)
      await call(operator, 'POST', `${base}/ingest`, {
        text: `Passage ${at} about boundary layers and wings.`,
      })
    const mint = async (role: string) =>
      (await call<{ plaintext: string }>(operator, 'POST', `${workspace}/api-keys`, { label: role, role }))
        .plaintext
    const [viewer, editor, other] = [await mint('viewer'), await mint('editor'), await mint('viewer')]
    const stage: Stage = { port: Number(new URL(server.url).port), workspace, base, viewer, editor }
    const search = {
      url: `${server.url}${base}/search`,
      perSecond: 20,
      from: '127.0.0.2',
      token: other,
      body: { text: 'boundary layer' },
    }
    await paced({ ...search, seconds: 2 })
    const quiet = await paced({ ...search, seconds: 4 })
    const before = memoryOf(server.pid).now
    const cpuBefore = cpuSecondsOf(server.pid)

    const { line, token } = attack.request(stage)
    const { connections, declaredBytes, sentBytes, chunkBytes } = attack
    const { port } = stage
    const body: BodyFlood = { port, line, token, connections, declaredBytes, sentBytes, chunkBytes }
    // A real attack would come from other machines and take no CPU time here, so the flood gets the lowest priority.
    const flood = runBenchProgram<Record<string, number>>('body-flood.ts', body, { niceness: 19 })
    const under = await paced({ ...search, seconds })
    flood.stop()
    const statuses = Object.entries(await flood.result).map(each => each.join(': '))
    const mb = (bytes: number) => Math.round(bytes / megabyte)
    return [
      attack.title,
      `${mb(before)} → ${mb(memoryOf(server.pid).peak)}`,
      (cpuSecondsOf(server.pid) - cpuBefore).toFixed(1),
      quantile(quiet.ms, 0.99).toFixed(0),
      quantile(under.ms, 0.99).toFixed(0),
      Object.entries(under.statuses)
        .map(each => each.join(': '))
        .join(', '),
      statuses.join(', '),
    ]
  } finally {
    await server.stop()
    remove(server.dataDir)
  }
}

const rows: (string | number)[][] = []
for (const [name, attack] of Object.entries(attacks))
  if (chosen.length === 0 || chosen.includes(name)) rows.push(await measure(attack))
provider.close()
console.log(
  table(
    [
      'attack',
      'RSS before → peak, MB',
      'server CPU, s',
      'other caller: p99 before, ms',
      'p99 during, ms',
      'responses to the other caller',
      'responses to the attack',
    ],
    rows,
  ),
)
