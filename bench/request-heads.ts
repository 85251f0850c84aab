/**
 * Sends generated request heads to a server over raw sockets. Fails if the server crashes, leaves a
 * connection hanging, or sends anything except HTTP with the error envelope.
 *
 * npm run bench:request-heads -- [COUNT] [SEED]
 */
import { randomNumbers } from '../src/base/random-numbers.ts'
import { checkHead } from '../test/harness/request-heads.ts'
import { call, remove, type Setting, startServer } from './server.ts'
import { table } from './statistics.ts'

const count = Number(process.argv[2] ?? 200_000)
const seed = Number(process.argv[3] ?? Date.now() % 2 ** 31)
const connections = 32

const settings: Readonly<Record<string, Setting>> = {
  'auth disabled': {},
  'API keys only': { config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } } },
}

console.log(`seed ${seed}`)
const rows: (string | number)[][] = []
for (const [name, setting] of Object.entries(settings)) {
  const server = await startServer(undefined, setting)
  const port = Number(new URL(server.url).port)
  const random = randomNumbers(seed)
  const statuses = new Map<string, number>()
  let left = Math.ceil(count / 2)
  const started = performance.now()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (left-- > 0) {
        const status = String((await checkHead(port, random)) ?? 'reset')
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
  )
  const seconds = (performance.now() - started) / 1_000
  await call(server, 'GET', '/healthz')
  const byStatus = [...statuses].sort().map(([status, times]) => `${status}: ${times}`)
  rows.push([name, Math.ceil(count / 2), Math.round(count / 2 / seconds), byStatus.join(', ')])
  await server.stop()
  remove(server.dataDir)
}
console.log(table(['server', 'heads', 'heads/s', 'status of the first response'], rows))
