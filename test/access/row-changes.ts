import { parsePolicy } from '../../src/access/policy/parse.ts'
import type { TrashEntry } from '../../src/contract/trash.ts'
import type { ChatRequest } from '../fakes/chat-server.ts'
import type { JsonObject, Send } from './principal-requests.ts'
import { drawPolicy } from './random-policies.ts'
import {
  builtInDsl,
  callers,
  citedDocuments,
  fileNames,
  idsOf,
  type ModelBase,
  type ModelRow,
  type ModelTarget,
  principalIds,
  type RowModelState,
  type Scalar,
  savedFilter,
} from './row-model-state.ts'

/** The caller of a change. */
interface ModelCaller {
  /** Null for the operator. */
  readonly principalId: string | null
  readonly send: Send
  /** Owner of the rows that the caller adds. */
  readonly ownerId: string | null
}

const rowsPerBaseMax = 30
const ingestPollMs = 5
const wordLetters = 'bcdfghjklmnprstvwxz'
const wordBase = wordLetters.length
const wordDigits = 4

/** Makes random changes over the API, and applies what the API promises to the state. */
export class RowChanges {
  readonly #state: RowModelState
  #words = 0

  constructor(state: RowModelState) {
    this.#state = state
  }

  /** Creates the principals and two knowledge bases with some rows. */
  async prepare(): Promise<void> {
    const { bases, target } = this.#state
    for (const id of principalIds) await this.#putPrincipal(id)
    for (const name of ['first', 'second']) bases.push(await createModelBase(target, name))
    for (let count = 0; count < 8; count++) await this.#ingest()
  }

  /** Makes a random change. */
  next(): Promise<void> {
    return this.#state.draw.pick(this.#changes)()
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
    () => this.#restore(),
    () => this.#restore(),
    () => this.#putPrincipal(this.#state.draw.pick(principalIds)),
    () => this.#putPrincipal(this.#state.draw.pick(principalIds)),
    () => this.#changePolicy(),
    () => this.#changePolicy(),
    () => this.#chat(),
  ]

  #drawCaller(): ModelCaller {
    const { chance, pick } = this.#state.draw
    const principalId = chance(0.1) ? null : pick(callers)
    const send = principalId === null ? this.#state.target.operator : this.#state.target.as(principalId)
    return { principalId, send, ownerId: principalId ?? this.#state.target.operatorId }
  }

  /**
   * Returns the caller that may send the fields of a new document: the given one, or the operator if the document is
   * attributed to another principal. Requires that the given one is refused then.
   */
  async #callerFor(line: string, caller: ModelCaller, body: JsonObject): Promise<ModelCaller> {
    const { principalId, send, ownerId } = caller
    if (mayAttribute(caller, body)) return caller
    const question = `${principalId} adds a document of ${body.ownerPrincipalId} instead of ${ownerId}`
    this.#state.decide(question, false, await send(line, body), [201, 403])
    const { operator, operatorId } = this.#state.target
    return { principalId: null, send: operator, ownerId: operatorId }
  }

  #drawVisibleTo(): string[] | null {
    const { pick, chance } = this.#state.draw
    if (chance(0.2)) return null
    if (chance(0.25)) return ['*']
    return [...new Set([pick(callers), pick(callers)])]
  }

  #drawMetadata(): Record<string, Scalar> {
    const { pick, chance, below } = this.#state.draw
    return {
      ...(chance(0.8) && { team: pick<Scalar>(['red', 'blue', 'red', null, 1]) }),
      ...(chance(0.6) && { level: pick<Scalar>([below(5), below(5), '3']) }),
      ...(chance(0.4) && { open: chance(0.5) }),
      ...(chance(0.1) && { owner_id: pick(callers), source_filename: '1.md' }),
    }
  }

  /** Returns fields of a new or changed row; those that are left out get their defaults. */
  #drawAccess(): { visibleTo?: string[] | null; ownerPrincipalId?: string | null } {
    const { chance, pick } = this.#state.draw
    return {
      ...(chance(0.7) && { visibleTo: this.#drawVisibleTo() }),
      ...(chance(0.3) && { ownerPrincipalId: pick([...callers, null]) }),
    }
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
    await this.#state.target.operator(`DELETE ${base.path}/documents/${oldest.id}`)
    moveToTrash(base, [oldest.id])
  }

  #ingestBody(word: string): JsonObject {
    const named = this.#state.draw.chance(0.4) && { sourceFilename: this.#state.draw.pick(fileNames) }
    return { text: textOf(word), metadata: this.#drawMetadata(), ...this.#drawAccess(), ...named }
  }

  async #ingest(): Promise<void> {
    const [base, { send, ownerId, principalId }] = [this.#state.drawBase(), this.#drawCaller()]
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
        this.#state.sees(principalId, base, row),
    )
    const answer = await send(line, body)
    const isAdded = sameName.length === 0 || body.overwriteOnNameConflict === true
    const question = `${principalId} ingests ${JSON.stringify(body)}`
    this.#state.decide(question, isAdded, answer, [201, 200])
    const document = answer.body.document as { documentId: string }
    if (answer.status !== 201) {
      this.#state.compare(question, idsOf(sameName), idsOf(sameName.slice(0, 1)), [document.documentId])
      return
    }
    base.rows = base.rows.filter(row => !sameName.includes(row))
    this.#newRow(base, document, { ownerId, word, body })
  }

  async #ingestWithSameName(): Promise<void> {
    const [base, caller] = [this.#state.drawBase(), this.#drawCaller()]
    const named = base.rows.filter(({ filename }) => filename !== null)
    if (named.length === 0) return
    const { filename, owner } = this.#state.draw.pick(named)
    const word = this.#newWord()
    const body = {
      ...this.#ingestBody(word),
      sourceFilename: filename,
      overwriteOnNameConflict: this.#state.draw.chance(0.7),
      ...(this.#state.draw.chance(0.5) && { ownerPrincipalId: owner }),
    }
    await this.#sendIngest(base, caller, body, word)
  }

  /** Sends the text of an existing document. The answer may name that document only if the caller can see it. */
  async #ingestSameText(): Promise<void> {
    const [base, requester] = [this.#state.drawBase(), this.#drawCaller()]
    const row = this.#state.drawRow(base, 'document')
    if (!row?.word) return
    await this.#makeRoom(base)
    const body = { text: textOf(row.word), ownerPrincipalId: row.owner }
    const line = `POST ${base.path}/ingest`
    const { send, ownerId, principalId } = await this.#callerFor(line, requester, body)
    const answer = await send(line, body)
    const { documentId } = answer.body.document as { documentId: string }
    const existing = base.rows.find(({ id }) => id === documentId)
    const isVisible = !existing || this.#state.sees(principalId, base, existing)
    const question = `${principalId} ingests the text of ${row.id}`
    this.#state.compare(question, [documentId], isVisible ? [documentId] : [], [documentId])
    if (answer.status === 201)
      this.#newRow(base, answer.body.document as JsonObject, { ownerId, word: row.word, body })
  }

  async #ingestInJob(): Promise<void> {
    const [base, requester] = [this.#state.drawBase(), this.#drawCaller()]
    await this.#makeRoom(base)
    const word = this.#newWord()
    const body = { text: textOf(word), metadata: this.#drawMetadata(), ...this.#drawAccess() }
    const line = `POST ${base.path}/ingest?async=true`
    const { send, ownerId } = await this.#callerFor(line, requester, body)
    const { job, document } = (await send(line, body)).body as {
      job: { jobId: string }
      document: JsonObject
    }
    const jobLine = `GET ${this.#state.target.workspace}/jobs/${job.jobId}`
    for (;;) {
      const { body: current, text } = await this.#state.target.operator(jobLine)
      if (current.status === 'succeeded') break
      if (current.status === 'failed') throw new Error(text)
      await new Promise(resolve => setTimeout(resolve, ingestPollMs))
    }
    this.#newRow(base, document, { ownerId, word, body })
    this.#state.jobs.push({ jobId: job.jobId, base, documentId: String(document.documentId) })
  }

  async #register(): Promise<void> {
    const [base, requester] = [this.#state.drawBase(), this.#drawCaller()]
    await this.#makeRoom(base)
    const body = { metadata: this.#drawMetadata(), ...this.#drawAccess() }
    const line = `POST ${base.path}/documents`
    const { send, ownerId } = await this.#callerFor(line, requester, body)
    const answer = await send(line, body)
    this.#newRow(base, answer.body, { ownerId, word: null, body })
  }

  async #upsertRecord(): Promise<void> {
    const [base, { send, ownerId, principalId }] = [this.#state.drawBase(), this.#drawCaller()]
    const id = `r${this.#state.draw.below(6)}`
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
    const isAllowed = !existing || this.#state.sees(principalId, base, existing)
    this.#state.decide(`${principalId} stores record ${id}`, isAllowed, answer, [200, 403])
    if (answer.status !== 200) return
    const readers = visibleTo === undefined && ownerId !== null ? [ownerId] : (visibleTo ?? null)
    base.rows = base.rows.filter(row => row !== existing)
    base.rows.push({ id, kind: 'record', word, metadata, visibleTo: readers, owner: ownerId, filename: null })
  }

  async #deleteRecord(): Promise<void> {
    const [base, { send, principalId }] = [this.#state.drawBase(), this.#drawCaller()]
    const row = this.#state.drawRow(base, 'record')
    if (!row) return
    const { body } = await send(`DELETE ${base.path}/records/${row.id}`)
    const expected = this.#state.sees(principalId, base, row) ? [row.id] : []
    this.#state.compare(
      `${principalId} deletes record`,
      [row.id],
      expected,
      body.deleted === true ? [row.id] : [],
    )
    if (body.deleted === true) base.rows = base.rows.filter(other => other !== row)
  }

  async #patch(): Promise<void> {
    const [base, caller] = [this.#state.drawBase(), this.#drawCaller()]
    const { send, principalId } = caller
    const row = this.#state.drawRow(base, 'document')
    if (!row) return
    const metadata = this.#state.draw.chance(0.5) ? { metadata: this.#drawMetadata() } : {}
    const patch = { ...this.#drawAccess(), ...metadata }
    const keepsOwner = patch.ownerPrincipalId === row.owner
    const isAllowed = this.#state.sees(principalId, base, row) && (keepsOwner || mayAttribute(caller, patch))
    const answer = await send(`PATCH ${base.path}/documents/${row.id}`, patch)
    this.#state.decide(`${principalId} changes ${row.id}`, isAllowed, answer, [200, 403])
    if (answer.status !== 200) return
    if (patch.visibleTo !== undefined) row.visibleTo = patch.visibleTo
    if (patch.ownerPrincipalId !== undefined) row.owner = patch.ownerPrincipalId
    if (patch.metadata) row.metadata = patch.metadata
  }

  async #delete(): Promise<void> {
    const [base, { send, principalId }] = [this.#state.drawBase(), this.#drawCaller()]
    const row = this.#state.drawRow(base, 'document')
    if (!row) return
    const answer = await send(`DELETE ${base.path}/documents/${row.id}`)
    this.#state.decide(
      `${principalId} deletes ${row.id}`,
      this.#state.sees(principalId, base, row),
      answer,
      [204, 403],
    )
    if (answer.status === 204) moveToTrash(base, [row.id])
  }

  async #bulkDelete(): Promise<void> {
    const [base, { send, principalId }] = [this.#state.drawBase(), this.#drawCaller()]
    const rows = [this.#state.drawRow(base, 'document'), this.#state.drawRow(base, 'document')].filter(
      row => row !== undefined,
    )
    if (rows.length === 0) return
    const ids = [...new Set(rows.map(({ id }) => id))]
    const { deleted } = (await send(`POST ${base.path}/documents/bulk-delete`, { documentIds: ids }))
      .body as {
      deleted: string[]
    }
    const expected = rows.filter(row => this.#state.sees(principalId, base, row)).map(({ id }) => id)
    this.#state.compare(`${principalId} deletes documents`, ids, expected, deleted)
    moveToTrash(base, deleted)
  }

  /** Restores a deleted document. Only a document that the caller can see may be restored, or prevent it. */
  async #restore(): Promise<void> {
    const [base, { send, principalId }] = [this.#state.drawBase(), this.#drawCaller()]
    const row = this.#state.draw.pick(base.trash)
    if (!row) return
    await this.#makeRoom(base)
    const { operator } = this.#state.target
    const entries = (await operator(`GET ${base.path}/documents/trash?limit=200`)).body.items as TrashEntry[]
    const { entryId } = entries.find(({ document }) => document.documentId === row.id)!
    const answer = await send(`POST ${base.path}/documents/trash/${entryId}/restore`)
    const question = `${principalId} restores ${row.id}`
    const isVisible = this.#state.sees(principalId, base, row)
    const hasSameKeys = (other: ModelRow) =>
      other.kind === 'document' &&
      other.owner === row.owner &&
      ((row.filename !== null && other.filename === row.filename) ||
        (row.word !== null && other.word === row.word))
    const rivals = base.rows.filter(other => hasSameKeys(other) && this.#state.sees(principalId, base, other))
    if (answer.status === 409 && rivals.length > 0) return
    this.#state.decide(question, isVisible, answer, [200, 403])
    if (answer.status !== 200) return
    base.trash = base.trash.filter(other => other !== row)
    base.rows.push(row)
  }

  /** Creates a principal, changes it, or deletes it. */
  async #putPrincipal(id: (typeof principalIds)[number]): Promise<void> {
    const { chance, pick } = this.#state.draw
    const path = `${this.#state.target.workspace}/principals`
    const { operator } = this.#state.target
    if (this.#state.principals.has(id) && chance(0.15)) {
      await operator(`DELETE ${path}/${id}`)
      this.#state.principals.delete(id)
      return
    }
    const attributes: Record<string, string> = {
      ...(chance(0.7) && { team: pick(['red', 'blue']) }),
      ...(chance(0.1) && { admin: pick(['true', 'false']) }),
    }
    const role = id === 'root' || chance(0.05) ? 'admin' : 'viewer'
    if (this.#state.principals.has(id)) await operator(`PATCH ${path}/${id}`, { attributes, role })
    else await operator(`POST ${path}`, { principalId: id, attributes, role })
    this.#state.principals.set(id, {
      id,
      attributes: role === 'admin' ? { admin: 'true', ...attributes } : attributes,
    })
  }

  async #changePolicy(): Promise<void> {
    const base = this.#state.drawBase()
    const dsl = drawPolicy(this.#state.draw)
    const isEnabled = this.#state.draw.chance(0.6)
    const answer = await this.#state.target.operator(`PATCH ${base.path}`, {
      policyDsl: dsl,
      policyEnabled: isEnabled,
    })
    if (answer.status !== 200) throw new Error(`${dsl}: ${answer.text}`)
    base.policy = { dsl, parsed: parsePolicy(dsl), isEnabled }
  }

  /** Asks the agent, whose model searches and cites everything that it receives. */
  async #chat(): Promise<void> {
    const { model, agentId } = this.#state.target.agent
    const principalId = this.#state.draw.pick(callers)
    const send = this.#state.target.as(principalId)
    const list = `${this.#state.target.workspace}/agents/${agentId}/conversations`
    const path = `${list}/${(await send(`POST ${list}`, {})).body.conversationId}`
    const first = model.received.length
    model.respond(answerWithCitations)
    const answer = await send(`POST ${path}/messages`, { content: 'what does the turbine report mention?' })
    const sent = JSON.stringify(model.received.slice(first).map(({ body }) => body.messages))
    const rows = this.#state.bases.flatMap(base => base.rows.filter(({ word }) => word !== null))
    const visible = this.#state.bases.flatMap(base => this.#state.visibleRows(principalId, base))
    // The model receives the best passages only.
    this.#state.compareWords(`${principalId} asks the agent`, { rows, visible, text: sent, isPartial: true })
    const { metadata } = answer.body.assistant as { metadata: Record<string, string> }
    this.#state.answers.push({ principalId, path, cited: citedDocuments(metadata) })
  }
}

async function createModelBase({ operator, workspace }: ModelTarget, name: string): Promise<ModelBase> {
  const { knowledgeBaseId } = (await operator(`POST ${workspace}/knowledge-bases`, { name })).body
  const path = `${workspace}/knowledge-bases/${knowledgeBaseId}`
  await operator(`PATCH ${path}`, { queryLog: true })
  const filter = (await operator(`POST ${path}/filters`, { name: 'red', filter: savedFilter })).body
  for (const folder of ['', ...fileNames]) await operator(`PATCH ${path}/folders`, describe(folder))
  const policy = { dsl: builtInDsl, parsed: parsePolicy(builtInDsl), isEnabled: false }
  return {
    path,
    knowledgeBaseId: String(knowledgeBaseId),
    filterId: String(filter.knowledgeFilterId),
    rows: [],
    trash: [],
    policy,
  }
}

function describe(path: string): JsonObject {
  return { path, description: `what is in '${path}'` }
}

/** Moves deleted documents of a knowledge base to its trash. */
function moveToTrash(base: ModelBase, ids: readonly string[]): void {
  base.trash.push(...base.rows.filter(({ id }) => ids.includes(id)))
  base.rows = base.rows.filter(({ id }) => !ids.includes(id))
}

/** Returns true if a caller may store the owner in a body: itself, or any as the operator. */
function mayAttribute({ principalId, ownerId }: ModelCaller, { ownerPrincipalId = ownerId }: JsonObject) {
  return principalId === null || ownerPrincipalId === ownerId
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
