import { compilePolicy } from '../access/policy/compile.ts'
import { policyColumns } from '../access/policy/document-fields.ts'
import type { KnownPrincipal } from '../access/policy/evaluate.ts'
import { toActingPrincipal } from '../access/principals.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { reservedPayloadKeys } from '../contract/fields.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'
import type { Principal } from '../contract/principals.ts'
import {
  type CanaryBase,
  type CanaryDocument,
  type CanaryFields,
  type CanaryRecord,
  canaryFields,
  distinctPolicies,
  newSecret,
  secretsIn,
  sharedWord,
  viewersOf,
} from './canaries.ts'
import { changeProbes } from './change-probes.ts'
import type { DrillReport } from './drill-report.ts'
import { type CanaryConversation, type DrillFixture, DrillRun, type SendDrillRequest } from './drill-run.ts'
import { fileForm, question, type RouteProbe } from './probe.ts'
import { historyProbes, readOwnDocuments, readProbes } from './read-probes.ts'
import { routeLine, workspaceRoutes } from './route-names.ts'
import { routesWithoutContent } from './routes-without-content.ts'
import { trashProbes } from './trash-probes.ts'

export interface DrillDependencies {
  /** Sends a request to a runtime that has a copy of the store, and that cannot use the network. */
  readonly send: SendDrillRequest
  /** Runs the jobs of the runtime, and waits for them. */
  readonly settle: () => Promise<void>
  readonly clock: Clock
  readonly version: string
  readonly workspaceId: string
  readonly workspaceName: string
  readonly signal: AbortSignal
  /** Called with the number of principals whose reads are complete. */
  readonly onProgress: (done: number, total: number) => void
}

/** Maximum number of principals that send requests. The number of requests grows with its square. */
const drillPrincipalsMax = 12
/** Maximum number of distinct policies. */
const policiesMax = 10
/** A principal without a record in the workspace. */
const unknownPrincipalId = 'drill-unknown-principal'
const scopes = ['read', 'write', 'tools:invoke']
const vectorDimension = 32
/** A valid PNG image of one pixel. */
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/**
 * Plants canaries in a copy of a store, requests them from every route as each principal, and reports which principals could
 * see or change what they may not.
 *
 * @throws Error  the canaries could not be planted
 * @throws the reason of the signal  before the next request
 */
export async function runDrill(deps: DrillDependencies): Promise<DrillReport> {
  const startedAt = timestamp(deps.clock)
  const send: SendDrillRequest = async (request, as) => {
    deps.signal.throwIfAborted()
    return deps.send(request, as)
  }
  const setup = new DrillRun(deps.workspaceId, send, new Map())
  const recorded = await listAll<Principal>(setup, 'principals.list')
  const drilled = recorded.slice(0, drillPrincipalsMax)
  const principals = [
    ...drilled.map(principal => toActingPrincipal(principal.principalId, principal)),
    toActingPrincipal(unknownPrincipalId, undefined),
  ]
  const run = new DrillRun(deps.workspaceId, send, await createKeys(setup, principals))
  const fixture = await plant(run, deps, principals)
  for (const { id } of principals) fixture.conversations.push(await startConversation(run, fixture, id))
  const contexts = principals.map(principal => ({
    run,
    fixture,
    principalId: principal.id,
    seesAll: (knowledgeBaseId: string) => seesEverything(principal, fixture, knowledgeBaseId),
  }))
  for (const context of contexts) await readOwnDocuments(context)
  for (const context of contexts) await runProbes(historyProbes, context)
  for (const [done, context] of contexts.entries()) {
    deps.onProgress(done, contexts.length)
    await runProbes(readProbes, context)
  }
  for (const context of contexts) await runProbes(trashProbes, context)
  for (const context of contexts) await runProbes(changeProbes, context)
  await checkIntegrity(run, fixture)
  return {
    version: deps.version,
    workspaceId: deps.workspaceId,
    workspaceName: deps.workspaceName,
    startedAt,
    finishedAt: timestamp(deps.clock),
    principals: principals.map(({ id }) => id),
    principalsTotal: recorded.length,
    policies: fixture.bases.map(({ dsl, represents }) => ({ dsl, knowledgeBases: represents })),
    canaries: fixture.documents.length + fixture.records.length + fixture.conversations.length,
    ...summarize(run),
  }
}

/** Returns the results of all tested routes, in the order of the API, and the routes that were not tested. */
function summarize(run: DrillRun) {
  const names = [...workspaceRoutes.keys()]
  const routes = names.filter(name => run.results.has(name)).map(name => run.resultOf(name))
  const sum = (field: 'requests' | 'leaks' | 'wrongRefusals') =>
    routes.reduce((total, result) => total + result[field], 0)
  return {
    routes,
    omitted: names
      .filter(name => !run.results.has(name))
      .map(name => ({
        route: routeLine(workspaceRoutes.get(name)!),
        reason:
          routesWithoutContent.get(name) ?? 'not tested, because it has nothing to hide from a principal',
      })),
    findings: run.findings,
    requests: sum('requests'),
    leaks: sum('leaks'),
    wrongRefusals: sum('wrongRefusals'),
  }
}

async function runProbes(
  probes: ReadonlyMap<string, RouteProbe>,
  context: Parameters<RouteProbe['execute']>[0],
): Promise<void> {
  for (const { execute } of probes.values()) await execute(context)
}

function seesEverything(
  principal: KnownPrincipal,
  { bases }: DrillFixture,
  knowledgeBaseId: string,
): boolean {
  const { policy } = bases.find(base => base.knowledgeBaseId === knowledgeBaseId) ?? {}
  if (!policy) return false
  const compiled = compilePolicy(policy, principal)
  return compiled.kind === 'constant' && compiled.value
}

async function createKeys(
  run: DrillRun,
  principals: readonly KnownPrincipal[],
): Promise<Map<string, string>> {
  const tokens = new Map<string, string>()
  for (const { id } of principals) {
    const body = { label: `drill ${id}`.slice(0, 120), scopes, principalId: id }
    tokens.set(id, String((await run.asOperator('apiKeys.create', { body })).body.plaintext))
  }
  return tokens
}

/** Creates a knowledge base for each policy, with canaries, and an agent that reads them. */
async function plant(
  run: DrillRun,
  deps: DrillDependencies,
  principals: readonly KnownPrincipal[],
): Promise<DrillFixture> {
  const embedding = {
    name: 'drill',
    provider: 'mock',
    modelName: 'drill',
    embeddingDimension: vectorDimension,
  }
  const { embeddingServiceId } = (await run.asOperator('embeddingServices.create', { body: embedding })).body
  const chunking = { name: 'drill', engine: 'workbase', strategy: 'sentence', chunkUnit: 'characters' }
  const { chunkingServiceId } = (await run.asOperator('chunkingServices.create', { body: chunking })).body
  const policies = distinctPolicies(await listAll<KnowledgeBase>(run, 'kb.list')).slice(0, policiesMax)
  const bases: CanaryBase[] = []
  for (const [index, policy] of policies.entries()) {
    const name = `drill_${index + 1}`
    const body = { name, embeddingServiceId, chunkingServiceId }
    const knowledgeBaseId = String((await run.asOperator('kb.create', { body })).body.knowledgeBaseId)
    const ownPolicy = policy.dsl !== null && { policyDsl: policy.dsl, policyEnabled: true }
    const settings = { queryLog: true, ...ownPolicy }
    await run.asOperator('kb.update', { params: { knowledgeBaseId }, body: settings })
    bases.push({ ...policy, knowledgeBaseId, name })
  }
  const planted: {
    base: CanaryBase
    fields: CanaryFields
    secret: string
    filename: string
    ids: QueuedIds
  }[] = []
  for (const base of bases)
    for (const [index, fields] of canaryFields(principals).entries()) {
      const secret = newSecret()
      const filename = `canary-${index + 1}.md`
      planted.push({
        base,
        fields,
        secret,
        filename,
        ids: await ingest(run, base, { fields, secret, filename }),
      })
    }
  await deps.settle()
  const documents: CanaryDocument[] = []
  const records: CanaryRecord[] = []
  for (const { base, fields, secret, filename, ids } of planted) {
    const params = { knowledgeBaseId: base.knowledgeBaseId, documentId: ids.documentId }
    const { body } = await run.asOperator('documents.show', { params })
    if (body.status !== 'ready') throw new Error(`a canary was not ingested: ${body.errorMessage}`)
    // The fields are those of the request, not of the response, so that the runtime cannot influence what is expected.
    const row = policyColumns({
      ...params,
      metadata: metadataOf(fields, secret),
      visibleTo: fields.visibleTo,
      ownerPrincipalId: fields.owner,
      sourceFilename: filename,
      status: 'ready',
    })
    const viewers = viewersOf(base.policy, principals, row)
    documents.push({ ...ids, ids: Object.values(ids), base, secret, filename, viewers })
    records.push(await storeRecord(run, base, { fields, principals }))
  }
  for (const { base, filename: path, secret } of documents)
    await run.asOperator('folders.update', {
      params: { knowledgeBaseId: base.knowledgeBaseId },
      body: { path, description: textOf(secret) },
    })
  for (const canary of [...documents, ...records]) run.watch(canary)
  return {
    workspaceId: deps.workspaceId,
    bases,
    documents,
    records,
    agentId: await createAgent(run, bases),
    conversations: [],
    principalIds: principals.map(({ id }) => id),
  }
}

interface QueuedIds {
  readonly documentId: string
  readonly jobId: string
}

/** Ingests a canary in a job, so that the routes of jobs can be tested with it, too. */
async function ingest(
  run: DrillRun,
  { knowledgeBaseId }: CanaryBase,
  { fields, secret, filename }: { fields: CanaryFields; secret: string; filename: string },
): Promise<QueuedIds> {
  const { body } = await run.asOperator('documents.ingest', {
    params: { knowledgeBaseId },
    query: { async: 'true' },
    body: {
      text: textOf(secret),
      sourceFilename: filename,
      metadata: metadataOf(fields, secret),
      visibleTo: fields.visibleTo,
      ownerPrincipalId: fields.owner,
    },
  })
  const { documentId } = body.document as { documentId: string }
  const { jobId } = body.job as { jobId: string }
  return { documentId, jobId }
}

async function storeRecord(
  run: DrillRun,
  base: CanaryBase,
  { fields, principals }: { fields: CanaryFields; principals: readonly KnownPrincipal[] },
): Promise<CanaryRecord> {
  const secret = newSecret()
  const recordId = `record-${newSecret().slice(2)}`
  const { visibleTo } = fields
  const payload = { ...allowedMetadata(fields), drill: 'yes' }
  const record = { id: recordId, text: textOf(secret), payload, visibleTo }
  const params = { knowledgeBaseId: base.knowledgeBaseId }
  await run.asOperator('records.upsert', { params, body: { records: [record] } })
  const row = { ...payload, ...(visibleTo && { visible_to: visibleTo }) }
  return { secret, recordId, ids: [recordId], base, viewers: viewersOf(base.policy, principals, row) }
}

function textOf(secret: string): string {
  return `The ${sharedWord} report contains the word ${secret}.`
}

function metadataOf(fields: CanaryFields, secret: string): Record<string, string> {
  return { ...allowedMetadata(fields), drill: 'yes', title: `Canary ${secret}` }
}

/** Returns the metadata of a canary without keys that the API rejects. */
function allowedMetadata({ metadata }: CanaryFields): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !reservedPayloadKeys.has(key)))
}

async function createAgent(run: DrillRun, bases: readonly CanaryBase[]): Promise<string> {
  const service = {
    name: 'drill',
    provider: 'ollama',
    modelName: 'drill',
    endpointBaseUrl: 'http://127.0.0.1:9/v1',
  }
  const { llmServiceId } = (await run.asOperator('llmServices.create', { body: service })).body
  const knowledgeBaseIds = bases.map(({ knowledgeBaseId }) => knowledgeBaseId)
  const body = { name: 'drill', llmServiceId, knowledgeBaseIds }
  return String((await run.asOperator('agents.create', { body })).body.agentId)
}

/** Starts a conversation of a principal: with a title, an attachment, questions and answers that contain canaries. */
async function startConversation(
  run: DrillRun,
  { agentId }: DrillFixture,
  principalId: string,
): Promise<CanaryConversation> {
  const secret = newSecret()
  const created = await run.request('conversations.create', principalId, {
    params: { agentId },
    body: { title: `Canary ${secret}` },
  })
  const conversationId = String(created.body.conversationId)
  const params = { agentId, conversationId }
  const attached = await run.request('attachments.create', principalId, {
    params,
    body: fileForm('note.txt', textOf(secret)),
  })
  const sent = await run.request('chat.send', principalId, {
    params,
    body: {
      content: `${question} It is about canary ${secret}.`,
      images: [{ mediaType: 'image/png', data: pixel }],
    },
  })
  const user = sent.body.user as { messageId: string } | undefined
  await run.request('chat.stream', principalId, { params, body: { content: question } })
  const attachmentId = String(attached.body.attachmentId)
  if (created.status >= 400 || attached.status >= 400 || !user)
    throw new Error(`the drill could not start a conversation: ${created.text} ${attached.text} ${sent.text}`)
  const conversation: CanaryConversation = {
    secret,
    ids: [conversationId, user.messageId, attachmentId],
    viewers: new Set([principalId]),
    owner: principalId,
    conversationId,
    questionId: user.messageId,
    attachmentId,
  }
  run.watch(conversation)
  return conversation
}

/** Checks that no principal has changed or deleted a canary that it may not see. */
async function checkIntegrity(run: DrillRun, { documents, records, bases }: DrillFixture): Promise<void> {
  const found = new Set<string>()
  for (const { knowledgeBaseId } of bases) {
    const params = { knowledgeBaseId }
    const body = { text: sharedWord, topK: 1_000 }
    const { text } = await run.asOperator('kb.search', { params, body })
    for (const secret of secretsIn(text)) found.add(secret)
  }
  for (const { secret, ids } of [...documents, ...records])
    if (!found.has(secret)) run.reportLeak('documents.update', 'unknown', `${ids[0]} was changed or deleted`)
}

async function listAll<Item>(run: DrillRun, name: string): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | null = null
  do {
    const query: Record<string, string | number> = { limit: 200, ...(cursor !== null && { cursor }) }
    const { body } = await run.asOperator(name, { query })
    items.push(...(body.items as Item[]))
    cursor = body.nextCursor as string | null
  } while (cursor !== null)
  return items
}
