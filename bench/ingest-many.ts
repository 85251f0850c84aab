/**
 * Measures an ingest of random documents through a running server over HTTP, until the embedder is fitted to all chunks.
 * Texts are sent in batches like those of `wb kb ingest`, by two clients.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cpuSecondsOf, memoryOf } from '../test/harness/process-usage.ts'
import { cpuByStage, type Stages } from './cpu-stages.ts'
import { drawDocument } from './random-documents.ts'
import { call, remove, type Server, startServer, temporaryFolder, unlimited } from './server.ts'
import { table } from './statistics.ts'

const wordsPerDocument = 1_000
const documentsPerRequest = 256
const clients = 2
const pollMs = 200
/** Time without a fit after which no other one follows. It is longer than the pause before a fit. */
const settledMs = 4_000

const stages: Stages = {
  'HTTP, JSON, validation': /^src\/(http|access|auth)\/|^node_modules\/(h3|srvx|zod)/,
  'duplicates and names': /ingest\/accept-text|knowledge-bases\.ts/,
  chunking: /^src\/knowledge\/chunk\//,
  'fit: terms': /weigh-terms\.ts:(weighTerms|countPassages)$/,
  'fit: matrix': /lsa\/(basis|panels)\.ts|:(fromBasis)$/,
  'fit: new vectors of stored chunks':
    /passage-operations\.ts:embedUnstaged$|vector-spaces\.ts:(stage|swap|unstaged)$/,
  'fit: other':
    /passage-operations\.ts:(fit|samplePassages)$|(fitted|vector)-spaces|^src\/models\/lsa\.ts:(encode|decode)$/,
  embedding: /passage-operations\.ts:embed$|placeholder-embedder|^src\/models\/lsa\.ts:embed$/,
  'text analysis': /^src\/base\/analysis\//,
  'posting merges': /posting-merger|segment-merge|posting-maintenance|merge-plan/,
  'posting writes': /sqlite\/(postings\/|posting-changes)/,
  'records and vectors': /sqlite\/content-changes/,
  'document rows': /sqlite\/rows/,
  commit: /sqlite\/commit-queue/,
  'messages between threads':
    /base\/threads|worker_threads|:postMessage$|:(receiveMessageOnPort|emitMessage)$/,
}

interface Base {
  embedder: { version: string; state: string; fittedChunks: number }
}

interface Delay {
  p99: number
  max: number
}

/** Returns requests of NDJSON lines with about this many chunks in total. */
function drawRequests(documentCount: number): Buffer[] {
  const requests: Buffer[] = []
  for (let first = 0; first < documentCount; first += documentsPerRequest) {
    const lines: string[] = []
    for (let at = first; at < Math.min(documentCount, first + documentsPerRequest); at++) {
      const { title, text } = drawDocument(wordsPerDocument)
      lines.push(`${JSON.stringify({ text, sourceFilename: `file-${at}.txt`, metadata: { title } })}\n`)
    }
    requests.push(Buffer.from(lines.join('')))
  }
  return requests
}

/** Sends one batch; returns the number of chunks that the server confirms. */
async function send(url: string, body: Buffer): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body,
  })
  let chunks = 0
  for (const line of (await response.text()).split('\n')) {
    if (!line) continue
    const outcome = JSON.parse(line) as { status: number; chunks: number }
    if (outcome.status !== 201) throw new Error(line)
    chunks += outcome.chunks
  }
  return chunks
}

async function eventLoopDelay(server: Server, report: string): Promise<Delay> {
  rmSync(report, { force: true })
  process.kill(server.pid, 'SIGUSR2')
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 50))
    try {
      return JSON.parse(readFileSync(report, 'utf8')) as Delay
    } catch {}
  }
}

/** CPU seconds and peak resident set of a process. */
function usage(pid: number): { cpuSeconds: number; peakMegabytes: number } {
  return { cpuSeconds: cpuSecondsOf(pid), peakMegabytes: memoryOf(pid).peak / 1e6 }
}

/** @param isProfiled  true to print CPU seconds by stage; this rebuilds the server with readable file names */
export async function measureIngest(documentCount: number, isProfiled: boolean): Promise<void> {
  const dataDir = temporaryFolder()
  const report = join(dataDir, 'delay.json')
  const profiles = join(dataDir, 'profiles')
  mkdirSync(profiles)
  if (isProfiled)
    execFileSync(process.execPath, [join(import.meta.dirname, '../scripts/build.mjs'), '--readable'])
  const requests = drawRequests(documentCount)
  const server = await startServer(dataDir, {
    config: unlimited,
    env: {
      LOOP_DELAY_FILE: report,
      NODE_OPTIONS: `--import ${join(import.meta.dirname, 'loop-probe.mjs')}`,
    },
    nodeArgs: isProfiled ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`, '--cpu-prof-interval=2000'] : [],
  })
  try {
    const { workspaceId } = await call<{ workspaceId: string }>(server, 'POST', '/api/v1/workspaces', {
      name: 'bench',
    })
    const bases = `/api/v1/workspaces/${workspaceId}/knowledge-bases`
    const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(server, 'POST', bases, {
      name: 'many',
    })
    const base = `${bases}/${knowledgeBaseId}`
    const before = usage(server.pid)
    await eventLoopDelay(server, report)
    const started = performance.now()
    const secondsSince = () => (performance.now() - started) / 1_000
    const statesSeen: string[] = []
    let confirmedSeconds = Number.POSITIVE_INFINITY
    const fitted = (async () => {
      for (let lastFit = 0; ; ) {
        await new Promise(resolve => setTimeout(resolve, pollMs))
        const { embedder } = await call<Base>(server, 'GET', base)
        statesSeen.push(embedder.state)
        if (embedder.state === 'fitting') lastFit = secondsSince()
        const done = Math.max(confirmedSeconds, lastFit)
        if (secondsSince() - done > settledMs / 1_000) return { seconds: done, ...embedder }
      }
    })()
    let chunks = 0
    const waiting = requests.values()
    await Promise.all(
      Array.from({ length: clients }, async () => {
        for (const body of waiting) {
          const confirmed = await send(`${server.url}${base}/ingest/batch`, body)
          chunks += confirmed
        }
      }),
    )
    confirmedSeconds = secondsSince()
    const confirmedCpu = usage(server.pid).cpuSeconds - before.cpuSeconds
    const { seconds: fittedSeconds, version, fittedChunks } = await fitted
    const delay = await eventLoopDelay(server, report)
    const after = usage(server.pid)
    const cpuSeconds = after.cpuSeconds - before.cpuSeconds
    const fitShare = statesSeen.filter(state => state === 'fitting').length / statesSeen.length
    console.log(
      table(
        ['', 'all confirmed', 'embedder fitted to all'],
        [
          ['seconds', confirmedSeconds.toFixed(1), fittedSeconds.toFixed(1)],
          ['chunks/s', (chunks / confirmedSeconds).toFixed(0), (chunks / fittedSeconds).toFixed(0)],
          ['CPU seconds of the server', confirmedCpu.toFixed(1), cpuSeconds.toFixed(1)],
          [
            'CPU ms per chunk',
            ((1_000 * confirmedCpu) / chunks).toFixed(3),
            ((1_000 * cpuSeconds) / chunks).toFixed(3),
          ],
        ],
      ),
    )
    console.log(
      `\n${documentCount} documents, ${chunks} chunks; a fit was running ${(100 * fitShare).toFixed(0)} % of the time; ` +
        `the last one, ${version}, represents ${fittedChunks} chunks; ` +
        `peak RSS ${after.peakMegabytes.toFixed(0)} MB (${before.peakMegabytes.toFixed(0)} before); event-loop delay: ` +
        `p99 ${delay.p99.toFixed(1)} ms, longest ${delay.max.toFixed(1)} ms`,
    )
  } finally {
    await server.stop()
    if (isProfiled) printStages(profiles)
    remove(dataDir)
  }
}

function printStages(profiles: string): void {
  const seconds = [...cpuByStage(profiles, stages)].sort((a, b) => b[1] - a[1])
  const sum = seconds.reduce((total, [, value]) => total + value, 0)
  console.log()
  console.log(
    table(
      ['stage', 'CPU s', '%'],
      seconds.map(([stage, value]) => [stage, value.toFixed(1), ((100 * value) / sum).toFixed(1)]),
    ),
  )
}
