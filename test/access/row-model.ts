/**
 * A model of a workspace with row-level access: it makes random changes over the API, and compares the answers of content
 * routes with the reference evaluator, applied to the rows that the model expects.
 */
import { compilePolicy } from '../../src/access/policy/compile.ts'
import { type ActingPrincipal, evaluatePolicy } from '../../src/access/policy/evaluate.ts'
import { type Policy, parsePolicy } from '../../src/access/policy/parse.ts'
import { matchesFilter, parseFilter } from '../../src/storage/filter.ts'
import type { ChatRequest, ChatServer } from '../fakes/chat-server.ts'
import type { TestResponse } from '../harness/runtime.ts'
import { callMcp, callMcpTool, type JsonObject, type Send } from './principal-requests.ts'
import { type Draw, drawPolicy } from './random-policies.ts'

/** The runtime that the model changes and asks. */
interface ModelTarget {
  /** Sends a request as a principal, with the scopes of an editor. */
  as(principalId: string): Send
  /** Sends a request as the operator, who sees all rows. */
  readonly operator: Send
  /** Owner of the rows that the operator adds; null if it is no principal. */
  readonly operatorId: string | null
  /** Path of a workspace with row-level access. */
  readonly workspace: string
  /** A fake model for the agent `maven`, which exists in the workspace. */
  readonly agent: { readonly agentId: string; readonly model: ChatServer }
}

/** Counts and findings of all comparisons. A decision is the answer of one request about one row. */
interface ModelReport {
  changes: number
  answers: number
  decisions: number
  /** Rows that an answer contained, and the reference hides, with the request. */
  readonly leaks: string[]
  /** Rows that an answer did not contain, and the reference shows, with the request. */
  readonly refusals: string[]
}

type Scalar = string | number | boolean | null

interface ModelRow {
  /** ID of the document or record. */
  readonly id: string
  readonly kind: 'document' | 'record'
  /** A word that only this row contains; null for a document without content. */
  readonly word: string | null
  metadata: Record<string, Scalar>
  visibleTo: readonly string[] | null
  owner: string | null
  readonly filename: string | null
}

interface ModelBase {
  readonly path: string
  readonly knowledgeBaseId: string
  readonly filterId: string
  /** In the order in which they were added. */
  rows: ModelRow[]
  policy: { dsl: string; parsed: Policy; isEnabled: boolean }
}

interface ModelJob {
  readonly jobId: string
  readonly base: ModelBase
  readonly documentId: string
}

interface ModelAnswer {
  readonly principalId: string
  readonly path: string
  /** Documents that the answer cites. */
  readonly cited: readonly { knowledgeBaseId: string; documentId: string }[]
}

/** The caller of a change. */
interface ModelCaller {
  /** Null for the operator. */
  readonly principalId: string | null
  readonly send: Send
  /** Owner of the rows that the caller adds. */
  readonly ownerId: string | null
}

/** A caller, and the knowledge base that it reads. */
interface ModelQuestion {
  readonly principalId: string
  readonly base: ModelBase
  readonly send: Send
}

const builtInDsl =
  "$principal.admin = 'true' OR current_principal_id() = ANY(visible_to) OR '*' = ANY(visible_to)"
const principalIds = ['ada', 'bob', 'cyd', 'dan', 'root'] as const
/** Principals that send requests. `eve` has no record in the workspace. */
const callers = [...principalIds, 'eve'] as const
const filters: readonly JsonObject[] = [
  { team: 'red' },
  { team: { $ne: 'red' } },
  { level: { $gte: 2 } },
  { visible_to: 'bob' },
  { $or: [{ team: 'blue' }, { open: true }] },
]
const savedFilter = { team: 'red' }
const rowsPerBaseMax = 30
const topK = 200
const ingestPollMs = 5
const wordLetters = 'bcdfghjklmnprstvwxz'
const wordBase = wordLetters.length
const wordDigits = 4

/** Returns a generator of random numbers. Equal seeds give equal numbers. */
export function createDraw(seed: number): Draw {
  let state = seed >>> 0
  /** @see https://gist.github.com/tommyettinger/46a874533244883189143505d203312c */
  const next = () => {
    state = (state + 0x6d2b_79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    below: limit => Math.floor(next() * limit),
    chance: share => next() < share,
    pick: list => list[Math.floor(next() * list.length)]!,
  }
}

export class RowModel {
  readonly report: ModelReport = { changes: 0, answers: 0, decisions: 0, leaks: [], refusals: [] }
  readonly #target: ModelTarget
  readonly #draw: Draw
  readonly #principals = new Map<string, ActingPrincipal>()
  readonly #bases: ModelBase[] = []
  readonly #jobs: ModelJob[] = []
  readonly #answers: ModelAnswer[] = []
  #words = 0

  private constructor(target: ModelTarget, draw: Draw) {
    this.#target = target
    this.#draw = draw
  }

  /** Creates the principals and two knowledge bases with some rows. */
  static async create(target: ModelTarget, seed: number): Promise<RowModel> {
    const model = new RowModel(target, createDraw(seed))
    for (const id of principalIds) await model.#putPrincipal(id)
    for (const name of ['first', 'second']) model.#bases.push(await createModelBase(target, name))
    for (let count = 0; count < 8; count++) await model.#ingest()
    return model
  }

  /** Makes a random change, then asks `questions` random requests. */
  async step(questions: number): Promise<void> {
    this.report.changes++
    await this.#draw.pick(this.#changes)()
    for (let asked = 0; asked < questions; asked++) await this.#draw.pick(this.#questions)()
  }

  /** Changes, with repetitions for those that are more frequent. */
  readonly #changes: readonly (() => Promise<void>)[] = [
    () => this.#ingest(),
    () => this.#ingest(),
    () => this.#ingest(),
    () => this.#ingestInJob(),
    () => this.#ingestWithSameName(),
    () => this.#ingestWithSameName(),
    () => this.#ingestSameText(),
    () => this.#register(),
    () => this.#upsertRecord(),
    () => this.#upsertRecord(),
    () => this.#deleteRecord(),
    () => this.#patch(),
    () => this.#patch(),
    () => this.#patch(),
    () => this.#patch(),
    () => this.#delete(),
    () => this.#delete(),
    () => this.#bulkDelete(),
    () => this.#putPrincipal(this.#draw.pick(principalIds)),
    () => this.#putPrincipal(this.#draw.pick(principalIds)),
    () => this.#changePolicy(),
    () => this.#changePolicy(),
    () => this.#chat(),
  ]

  readonly #questions: readonly (() => Promise<void>)[] = [
    () => this.#askList(),
    () => this.#askDocument(),
    () => this.#askChunks(),
    () => this.#askSearch({ lexicalWeight: 1 }),
    () => this.#askSearch({ hybrid: false }),
    () => this.#askSearch({}),
    () => this.#askSearch({ rerank: true }),
    () => this.#askFilteredSearch(),
    () => this.#askSavedFilter(),
    () => this.#askWord(),
    () => this.#askManySearch(),
    () => this.#askCounts(),
    () => this.#askStats(),
    () => this.#askJobs(),
    () => this.#askJob(),
    () => this.#askMcpSearch(),
    () => this.#askMcpDocuments(),
    () => this.#askMcpDocument(),
    () => this.#askMcpResources(),
    () => this.#askCitations(),
  ]

  // Reference

  #acting(principalId: string): ActingPrincipal {
    return this.#principals.get(principalId) ?? { id: principalId, attributes: {} }
  }

  #sees(principalId: string | null, base: ModelBase, row: ModelRow): boolean {
    if (principalId === null) return true
    return evaluatePolicy(policyOf(base), this.#acting(principalId), columnsOf(row))
  }

  #visibleRows(principalId: string, base: ModelBase): ModelRow[] {
    return base.rows.filter(row => this.#sees(principalId, base, row))
  }

  /** Returns true if the policy lets a principal see all rows, whatever they contain. */
  #seesEverything(principalId: string, base: ModelBase): boolean {
    const compiled = compilePolicy(policyOf(base), this.#acting(principalId))
    return compiled.kind === 'constant' && compiled.value
  }

  #reportLeak(description: string): void {
    this.report.leaks.push(`after change ${this.report.changes}: ${description}`)
  }

  #reportRefusal(description: string): void {
    this.report.refusals.push(`after change ${this.report.changes}: ${description}`)
  }

  /** Compares the rows of an answer with those that the reference shows. */
  #compare(question: string, rows: readonly string[], expected: readonly string[], found: Iterable<string>) {
    const [shown, answered] = [new Set(expected), new Set(found)]
    this.report.answers++
    this.report.decisions += rows.length
    for (const id of answered) if (!shown.has(id)) this.#reportLeak(`${question}: ${id}`)
    for (const id of shown) if (!answered.has(id)) this.#reportRefusal(`${question}: ${id}`)
  }

  /** Compares the outcome of a request about one row. */
  #decide(question: string, isAllowed: boolean, answer: TestResponse, [allowed, denied]: [number, number]) {
    this.report.answers++
    this.report.decisions++
    const { status, text } = answer
    const description = `${question}: ${status} ${text.slice(0, 200)}`
    if (isAllowed && status !== allowed) this.#reportRefusal(description)
    if (!isAllowed && status !== denied) this.#reportLeak(description)
  }

  // Changes

  #drawCaller(): ModelCaller {
    const { chance, pick } = this.#draw
    const principalId = chance(0.1) ? null : pick(callers)
    const send = principalId === null ? this.#target.operator : this.#target.as(principalId)
    return { principalId, send, ownerId: principalId ?? this.#target.operatorId }
  }

  /**
   * Returns the caller that may send the fields of a new document: the given one, or the operator if the document is
   * attributed to another principal. Requires that the given one is refused then.
   */
  async #callerFor(line: string, caller: ModelCaller, body: JsonObject): Promise<ModelCaller> {
    const { principalId, send, ownerId } = caller
    if (mayAttribute(caller, body)) return caller
    const question = `${principalId} adds a document of ${body.ownerPrincipalId} instead of ${ownerId}`
    this.#decide(question, false, await send(line, body), [201, 403])
    const { operator, operatorId } = this.#target
    return { principalId: null, send: operator, ownerId: operatorId }
  }

  #drawBase(): ModelBase {
    return this.#draw.pick(this.#bases)
  }

  #drawVisibleTo(): string[] | null {
    const { pick, chance } = this.#draw
    if (chance(0.2)) return null
    if (chance(0.25)) return ['*']
    return [...new Set([pick(callers), pick(callers)])]
  }

  #drawMetadata(): Record<string, Scalar> {
    const { pick, chance, below } = this.#draw
    return {
      ...(chance(0.8) && { team: pick<Scalar>(['red', 'blue', 'red', null, 1]) }),
      ...(chance(0.6) && { level: pick<Scalar>([below(5), below(5), '3']) }),
      ...(chance(0.4) && { open: chance(0.5) }),
      ...(chance(0.1) && { owner_id: pick(callers), source_filename: '1.md' }),
    }
  }

  /** Returns fields of a new or changed row; those that are left out get their defaults. */
  #drawAccess(): { visibleTo?: string[] | null; ownerPrincipalId?: string | null } {
    const { chance, pick } = this.#draw
    return {
      ...(chance(0.7) && { visibleTo: this.#drawVisibleTo() }),
      ...(chance(0.3) && { ownerPrincipalId: pick([...callers, null]) }),
    }
  }

  /** Returns a document that matters for a change; undefined without documents of the kind. */
  #drawRow(base: ModelBase, kind: ModelRow['kind']): ModelRow | undefined {
    return this.#draw.pick(base.rows.filter(row => row.kind === kind))
  }

  /** Returns a word that is not a part of any other. */
  #newWord(): string {
    const digits = (++this.#words).toString(wordBase).padStart(wordDigits, '0')
    return `q${Array.from(digits, digit => wordLetters[Number.parseInt(digit, wordBase)]).join('')}zeppelin`
  }

  /** Returns the row of a new document, as the API creates it by default. */
  #newRow(
    base: ModelBase,
    document: JsonObject | undefined,
    { ownerId, word, body }: { ownerId: string | null; word: string | null; body: JsonObject },
  ): void {
    const { visibleTo = ownerId === null ? null : [ownerId], ownerPrincipalId = ownerId } = body as {
      visibleTo?: readonly string[] | null
      ownerPrincipalId?: string | null
    }
    base.rows.push({
      id: String(document?.documentId),
      kind: 'document',
      word,
      metadata: (body.metadata ?? {}) as Record<string, Scalar>,
      visibleTo,
      owner: ownerPrincipalId,
      filename: (body.sourceFilename ?? null) as string | null,
    })
  }

  /** Makes room for another row, as the operator. */
  async #makeRoom(base: ModelBase): Promise<void> {
    const [oldest] = base.rows.filter(({ kind }) => kind === 'document')
    if (base.rows.length < rowsPerBaseMax || !oldest) return
    await this.#target.operator(`DELETE ${base.path}/documents/${oldest.id}`)
    base.rows = base.rows.filter(row => row !== oldest)
  }

  #ingestBody(word: string): JsonObject {
    const named = this.#draw.chance(0.4) && { sourceFilename: `${this.#draw.below(4)}.md` }
    return { text: textOf(word), metadata: this.#drawMetadata(), ...this.#drawAccess(), ...named }
  }

  async #ingest(): Promise<void> {
    const [base, { send, ownerId, principalId }] = [this.#drawBase(), this.#drawCaller()]
    await this.#makeRoom(base)
    const word = this.#newWord()
    await this.#sendIngest(base, { send, ownerId, principalId }, this.#ingestBody(word), word)
  }

  /** Sends a new text, and applies what the API promises for file names that are in use. */
  async #sendIngest(base: ModelBase, requester: ModelCaller, body: JsonObject, word: string): Promise<void> {
    const line = `POST ${base.path}/ingest`
    const { send, ownerId, principalId } = await this.#callerFor(line, requester, body)
    const { ownerPrincipalId = ownerId, sourceFilename } = body
    const sameName = base.rows.filter(
      row =>
        row.kind === 'document' &&
        sourceFilename !== undefined &&
        row.filename === sourceFilename &&
        row.owner === ownerPrincipalId &&
        this.#sees(principalId, base, row),
    )
    const answer = await send(line, body)
    const isAdded = sameName.length === 0 || body.overwriteOnNameConflict === true
    const question = `${principalId} ingests ${JSON.stringify(body)}`
    this.#decide(question, isAdded, answer, [201, 200])
    const document = answer.body.document as { documentId: string }
    if (answer.status !== 201) {
      this.#compare(question, idsOf(sameName), idsOf(sameName.slice(0, 1)), [document.documentId])
      return
    }
    base.rows = base.rows.filter(row => !sameName.includes(row))
    this.#newRow(base, document, { ownerId, word, body })
  }

  async #ingestWithSameName(): Promise<void> {
    const [base, caller] = [this.#drawBase(), this.#drawCaller()]
    const named = base.rows.filter(({ filename }) => filename !== null)
    if (named.length === 0) return
    const { filename, owner } = this.#draw.pick(named)
    const word = this.#newWord()
    const body = {
      ...this.#ingestBody(word),
      sourceFilename: filename,
      overwriteOnNameConflict: this.#draw.chance(0.7),
      ...(this.#draw.chance(0.5) && { ownerPrincipalId: owner }),
    }
    await this.#sendIngest(base, caller, body, word)
  }

  /** Sends the text of an existing document. The answer may name that document only if the caller can see it. */
  async #ingestSameText(): Promise<void> {
    const [base, requester] = [this.#drawBase(), this.#drawCaller()]
    const row = this.#drawRow(base, 'document')
    if (!row?.word) return
    await this.#makeRoom(base)
    const body = { text: textOf(row.word), ownerPrincipalId: row.owner }
    const line = `POST ${base.path}/ingest`
    const { send, ownerId, principalId } = await this.#callerFor(line, requester, body)
    const answer = await send(line, body)
    const { documentId } = answer.body.document as { documentId: string }
    const existing = base.rows.find(({ id }) => id === documentId)
    const isVisible = !existing || this.#sees(principalId, base, existing)
    const question = `${principalId} ingests the text of ${row.id}`
    this.#compare(question, [documentId], isVisible ? [documentId] : [], [documentId])
    if (answer.status === 201)
      this.#newRow(base, answer.body.document as JsonObject, { ownerId, word: row.word, body })
  }

  async #ingestInJob(): Promise<void> {
    const [base, requester] = [this.#drawBase(), this.#drawCaller()]
    await this.#makeRoom(base)
    const word = this.#newWord()
    const body = { text: textOf(word), metadata: this.#drawMetadata(), ...this.#drawAccess() }
    const line = `POST ${base.path}/ingest?async=true`
    const { send, ownerId } = await this.#callerFor(line, requester, body)
    const { job, document } = (await send(line, body)).body as {
      job: { jobId: string }
      document: JsonObject
    }
    const jobLine = `GET ${this.#target.workspace}/jobs/${job.jobId}`
    for (;;) {
      const { body: current, text } = await this.#target.operator(jobLine)
      if (current.status === 'succeeded') break
      if (current.status === 'failed') throw new Error(text)
      await new Promise(resolve => setTimeout(resolve, ingestPollMs))
    }
    this.#newRow(base, document, { ownerId, word, body })
    this.#jobs.push({ jobId: job.jobId, base, documentId: String(document.documentId) })
  }

  async #register(): Promise<void> {
    const [base, requester] = [this.#drawBase(), this.#drawCaller()]
    await this.#makeRoom(base)
    const body = { metadata: this.#drawMetadata(), ...this.#drawAccess() }
    const line = `POST ${base.path}/documents`
    const { send, ownerId } = await this.#callerFor(line, requester, body)
    const answer = await send(line, body)
    this.#newRow(base, answer.body, { ownerId, word: null, body })
  }

  async #upsertRecord(): Promise<void> {
    const [base, { send, ownerId, principalId }] = [this.#drawBase(), this.#drawCaller()]
    const id = `r${this.#draw.below(6)}`
    const existing = base.rows.find(row => row.id === id)
    const word = this.#newWord()
    const metadata = this.#drawMetadata()
    const { visibleTo } = this.#drawAccess()
    const record = {
      id,
      text: textOf(word),
      payload: metadata,
      ...(visibleTo !== undefined && { visibleTo }),
    }
    const answer = await send(`POST ${base.path}/records`, { records: [record] })
    const isAllowed = !existing || this.#sees(principalId, base, existing)
    this.#decide(`${principalId} stores record ${id}`, isAllowed, answer, [200, 403])
    if (answer.status !== 200) return
    const readers = visibleTo === undefined && ownerId !== null ? [ownerId] : (visibleTo ?? null)
    base.rows = base.rows.filter(row => row !== existing)
    base.rows.push({ id, kind: 'record', word, metadata, visibleTo: readers, owner: ownerId, filename: null })
  }

  async #deleteRecord(): Promise<void> {
    const [base, { send, principalId }] = [this.#drawBase(), this.#drawCaller()]
    const row = this.#drawRow(base, 'record')
    if (!row) return
    const { body } = await send(`DELETE ${base.path}/records/${row.id}`)
    const expected = this.#sees(principalId, base, row) ? [row.id] : []
    this.#compare(`${principalId} deletes record`, [row.id], expected, body.deleted === true ? [row.id] : [])
    if (body.deleted === true) base.rows = base.rows.filter(other => other !== row)
  }

  async #patch(): Promise<void> {
    const [base, caller] = [this.#drawBase(), this.#drawCaller()]
    const { send, principalId } = caller
    const row = this.#drawRow(base, 'document')
    if (!row) return
    const metadata = this.#draw.chance(0.5) ? { metadata: this.#drawMetadata() } : {}
    const patch = { ...this.#drawAccess(), ...metadata }
    const keepsOwner = patch.ownerPrincipalId === row.owner
    const isAllowed = this.#sees(principalId, base, row) && (keepsOwner || mayAttribute(caller, patch))
    const answer = await send(`PATCH ${base.path}/documents/${row.id}`, patch)
    this.#decide(`${principalId} changes ${row.id}`, isAllowed, answer, [200, 403])
    if (answer.status !== 200) return
    if (patch.visibleTo !== undefined) row.visibleTo = patch.visibleTo
    if (patch.ownerPrincipalId !== undefined) row.owner = patch.ownerPrincipalId
    if (patch.metadata) row.metadata = patch.metadata
  }

  async #delete(): Promise<void> {
    const [base, { send, principalId }] = [this.#drawBase(), this.#drawCaller()]
    const row = this.#drawRow(base, 'document')
    if (!row) return
    const answer = await send(`DELETE ${base.path}/documents/${row.id}`)
    this.#decide(`${principalId} deletes ${row.id}`, this.#sees(principalId, base, row), answer, [204, 403])
    if (answer.status === 204) base.rows = base.rows.filter(other => other !== row)
  }

  async #bulkDelete(): Promise<void> {
    const [base, { send, principalId }] = [this.#drawBase(), this.#drawCaller()]
    const rows = [this.#drawRow(base, 'document'), this.#drawRow(base, 'document')].filter(
      row => row !== undefined,
    )
    if (rows.length === 0) return
    const ids = [...new Set(rows.map(({ id }) => id))]
    const { deleted } = (await send(`POST ${base.path}/documents/bulk-delete`, { documentIds: ids }))
      .body as {
      deleted: string[]
    }
    const expected = rows.filter(row => this.#sees(principalId, base, row)).map(({ id }) => id)
    this.#compare(`${principalId} deletes documents`, ids, expected, deleted)
    base.rows = base.rows.filter(({ id }) => !deleted.includes(id))
  }

  /** Creates a principal, changes it, or deletes it. */
  async #putPrincipal(id: (typeof principalIds)[number]): Promise<void> {
    const { chance, pick } = this.#draw
    const path = `${this.#target.workspace}/principals`
    const { operator } = this.#target
    if (this.#principals.has(id) && chance(0.15)) {
      await operator(`DELETE ${path}/${id}`)
      this.#principals.delete(id)
      return
    }
    const attributes: Record<string, string> = {
      ...(chance(0.7) && { team: pick(['red', 'blue']) }),
      ...(chance(0.1) && { admin: pick(['true', 'false']) }),
    }
    const role = id === 'root' || chance(0.05) ? 'admin' : 'viewer'
    if (this.#principals.has(id)) await operator(`PATCH ${path}/${id}`, { attributes, role })
    else await operator(`POST ${path}`, { principalId: id, attributes, role })
    this.#principals.set(id, {
      id,
      attributes: role === 'admin' ? { admin: 'true', ...attributes } : attributes,
    })
  }

  async #changePolicy(): Promise<void> {
    const base = this.#drawBase()
    const dsl = drawPolicy(this.#draw)
    const isEnabled = this.#draw.chance(0.6)
    const answer = await this.#target.operator(`PATCH ${base.path}`, {
      policyDsl: dsl,
      policyEnabled: isEnabled,
    })
    if (answer.status !== 200) throw new Error(`${dsl}: ${answer.text}`)
    base.policy = { dsl, parsed: parsePolicy(dsl), isEnabled }
  }

  /** Asks the agent, whose model searches and cites everything that it receives. */
  async #chat(): Promise<void> {
    const { model, agentId } = this.#target.agent
    const principalId = this.#draw.pick(callers)
    const send = this.#target.as(principalId)
    const list = `${this.#target.workspace}/agents/${agentId}/conversations`
    const path = `${list}/${(await send(`POST ${list}`, {})).body.conversationId}`
    const first = model.received.length
    model.respond(answerWithCitations)
    const answer = await send(`POST ${path}/messages`, { content: 'what does the turbine report mention?' })
    const sent = JSON.stringify(model.received.slice(first).map(({ body }) => body.messages))
    const rows = this.#bases.flatMap(base => base.rows.filter(({ word }) => word !== null))
    const visible = this.#bases.flatMap(base => this.#visibleRows(principalId, base))
    // The model receives the best passages only.
    this.#compareWords(`${principalId} asks the agent`, { rows, visible, text: sent, isPartial: true })
    const { metadata } = answer.body.assistant as { metadata: Record<string, string> }
    this.#answers.push({ principalId, path, cited: citedDocuments(metadata) })
  }

  // Questions

  #drawQuestion(): ModelQuestion {
    const principalId = this.#draw.pick(callers)
    const base = this.#drawBase()
    return { principalId, base, send: this.#target.as(principalId) }
  }

  async #askList(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const found: string[] = []
    const limit = 1 + this.#draw.below(9)
    for (let cursor = ''; ; ) {
      const { body } = await send(`GET ${base.path}/documents?limit=${limit}${cursor}`)
      const items = body.items as { documentId: string }[]
      found.push(...items.map(({ documentId }) => documentId))
      if (body.nextCursor === null) break
      if (items.length !== limit) this.#reportLeak(`${principalId} gets a page with ${items.length} rows`)
      cursor = `&cursor=${body.nextCursor}`
    }
    const isDocument = ({ kind }: ModelRow) => kind === 'document'
    const visible = this.#visibleRows(principalId, base).filter(isDocument)
    this.#compare(
      `${principalId} lists documents`,
      idsOf(base.rows.filter(isDocument)),
      idsOf(visible),
      found,
    )
  }

  async #askAboutDocument(
    suffix: '' | '/chunks',
    evidenceOf: (row: ModelRow) => string | null,
  ): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const row = this.#drawRow(base, 'document')
    if (!row) return
    const answer = await send(`GET ${base.path}/documents/${row.id}${suffix}`)
    const isVisible = this.#sees(principalId, base, row)
    this.#decide(`${principalId} reads ${row.id}${suffix}`, isVisible, answer, [200, 404])
    const evidence = evidenceOf(row)
    if (isVisible && evidence !== null && !answer.text.includes(evidence))
      this.#reportRefusal(`${principalId} does not read ${evidence}`)
  }

  #askDocument(): Promise<void> {
    return this.#askAboutDocument('', ({ id }) => id)
  }

  #askChunks(): Promise<void> {
    return this.#askAboutDocument('/chunks', ({ word }) => word)
  }

  async #compareSearch(
    { principalId, base, send }: ModelQuestion,
    body: JsonObject,
    matches: (row: ModelRow) => boolean = () => true,
  ): Promise<void> {
    const answer = await send(`POST ${base.path}/search`, { text: 'turbine', topK, ...body })
    const found = (answer.body as unknown as { id: string }[]).map(({ id }) => id.replace(/:0$/, ''))
    const hasText = ({ word }: ModelRow) => word !== null
    const visible = this.#visibleRows(principalId, base).filter(row => hasText(row) && matches(row))
    this.#compare(
      `${principalId} searches ${JSON.stringify(body)}`,
      idsOf(base.rows.filter(hasText)),
      idsOf(visible),
      found,
    )
  }

  #askSearch(fields: JsonObject): Promise<void> {
    return this.#compareSearch(this.#drawQuestion(), fields)
  }

  #askFilteredSearch(): Promise<void> {
    const filter = this.#draw.pick(filters)
    return this.#compareSearch(this.#drawQuestion(), { filter }, row => matchesPayload(filter, row))
  }

  #askSavedFilter(): Promise<void> {
    const question = this.#drawQuestion()
    const { filterId } = question.base
    return this.#compareSearch(question, { knowledgeFilterId: filterId }, row =>
      matchesPayload(savedFilter, row),
    )
  }

  /** Searches for the only occurrence of a word. A hidden word may be replaced by similar words of visible rows. */
  async #askWord(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const row = this.#draw.pick(base.rows)
    if (!row?.word) return
    const answer = await send(`POST ${base.path}/search`, { text: row.word, topK, lexicalWeight: 1 })
    const found = (answer.body as unknown as { id: string }[]).map(({ id }) => id.replace(/:0$/, ''))
    const visible = idsOf(this.#visibleRows(principalId, base))
    const expected = visible.filter(id => id === row.id || found.includes(id))
    this.#compare(`${principalId} searches the word of ${row.id}`, idsOf(base.rows), expected, found)
  }

  async #askManySearch(): Promise<void> {
    const { principalId, send } = this.#drawQuestion()
    const body = { text: 'turbine', topK }
    const answer = await send(`POST ${this.#target.workspace}/search`, body)
    const hits = answer.body as unknown as { id: string; knowledgeBaseId: string }[]
    for (const base of this.#bases) {
      const hasText = ({ word }: ModelRow) => word !== null
      const found = hits
        .filter(({ knowledgeBaseId }) => knowledgeBaseId === base.knowledgeBaseId)
        .map(({ id }) => id.replace(/:0$/, ''))
      const visible = this.#visibleRows(principalId, base).filter(hasText)
      this.#compare(`${principalId} searches all`, idsOf(base.rows.filter(hasText)), idsOf(visible), found)
    }
  }

  async #askCounts(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const { embedder } = (await send(`GET ${base.path}`)).body as { embedder?: { chunks: number } }
    if (!embedder) return
    const visible = this.#visibleRows(principalId, base).filter(({ word }) => word !== null)
    this.#compareCount(`${principalId} counts chunks`, base, visible.length, embedder.chunks)
  }

  #compareCount(question: string, base: ModelBase, expected: number, found: number): void {
    this.report.answers++
    this.report.decisions += base.rows.length
    if (found > expected) this.#reportLeak(`${question}: ${found} instead of ${expected}`)
    if (found < expected) this.#reportRefusal(`${question}: ${found} instead of ${expected}`)
  }

  /** Asks for sizes, which only a principal that sees everything may see. */
  async #askStats(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const isAllowed = this.#seesEverything(principalId, base)
    const answer = await send(`GET ${base.path}/stats`)
    this.#decide(`${principalId} reads the statistics`, isAllowed, answer, [200, 403])
    const documents = base.rows.filter(({ kind }) => kind === 'document').length
    if (isAllowed)
      this.#compareCount(`${principalId} counts documents`, base, documents, Number(answer.body.documents))
    const listed = (await send(`GET ${this.#target.workspace}/knowledge-bases`)).body.items as {
      knowledgeBaseId: string
      size?: { documents: number }
    }[]
    for (const { knowledgeBaseId, size } of listed) {
      const of = this.#bases.find(other => other.knowledgeBaseId === knowledgeBaseId)
      if (!of) continue
      const mayCount = this.#seesEverything(principalId, of)
      this.#compare(
        `${principalId} lists sizes`,
        [knowledgeBaseId],
        mayCount ? [knowledgeBaseId] : [],
        size ? [knowledgeBaseId] : [],
      )
    }
  }

  #seesJob(principalId: string, { base, documentId }: ModelJob): boolean {
    const row = base.rows.find(({ id }) => id === documentId)
    return row ? this.#sees(principalId, base, row) : this.#seesEverything(principalId, base)
  }

  async #askJobs(): Promise<void> {
    const { principalId, send } = this.#drawQuestion()
    const found = (await send(`GET ${this.#target.workspace}/jobs?limit=200`)).body.items as {
      jobId: string
    }[]
    const jobIds = (jobs: readonly { jobId: string }[]) => jobs.map(({ jobId }) => jobId)
    const visible = this.#jobs.filter(job => this.#seesJob(principalId, job))
    this.#compare(`${principalId} lists jobs`, jobIds(this.#jobs), jobIds(visible), jobIds(found))
  }

  async #askJob(): Promise<void> {
    const { principalId, send } = this.#drawQuestion()
    const job = this.#draw.pick(this.#jobs)
    if (!job) return
    const suffix = this.#draw.chance(0.5) ? '/events' : ''
    const answer = await send(`GET ${this.#target.workspace}/jobs/${job.jobId}${suffix}`)
    this.#decide(`${principalId} reads job${suffix}`, this.#seesJob(principalId, job), answer, [200, 404])
  }

  async #askMcpSearch(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const args = { knowledgeBaseId: base.knowledgeBaseId, text: 'turbine', topK: 64 }
    const text = await callMcpTool(send, this.#target.workspace, 'search_kb', args)
    const visible = this.#visibleRows(principalId, base)
    this.#compareWords(`${principalId} calls search_kb`, { rows: base.rows, visible, text, isPartial: false })
  }

  /**
   * Compares the words of rows in a text with those of visible rows. Rows with the same text have the same word.
   *
   * @param answer.isPartial  true if the text may contain only some of the visible rows
   */
  #compareWords(
    question: string,
    answer: { rows: readonly ModelRow[]; visible: readonly ModelRow[]; text: string; isPartial: boolean },
  ): void {
    const { text, isPartial } = answer
    const all = wordsOf(answer.rows)
    const found = all.filter(word => text.includes(word))
    const shown = wordsOf(answer.visible)
    const expected = isPartial && found.length > 0 ? shown.filter(word => found.includes(word)) : shown
    this.#compare(question, all, expected, found)
  }

  async #askMcpDocuments(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const args = { knowledgeBaseId: base.knowledgeBaseId, limit: 200 }
    const text = await callMcpTool(send, this.#target.workspace, 'list_documents', args)
    this.#compareListed(`${principalId} calls list_documents`, [base], principalId, text)
  }

  #compareListed(question: string, bases: readonly ModelBase[], principalId: string, text: string): void {
    for (const base of bases) {
      const documents = base.rows.filter(({ kind }) => kind === 'document')
      const visible = documents.filter(row => this.#sees(principalId, base, row))
      this.#compare(
        question,
        idsOf(documents),
        idsOf(visible),
        idsOf(documents.filter(({ id }) => text.includes(id))),
      )
    }
  }

  async #askMcpDocument(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const row = this.#drawRow(base, 'document')
    if (!row?.word) return
    const args = { knowledgeBaseId: base.knowledgeBaseId, documentId: row.id }
    const text = await callMcpTool(send, this.#target.workspace, 'get_document', args)
    const expected = this.#sees(principalId, base, row) ? [row.id] : []
    this.#compare(
      `${principalId} calls get_document`,
      [row.id],
      expected,
      text.includes(row.word) ? [row.id] : [],
    )
  }

  async #askMcpResources(): Promise<void> {
    const { principalId, send } = this.#drawQuestion()
    let text = ''
    for (let cursor: unknown; ; ) {
      const page = await callMcp(send, this.#target.workspace, 'resources/list', {
        ...(cursor !== undefined && { cursor }),
      })
      text += JSON.stringify(page)
      cursor = page.nextCursor
      if (cursor === undefined) break
    }
    this.#compareListed(`${principalId} lists resources`, this.#bases, principalId, text)
  }

  async #askCitations(): Promise<void> {
    const stored = this.#draw.pick(this.#answers)
    if (!stored) return
    const { principalId, path, cited } = stored
    const { items } = (await this.#target.as(principalId)(`GET ${path}/messages`)).body as {
      items: { role: string; metadata: Record<string, string> }[]
    }
    const found = citedDocuments(items.find(({ role }) => role === 'agent')!.metadata)
    const isVisible = ({ knowledgeBaseId, documentId }: ModelAnswer['cited'][number]) => {
      const base = this.#bases.find(other => other.knowledgeBaseId === knowledgeBaseId)!
      const row = base.rows.find(({ id }) => id === documentId)
      return row ? this.#sees(principalId, base, row) : this.#seesEverything(principalId, base)
    }
    const ids = (list: ModelAnswer['cited']) => list.map(({ documentId }) => documentId)
    this.#compare(`${principalId} reads citations`, ids(cited), ids(cited.filter(isVisible)), ids(found))
  }
}

async function createModelBase({ operator, workspace }: ModelTarget, name: string): Promise<ModelBase> {
  const { knowledgeBaseId } = (await operator(`POST ${workspace}/knowledge-bases`, { name })).body
  const path = `${workspace}/knowledge-bases/${knowledgeBaseId}`
  const filter = (await operator(`POST ${path}/filters`, { name: 'red', filter: savedFilter })).body
  const policy = { dsl: builtInDsl, parsed: parsePolicy(builtInDsl), isEnabled: false }
  return {
    path,
    knowledgeBaseId: String(knowledgeBaseId),
    filterId: String(filter.knowledgeFilterId),
    rows: [],
    policy,
  }
}

const builtInPolicy = parsePolicy(builtInDsl)

function policyOf({ policy }: ModelBase): Policy {
  return policy.isEnabled ? policy.parsed : builtInPolicy
}

/** Returns true if a caller may store the owner in a body: itself, or any as the operator. */
function mayAttribute({ principalId, ownerId }: ModelCaller, { ownerPrincipalId = ownerId }: JsonObject) {
  return principalId === null || ownerPrincipalId === ownerId
}

/** Returns the columns of a row, as docs/access.md defines them. */
export function columnsOf({
  metadata,
  visibleTo,
  owner,
  filename,
}: Pick<ModelRow, 'metadata' | 'visibleTo' | 'owner' | 'filename'>): JsonObject {
  const { owner_id: _, source_filename: __, ...fields } = metadata
  return {
    ...fields,
    ...(visibleTo && { visible_to: visibleTo }),
    ...(owner !== null && { owner_id: owner, owner_principal_id: owner }),
    ...(filename !== null && { source_filename: filename }),
  }
}

function matchesPayload(filter: JsonObject, { metadata, visibleTo }: ModelRow): boolean {
  return matchesFilter(parseFilter(filter), { ...metadata, ...(visibleTo && { visible_to: visibleTo }) })
}

function idsOf(rows: readonly ModelRow[]): string[] {
  return rows.map(({ id }) => id)
}

function wordsOf(rows: readonly ModelRow[]): string[] {
  return [...new Set(rows.flatMap(({ word }) => word ?? []))]
}

function textOf(word: string): string {
  return `The turbine report mentions the contract of ${word}.`
}

/** Lets the fake model search once, and then cite everything that it received. */
function answerWithCitations({ body }: ChatRequest) {
  const messages = body.messages as { role: string }[]
  const search = { name: 'search_kb', arguments: { query: 'turbine report' } }
  return messages.at(-1)!.role === 'user' && body.tools !== undefined
    ? { toolCalls: [search] }
    : { text: 'The contracts [1] [2] [3] [4] [5].' }
}

/** Returns the cited documents of an answer, without passages that were stored directly. */
function citedDocuments({ citations = '[]' }: Record<string, string>): ModelAnswer['cited'] {
  const all = JSON.parse(citations) as { knowledgeBaseId: string | null; documentId: string | null }[]
  return all.flatMap(({ knowledgeBaseId, documentId }) =>
    knowledgeBaseId !== null && documentId !== null ? [{ knowledgeBaseId, documentId }] : [],
  )
}
