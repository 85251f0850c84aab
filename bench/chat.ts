/**
 * Measures the delay that the runtime adds to a model: alternates between requests to the model and requests through
 * the runtime, and compares the times to the first token. Also measures the cost of many concurrent responses, all
 * with the same key.
 *
 * npm run bench:chat -- [first] [many] [RESPONSES]     default: both, 500 responses
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { Agent, type Dispatcher, request } from 'undici'
import { cpuSecondsOf, memoryOf } from '../test/harness/process-usage.ts'
import { remove, startServer, temporaryFolder, unlimited } from './server.ts'
import { quantile, table } from './statistics.ts'

const rounds = 300
const warmUp = 30
const chosen = process.argv.slice(2)
const streams = chosen.map(Number).find(count => count > 0) ?? 500
const dispatcher = new Agent({ connections: 8, pipelining: 1 })
/** Agent of a single caller, with one connection per stream. */
const streaming = new Agent({ pipelining: 1 })

interface Model {
  readonly url: string
  stop(): void
}

/** @param perSecond  tokens of one response per second; 0 for no limit */
async function startModel(words: number, perSecond: number): Promise<Model> {
  const args = ['--import', 'tsx', `${import.meta.dirname}/chat-model.ts`, String(words), String(perSecond)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const line = (await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()).value as string
  return { url: (JSON.parse(line) as { url: string }).url, stop: () => child.stdin.end() }
}

async function post<T>(url: string, body: object): Promise<T> {
  const answer = await request(url, { ...asJson(body), dispatcher })
  if (answer.statusCode >= 300) throw new Error(`${url}: ${answer.statusCode} ${await answer.body.text()}`)
  return (await answer.body.json()) as T
}

function asJson(body: object) {
  return {
    method: 'POST' as const,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

/** Sends a request, reads the whole response, and returns the time until the first token in milliseconds. */
async function timeToFirstToken(
  url: string,
  body: object,
  isToken: (text: string) => boolean,
  agent: Dispatcher = dispatcher,
): Promise<number> {
  const began = performance.now()
  const answer = await request(url, { ...asJson(body), dispatcher: agent })
  if (answer.statusCode >= 300) throw new Error(`${url}: ${answer.statusCode} ${await answer.body.text()}`)
  let first = Number.NaN
  let text = ''
  for await (const part of answer.body) {
    if (!Number.isNaN(first)) continue
    text += String(part)
    if (isToken(text)) first = performance.now() - began
  }
  return first
}

interface BenchAgent {
  readonly conversationsUrl: string
  /** Creates a conversation, and returns its ID. */
  createConversation(): Promise<string>
}

/** Creates an agent on a server. The agent uses the model at a URL. */
async function createAgent(server: string, model: string): Promise<BenchAgent> {
  const root = `${server}/api/v1/workspaces`
  const { workspaceId } = await post<{ workspaceId: string }>(root, { name: 'bench' })
  const service = { name: 'fake', provider: 'ollama', modelName: 'fake', endpointBaseUrl: model }
  const { llmServiceId } = await post<{ llmServiceId: string }>(
    `${root}/${workspaceId}/llm-services`,
    service,
  )
  const { agentId } = await post<{ agentId: string }>(`${root}/${workspaceId}/agents`, {
    name: 'bench',
    llmServiceId,
  })
  const conversationsUrl = `${root}/${workspaceId}/agents/${agentId}/conversations`
  return {
    conversationsUrl,
    createConversation: async () =>
      (await post<{ conversationId: string }>(conversationsUrl, {})).conversationId,
  }
}

const hasToken = (text: string) => text.includes('event: token')

async function firstTokens(): Promise<void> {
  const model = await startModel(40, 0)
  const dataDir = temporaryFolder()
  const server = await startServer(dataDir, { config: unlimited })
  try {
    const { conversationsUrl, createConversation } = await createAgent(server.url, model.url)
    const chatRequest = { model: 'fake', stream: true, messages: [{ role: 'user', content: 'hi' }] }
    const direct: number[] = []
    const through: number[] = []
    for (let round = 0; round < rounds + warmUp; round++) {
      const id = await createConversation()
      const directMs = await timeToFirstToken(`${model.url}/chat/completions`, chatRequest, text =>
        text.includes('word0'),
      )
      const throughMs = await timeToFirstToken(
        `${conversationsUrl}/${id}/messages/stream`,
        { content: 'hi' },
        hasToken,
      )
      if (round < warmUp) continue
      direct.push(directMs)
      through.push(throughMs)
    }
    const added = through.map((ms, at) => ms - direct[at]!)
    const row = (name: string, sample: number[]) => [
      name,
      ...[0.5, 0.95].map(share => quantile(sample, share).toFixed(2)),
    ]
    const heads = ['time to the first token', 'p50 ms', 'p95 ms']
    console.log(
      table(heads, [
        row('directly from the model', direct),
        row('through the runtime', through),
        row('added by the runtime', added),
      ]),
    )
  } finally {
    await server.stop()
    model.stop()
    remove(dataDir)
  }
}

function residentMb(pid: number): number {
  return memoryOf(pid).now / 1_048_576
}

interface StreamLoad {
  /** Time in milliseconds within which the responses start. Each one takes 10 s. */
  readonly startMs: number
  /** Tokens of each response per second. */
  readonly perSecond: number
}

async function manyStreams({ startMs, perSecond }: StreamLoad): Promise<(string | number)[]> {
  const model = await startModel(10 * perSecond, perSecond)
  const dataDir = temporaryFolder()
  const server = await startServer(dataDir, { config: unlimited })
  try {
    const { conversationsUrl, createConversation } = await createAgent(server.url, model.url)
    const ids = await Promise.all(Array.from({ length: streams }, createConversation))
    const before = residentMb(server.pid)
    let peak = before
    const cpuBefore = cpuSecondsOf(server.pid)
    const watch = setInterval(() => {
      peak = Math.max(peak, residentMb(server.pid))
    }, 100)
    const answerAfter = async (waitMs: number, id: string) => {
      await new Promise(resolve => setTimeout(resolve, waitMs))
      return timeToFirstToken(
        `${conversationsUrl}/${id}/messages/stream`,
        { content: 'hi' },
        hasToken,
        streaming,
      )
    }
    const firsts = await Promise.all(ids.map((id, at) => answerAfter((at * startMs) / streams, id)))
    clearInterval(watch)
    const answered = firsts.filter(ms => !Number.isNaN(ms)).length
    return [
      `${answered} of ${streams}, ${perSecond} tokens/s each, started within ${startMs / 1_000} s`,
      before.toFixed(0),
      peak.toFixed(0),
      (cpuSecondsOf(server.pid) - cpuBefore).toFixed(1),
      ...[0.5, 0.95].map(share => quantile(firsts, share).toFixed(0)),
    ]
  } finally {
    await server.stop()
    model.stop()
    remove(dataDir)
  }
}

async function concurrentAnswers(): Promise<void> {
  const heads = [
    'concurrent answers',
    'RSS before, MB',
    'RSS peak, MB',
    'server CPU, s',
    'first token p50 ms',
    'p95 ms',
  ]
  const rows: (string | number)[][] = []
  for (const perSecond of [5, 20])
    for (const startMs of [5_000, 0]) rows.push(await manyStreams({ startMs, perSecond }))
  console.log(table(heads, rows))
}

const measures = { first: firstTokens, many: concurrentAnswers }
const isChosen = Object.keys(measures).some(name => chosen.includes(name))
for (const [name, measure] of Object.entries(measures))
  if (!isChosen || chosen.includes(name)) await measure()
await Promise.all([dispatcher, streaming].map(one => one.close()))
