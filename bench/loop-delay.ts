/**
 * Measures the event-loop delay of a server that ingests, fits and searches at the same time, with bodies up
 * to 1 MB.
 *
 * npm run bench:loop -- [DATA_FOLDER]
 */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cranfield, readEntries } from '../test/harness/beir.ts'
import { call, remove, type Server, startServer, temporaryFolder } from './server.ts'
import { table } from './statistics.ts'

interface Delay {
  p50: number
  p99: number
  p999: number
  max: number
}

const entries = readEntries(process.argv[2] ?? cranfield, 'corpus.jsonl').filter(entry => entry.text)
const megabyte = 1_000_000
const searchesAtOnce = 4

const dataDir = temporaryFolder()
const report = join(dataDir, 'delay.json')
process.env.LOOP_DELAY_FILE = report
process.env.NODE_OPTIONS = `--import ${join(import.meta.dirname, 'loop-probe.mjs')}`
const server = await startServer(dataDir)

async function delays(of: Server): Promise<Delay> {
  rmSync(report, { force: true })
  process.kill(of.pid, 'SIGUSR2')
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 50))
    try {
      return JSON.parse(readFileSync(report, 'utf8')) as Delay
    } catch {}
  }
}

function row(name: string, { p50, p99, p999, max }: Delay): string[] {
  return [name, ...[p50, p99, p999, max].map(ms => ms.toFixed(1))]
}

/** Returns a text of about a megabyte, which differs for each seed. */
function bigText(seed: number): string {
  const parts = [`part ${seed}`]
  for (let size = 0, at = seed; size < megabyte * 0.9; at++) {
    const { text } = entries[at % entries.length]!
    parts.push(text)
    size += text.length + 2
  }
  return parts.join('\n\n')
}

async function ingestSmall(base: string): Promise<void> {
  const lines = entries.map(entry => JSON.stringify({ text: entry.text, metadata: { title: entry.title } }))
  for (let at = 0; at < lines.length; at += 200)
    await fetch(`${server.url}${base}/ingest/batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: lines.slice(at, at + 200).join('\n'),
    }).then(response => response.text())
}

async function ingestBig(base: string): Promise<void> {
  for (let seed = 0; seed < 8; seed++)
    await call(server, 'POST', `${base}/ingest`, { text: bigText(seed * 97) })
}

async function searchUntil(base: string, isOver: () => boolean): Promise<number> {
  let searched = 0
  await Promise.all(
    Array.from({ length: searchesAtOnce }, async () => {
      while (!isOver()) {
        await call(server, 'POST', `${base}/search`, {
          text: entries[searched++ % entries.length]!.title || 'wing',
          topK: 10,
        })
        await new Promise(resolve => setTimeout(resolve, 5))
      }
    }),
  )
  return searched
}

try {
  const { workspaceId } = await call<{ workspaceId: string }>(server, 'POST', '/api/v1/workspaces', {
    name: 'bench',
  })
  const bases = `/api/v1/workspaces/${workspaceId}/knowledge-bases`
  const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(server, 'POST', bases, { name: 'loop' })
  const base = `${bases}/${knowledgeBaseId}`
  await call(server, 'POST', `${base}/ingest`, { text: 'A text that starts the threads.' })
  await call(server, 'POST', `${base}/search`, { text: 'threads' })
  const starting = await delays(server)
  await new Promise(resolve => setTimeout(resolve, 2_000))
  const idle = await delays(server)
  let over = false
  const searching = searchUntil(base, () => over)
  await ingestSmall(base)
  const small = await delays(server)
  await ingestBig(base)
  const big = await delays(server)
  await new Promise(resolve => setTimeout(resolve, 4_000))
  const fitting = await delays(server)
  over = true
  await searching
  console.log(
    table(
      ['event-loop delay, ms', 'p50', 'p99', 'p99.9', 'max'],
      [
        row('first ingest and search, which start the threads', starting),
        row('idle (the resolution of the timer)', idle),
        row('ingest of abstracts, searches, fits', small),
        row('ingest of 1 MB texts, searches, fits', big),
        row('fit after the last ingest, searches', fitting),
      ],
    ),
  )
} finally {
  await server.stop()
  remove(dataDir)
}
