/**
 * Measures requests per second in comparison with a bare h3 route. The servers run in separate processes, and the
 * rounds alternate between them.
 *
 * npm run bench:http
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { throughput } from './load.ts'
import { call, remove, startServer, unlimited } from './server.ts'
import { median, table } from './statistics.ts'

const rounds = 9
const load = { seconds: 2, connections: 20 }
const bareServer = `
import { createServer } from 'node:http'
import { H3, toNodeHandler } from 'h3'
const app = new H3().get('/', () => ({ status: 'ok' }))
const server = createServer(toNodeHandler(app)).listen(0, '127.0.0.1', () => console.log(server.address().port))
`

async function startBare(): Promise<{ url: string; process: ChildProcess }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', bareServer], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [port] = (await once(child.stdout!, 'data')) as [Buffer]
  return { url: `http://127.0.0.1:${port.toString().trim()}/`, process: child }
}

const bare = await startBare()
const server = await startServer(undefined, { config: unlimited })
try {
  await call(server, 'POST', '/api/v1/workspaces', { name: 'bench' })
  const targets = {
    'bare h3 route': bare.url,
    'GET /healthz': `${server.url}/healthz`,
    'GET /api/v1/workspaces': `${server.url}/api/v1/workspaces`,
  }
  const rates = new Map<string, number[]>(Object.keys(targets).map(name => [name, []]))
  for (const url of Object.values(targets)) await throughput(url, { ...load, seconds: 1 })
  for (let round = 0; round < rounds; round++)
    for (const [name, url] of Object.entries(targets)) rates.get(name)!.push(await throughput(url, load))
  const base = rates.get('bare h3 route')!
  const rows = [...rates].map(([name, sample]) => {
    const ratios = sample.map((rate, at) => rate / base[at]!)
    return [name, median(sample).toFixed(0), `${(median(ratios) * 100).toFixed(0)} %`]
  })
  console.log(table(['route', 'requests/s', 'share of the bare route'], rows))
} finally {
  await server.stop()
  bare.process.kill()
  remove(server.dataDir)
}
