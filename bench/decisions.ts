/**
 * Compares decisions about rows with the reference evaluator of policies, for random policies, principals and rows: in the
 * storage engine, and over HTTP after random changes. Fails if a row is shown that the reference hides, or the reverse.
 *
 * npm run bench:decisions -- [--decisions=1000000] [--steps=600] [--seed=1]
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { compilePolicy, toFilter } from '../src/access/policy/compile.ts'
import { documentMatcher, type PolicyDocument, policyPayload } from '../src/access/policy/document-fields.ts'
import { type ActingPrincipal, evaluatePolicy, type PolicyRow } from '../src/access/policy/evaluate.ts'
import { type Policy, parsePolicy } from '../src/access/policy/parse.ts'
import { fullVisibility } from '../src/access/row-access.ts'
import { limits } from '../src/contract/limits.ts'
import type { CollectionKey, Payload } from '../src/storage/content.ts'
import { openEmbeddedStore } from '../src/storage/open.ts'
import { statisticsFor, type Visibility } from '../src/storage/visibility.ts'
import { formatPolicy, policies, principals, rows } from '../test/access/policy/arbitrary.ts'
import type { Send } from '../test/access/principal-requests.ts'
import { drawPolicy } from '../test/access/random-policies.ts'
import { RowModel } from '../test/access/row-model.ts'
import { createDraw } from '../test/access/row-model-state.ts'
import { startChatServer } from '../test/fakes/chat-server.ts'
import { remove, startServer, temporaryFolder } from './server.ts'
import { table } from './statistics.ts'
import { wrongToken } from './tokens.ts'

const { values } = parseArgs({
  options: {
    decisions: { type: 'string', default: '1000000' },
    steps: { type: 'string', default: '600' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
})
const decisionsMin = Number(values.decisions)
const seed = Number(values.seed)
const rowCount = 400
const policiesPerSample = 50
const questionsPerStep = 20
const failuresShown = 20

interface Outcome {
  /** Number of policies or changes. */
  inputs: number
  decisions: number
  readonly leaks: string[]
  readonly refusals: string[]
}

/** A stored row. `columns` are those that the reference evaluates. */
interface StoredRow {
  readonly payload: Payload
  readonly columns: PolicyRow
  readonly document?: PolicyDocument
}

interface Case {
  readonly policy: Policy
  readonly dsl: string
  readonly principal: ActingPrincipal
}

/** Returns the rows that a principal may see, as the access check compiles them. */
function visibilityOf({ dsl, principal }: Case): Visibility {
  const compiled = compilePolicy(parsePolicy(dsl), principal)
  const seesAll = compiled.kind === 'constant' && compiled.value
  return { filter: seesAll ? undefined : toFilter(compiled) } as unknown as Visibility
}

/** Compares the decisions of the storage engine about some rows, until `decisionsWanted` were made. */
async function compareInStore(
  stored: readonly StoredRow[],
  drawCases: (sample: number) => readonly Case[],
  decisionsWanted: number,
): Promise<Outcome> {
  const folder = temporaryFolder()
  const store = await openEmbeddedStore({ path: join(folder, 'workbase.db'), threads: false })
  const key: CollectionKey = { workspaceId: 'bench', name: 'rows' }
  const records = stored.map(({ payload }, at) => ({
    id: String(at),
    documentId: null,
    chunkIndex: null,
    title: null,
    text: 'A turbine.',
    payload,
    vector: Float32Array.of(1, at / rowCount),
  }))
  const settings = { dimension: 2, metric: 'cosine', lexical: true, language: null, fitted: false } as const
  await store.content.write(
    [
      { op: 'createCollection', ...key, ...settings },
      { op: 'upsert', ...key, generation: 0, records },
    ],
    [],
  )
  const vector = Float32Array.of(1, 1)
  const limit = rowCount
  const nearest = (visibility: Visibility) => store.content.nearest(key, { vector, limit, visibility })
  const all = (await nearest(fullVisibility())).map(({ record }) => record)
  const views = await store.content.read(key, all, { vectors: false, visibility: fullVisibility() })
  const indexOf = new Map(views.map(({ record, id }) => [record, Number(id)]))
  const outcome: Outcome = { inputs: 0, decisions: 0, leaks: [], refusals: [] }
  for (let sample = 0; outcome.decisions < decisionsWanted; sample++)
    for (const one of drawCases(sample)) {
      const { dsl, policy, principal } = one
      const visibility = visibilityOf(one)
      const expected = stored.map(({ columns }) => evaluatePolicy(policy, principal, columns))
      const words = { text: 'turbine', limit, visibility, statistics: statisticsFor(visibility) }
      const isVisible = documentMatcher(visibility)
      const documents = stored.flatMap(({ document }, at) => (document && isVisible(document) ? [at] : []))
      const answers = {
        vectors: (await nearest(visibility)).map(({ record }) => indexOf.get(record)!),
        words: (await store.content.lexical!.search(key, words)).map(({ record }) => indexOf.get(record)!),
        ...(stored[0]!.document && { documents }),
      }
      outcome.inputs++
      for (const [part, found] of Object.entries(answers)) {
        const shown = new Set(found)
        outcome.decisions += expected.length
        for (const [at, isExpected] of expected.entries()) {
          if (shown.has(at) === isExpected) continue
          const { payload } = stored[at]!
          const failure = JSON.stringify({ part, dsl, principal, payload })
          ;(isExpected ? outcome.refusals : outcome.leaks).push(failure)
        }
      }
    }
  await store.close()
  remove(folder)
  return outcome
}

/** Compares with JSON rows of any shape, and policies that compare anything. */
function compareAnyRows(decisionsWanted: number): Promise<Outcome> {
  const sampled = fc.sample(rows, { numRuns: rowCount, seed })
  const stored = sampled.map(payload => ({ payload, columns: payload }))
  const cases = fc.tuple(policies, principals).map(([policy, principal]) => {
    return { policy, principal, dsl: formatPolicy(policy) }
  })
  const drawCases = (sample: number) =>
    fc
      .sample(cases, { numRuns: policiesPerSample, seed: seed + sample })
      .filter(({ dsl }) => dsl.length <= limits.policyChars)
  return compareInStore(stored, drawCases, decisionsWanted)
}

/** Compares with documents, whose chunks have further fields, and policies about them. */
function compareDocuments(decisionsWanted: number): Promise<Outcome> {
  const draw = createDraw(seed)
  const { pick, chance, below } = draw
  const readers = ['ada', 'bob', 'cyd', '*']
  const drawStored = (at: number): StoredRow => {
    const visibleTo = chance(0.2) ? null : [...new Set([pick(readers), pick(readers)])]
    const ownerPrincipalId = chance(0.3) ? null : pick(readers)
    const sourceFilename = chance(0.5) ? null : `${below(5)}.md`
    const metadata = {
      ...(chance(0.8) && { team: pick(['red', 'blue', 'it', null, 1]) }),
      ...(chance(0.6) && { level: pick([below(5), below(5), '3']) }),
      ...(chance(0.4) && { open: chance(0.5) }),
    }
    const documentId = crypto.randomUUID()
    const ids = { documentId, knowledgeBaseId: crypto.randomUUID(), status: 'ready' as const }
    const document = { ...ids, metadata, visibleTo, ownerPrincipalId, sourceFilename }
    const ofChunk = { documentId, chunkIndex: at, 'chunker.id': 'sentence:1' }
    const columns = {
      ...metadata,
      ...(visibleTo && { visible_to: visibleTo }),
      ...(ownerPrincipalId !== null && { owner_id: ownerPrincipalId, owner_principal_id: ownerPrincipalId }),
      ...(sourceFilename !== null && { source_filename: sourceFilename }),
    }
    return { payload: { ...policyPayload(document), ...ofChunk }, columns, document }
  }
  const drawCase = (): Case => {
    const dsl = drawPolicy(draw, 4)
    const attributes = {
      ...(chance(0.7) && { team: pick(['red', 'blue']) }),
      ...(chance(0.2) && { admin: pick(['true', 'false']) }),
    }
    return { dsl, policy: parsePolicy(dsl), principal: { id: pick(['ada', 'bob', 'eve']), attributes } }
  }
  const stored = Array.from({ length: rowCount }, (_, at) => drawStored(at))
  return compareInStore(stored, () => Array.from({ length: policiesPerSample }, drawCase), decisionsWanted)
}

/** Compares the answers of content routes over HTTP, after random changes. */
async function compareOverHttp(steps: number): Promise<Outcome> {
  const token = wrongToken()
  const config = {
    auth: { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BENCH_TOKEN' },
    runtime: { rateLimit: { capacity: 1_000_000 }, allowedEndpoints: ['127.0.0.1'] },
  }
  const server = await startServer(undefined, { config, env: { BENCH_TOKEN: token } })
  const model = await startChatServer()
  try {
    const sendWith =
      (authorization: () => Promise<string>): Send =>
      async (line, json, headers) => {
        const [method, path] = line.split(' ') as [string, string]
        const response = await fetch(new URL(path, server.url), {
          method,
          body: json === undefined ? null : JSON.stringify(json),
          headers: {
            authorization: await authorization(),
            ...(json !== undefined && { 'content-type': 'application/json' }),
            ...headers,
          },
        })
        const text = await response.text()
        const isJson = response.headers.get('content-type')?.startsWith('application/json')
        return {
          status: response.status,
          text,
          body: isJson ? JSON.parse(text) : {},
          headers: response.headers,
        }
      }
    const operator = sendWith(async () => `Bearer ${token}`)
    const made = await operator('POST /api/v1/workspaces', { name: 'w', kind: 'local', rlacEnabled: true })
    const workspace = `/api/v1/workspaces/${made.body.workspaceId}`
    const service = { name: 'fake', provider: 'ollama', modelName: 'fake', endpointBaseUrl: model.url }
    const { llmServiceId } = (await operator(`POST ${workspace}/llm-services`, service)).body
    const { agentId } = (await operator(`POST ${workspace}/agents`, { name: 'maven', llmServiceId })).body
    const keys = new Map<string, Promise<string>>()
    const createKey = async (principalId: string) => {
      const key = { label: principalId, role: 'editor', principalId }
      return `Bearer ${(await operator(`POST ${workspace}/api-keys`, key)).body.plaintext}`
    }
    const as = (principalId: string) => {
      const key = keys.get(principalId) ?? createKey(principalId)
      keys.set(principalId, key)
      return sendWith(() => key)
    }
    const agent = { agentId: String(agentId), model }
    const rowModel = await RowModel.create({ as, operator, operatorId: 'admin', workspace, agent }, seed)
    for (let step = 0; step < steps; step++) await rowModel.step(questionsPerStep)
    const { changes, decisions, leaks, refusals } = rowModel.report
    console.log(`${rowModel.report.answers} answers over HTTP were compared`)
    return { inputs: changes, decisions, leaks, refusals }
  } finally {
    await server.stop()
    await model.close()
    remove(server.dataDir)
  }
}

console.log(`seed ${seed}`)
const overHttp = await compareOverHttp(Number(values.steps))
const half = Math.max(0, decisionsMin - overHttp.decisions) / 2
const outcomes = {
  'content routes over HTTP, per change': overHttp,
  'storage engine, documents, per policy': await compareDocuments(half),
  'storage engine, any JSON, per policy': await compareAnyRows(half),
}
const parts = Object.entries(outcomes)
const sum = (of: (outcome: Outcome) => number) => parts.reduce((total, [, outcome]) => total + of(outcome), 0)
const rowOf = (name: string, inputs: number | string, decisions: number, leaks: number, refusals: number) => [
  name,
  inputs,
  decisions,
  leaks,
  refusals,
]
console.log(
  table(
    ['compared', 'changes or policies', 'decisions', 'leaks', 'wrong refusals'],
    [
      ...parts.map(([name, { inputs, decisions, leaks, refusals }]) =>
        rowOf(name, inputs, decisions, leaks.length, refusals.length),
      ),
      rowOf(
        'total',
        '',
        sum(({ decisions }) => decisions),
        sum(({ leaks }) => leaks.length),
        sum(({ refusals }) => refusals.length),
      ),
    ],
  ),
)
for (const [name, { leaks, refusals }] of parts)
  for (const failure of [...leaks, ...refusals].slice(0, failuresShown)) console.log(`${name}: ${failure}`)
if (sum(({ leaks, refusals }) => leaks.length + refusals.length) > 0) process.exitCode = 1
