import type { QueryInsights } from '../../src/contract/insights.ts'
import type { KnowledgeBaseHit, SearchHit } from '../../src/contract/knowledge.ts'
import type { WhyNot } from '../../src/contract/search-explanation.ts'
import type { TrashEntry } from '../../src/contract/trash.ts'
import { matchesFilter, parseFilter } from '../../src/storage/filter.ts'
import { callMcp, callMcpTool, type JsonObject, type Send } from './principal-requests.ts'
import {
  callers,
  citedDocuments,
  fileNames,
  idsOf,
  type ModelAnswer,
  type ModelBase,
  type ModelJob,
  type ModelRow,
  type RowModelState,
  savedFilter,
} from './row-model-state.ts'

const filters: readonly JsonObject[] = [
  { team: 'red' },
  { team: { $ne: 'red' } },
  { level: { $gte: 2 } },
  { visible_to: 'bob' },
  { $or: [{ team: 'blue' }, { open: true }] },
]
const topK = 200
const boosts = [
  { filter: { visible_to: 'bob' }, factor: 2 },
  { recency: { halfLifeDays: 1 }, factor: 2 },
]

/** A caller, and the knowledge base that it reads. */
interface ModelQuestion {
  readonly principalId: string
  readonly base: ModelBase
  readonly send: Send
}

/** Asks content routes, and compares the answers with the reference. */
export class RowQuestions {
  readonly #state: RowModelState

  constructor(state: RowModelState) {
    this.#state = state
  }

  /** Asks a random question. */
  next(): Promise<void> {
    return this.#state.draw.pick(this.#questions)()
  }

  readonly #questions: readonly (() => Promise<void>)[] = [
    () => this.#askList(),
    () => this.#askTrash(),
    () => this.#askDocument(),
    () => this.#askChunks(),
    () => this.#askExplanation(),
    () => this.#askFolders(),
    () => this.#askFolderChange(),
    () => this.#askExport(),
    () => this.#askSearch({ lexicalWeight: 1 }),
    () => this.#askSearch({ hybrid: false }),
    () => this.#askSearch({}),
    () => this.#askSearch({ rerank: true }),
    () => this.#askSearch({ groupBy: 'document', neighbors: 3, diversity: 0.5, boosts }),
    () => this.#askExplainedSearch(),
    () => this.#askWhyNot(),
    () => this.#askFilteredSearch(),
    () => this.#askSavedFilter(),
    () => this.#askWord(),
    () => this.#askManySearch(),
    () => this.#askCounts(),
    () => this.#askStats(),
    () => this.#askInsights(),
    () => this.#askJobs(),
    () => this.#askJob(),
    () => this.#askMcpSearch(),
    () => this.#askMcpDocuments(),
    () => this.#askMcpDocument(),
    () => this.#askMcpResources(),
    () => this.#askCitations(),
  ]

  #drawQuestion(): ModelQuestion {
    const principalId = this.#state.draw.pick(callers)
    const base = this.#state.drawBase()
    return { principalId, base, send: this.#state.target.as(principalId) }
  }

  async #askList(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const found: string[] = []
    const limit = 1 + this.#state.draw.below(9)
    for (let cursor = ''; ; ) {
      const { body } = await send(`GET ${base.path}/documents?limit=${limit}${cursor}`)
      const items = body.items as { documentId: string }[]
      found.push(...items.map(({ documentId }) => documentId))
      if (body.nextCursor === null) break
      if (items.length !== limit)
        this.#state.reportLeak(`${principalId} gets a page with ${items.length} rows`)
      cursor = `&cursor=${body.nextCursor}`
    }
    const isDocument = ({ kind }: ModelRow) => kind === 'document'
    const visible = this.#state.visibleRows(principalId, base).filter(isDocument)
    this.#state.compare(
      `${principalId} lists documents`,
      idsOf(base.rows.filter(isDocument)),
      idsOf(visible),
      found,
    )
  }

  async #askTrash(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const { body } = await send(`GET ${base.path}/documents/trash?limit=200`)
    const found = (body.items as TrashEntry[]).map(({ document }) => document.documentId)
    const visible = base.trash.filter(row => this.#state.sees(principalId, base, row))
    this.#state.compare(`${principalId} lists the trash`, idsOf(base.trash), idsOf(visible), found)
  }

  /** Lists the described folders: only those that contain a document which the principal may see. */
  async #askFolders(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const { body } = await send(`GET ${base.path}/folders`)
    const all = ['', ...fileNames]
    const seesAll = this.#state.seesEverything(principalId, base)
    const visible = this.#state.visibleRows(principalId, base).filter(({ kind }) => kind === 'document')
    const expected = all.filter(
      path => seesAll || visible.some(({ filename }) => path === '' || filename === path),
    )
    const found = (body.items as { path: string }[]).map(({ path }) => path)
    this.#state.compare(`${principalId} lists folders`, all, expected, found)
  }

  async #askFolderChange(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const path = this.#state.draw.pick(fileNames)
    const isAllowed = this.#state.seesEverything(principalId, base)
    const answer = await send(`PATCH ${base.path}/folders`, { path, description: `from ${principalId}` })
    this.#state.decide(`${principalId} describes ${path}`, isAllowed, answer, [200, 403])
  }

  async #askExport(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const found: string[] = []
    for (let cursor = ''; ; ) {
      const { body } = await send(`GET ${base.path}/export${cursor}`)
      for (const line of body.lines as string[]) {
        const { document, record } = JSON.parse(line) as {
          document?: { documentId: string }
          record?: { id: string }
        }
        found.push(...(document ? [document.documentId] : []), ...(record ? [record.id] : []))
      }
      if (body.nextCursor === null) break
      cursor = `?cursor=${body.nextCursor}`
    }
    this.#state.compare(
      `${principalId} exports`,
      idsOf(base.rows),
      idsOf(this.#state.visibleRows(principalId, base)),
      found,
    )
  }

  async #askAboutDocument(
    suffix: '' | '/chunks' | '/explain',
    evidenceOf: (row: ModelRow) => string | null,
  ): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const row = this.#state.drawRow(base, 'document')
    if (!row) return
    const answer = await send(`GET ${base.path}/documents/${row.id}${suffix}`)
    const isVisible = this.#state.sees(principalId, base, row)
    this.#state.decide(`${principalId} reads ${row.id}${suffix}`, isVisible, answer, [200, 404])
    const evidence = evidenceOf(row)
    if (isVisible && evidence !== null && !answer.text.includes(evidence))
      this.#state.reportRefusal(`${principalId} does not read ${evidence}`)
  }

  #askDocument(): Promise<void> {
    return this.#askAboutDocument('', ({ id }) => id)
  }

  #askExplanation(): Promise<void> {
    return this.#askAboutDocument('/explain', ({ id }) => id)
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
    const visible = this.#state.visibleRows(principalId, base).filter(row => hasText(row) && matches(row))
    this.#state.compare(
      `${principalId} searches ${JSON.stringify(body)}`,
      idsOf(base.rows.filter(hasText)),
      idsOf(visible),
      found,
    )
  }

  #askSearch(fields: JsonObject): Promise<void> {
    return this.#compareSearch(this.#drawQuestion(), fields)
  }

  /** Compares the counts and ranks of explanations, also of the stages after ranking, with the visible rows. */
  async #askExplainedSearch(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const stages = { groupBy: 'document', neighbors: 1, diversity: 0.5, boosts }
    const body = { text: 'turbine', topK, explain: true, ...(this.#state.draw.chance(0.5) && stages) }
    const answer = await send(`POST ${base.path}/search`, body)
    const visible = this.#state.visibleRows(principalId, base).filter(({ word }) => word !== null)
    for (const { explanation } of answer.body as unknown as Pick<SearchHit, 'explanation'>[]) {
      const { words, lists, boost, diversity, group, neighbors } = explanation!
      const question = `${principalId} explains a search`
      for (const { passages } of words) this.#compareCount(question, base, visible.length, passages)
      const moved = [boost, diversity, group, neighbors].map(stage => stage?.from ?? 0)
      const ranks = [...lists.map(({ rank }) => rank ?? 0), ...moved]
      if (Math.max(...ranks) > visible.length) this.#state.reportLeak(`${question}: ranks ${ranks}`)
    }
  }

  /** Asks why a document is not the first result. The answer names only visible rows, and counts only them. */
  async #askWhyNot(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const row = this.#state.drawRow(base, 'document')
    if (!row) return
    const body = { text: 'turbine', topK: 3, documentId: row.id }
    const answer = await send(`POST ${base.path}/search/why-not`, body)
    const isVisible = this.#state.sees(principalId, base, row)
    const question = `${principalId} asks why not ${row.id}`
    this.#state.decide(question, isVisible, answer, [200, 404])
    if (answer.status !== 200) return
    const { beatenBy, words, lists } = answer.body as unknown as WhyNot
    const visible = this.#state.visibleRows(principalId, base).filter(({ word }) => word !== null)
    const ids = new Set(idsOf(visible))
    for (const { id } of beatenBy)
      if (!ids.has(id.replace(/:0$/, ''))) this.#state.reportLeak(`${question}: beaten by ${id}`)
    for (const { passages } of words) this.#compareCount(question, base, visible.length, passages)
    for (const { rank } of lists)
      if ((rank ?? 0) > visible.length) this.#state.reportLeak(`${question}: rank ${rank}`)
  }

  #askFilteredSearch(): Promise<void> {
    const filter = this.#state.draw.pick(filters)
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
    const row = this.#state.draw.pick(base.rows)
    if (!row?.word) return
    const answer = await send(`POST ${base.path}/search`, { text: row.word, topK, lexicalWeight: 1 })
    const found = (answer.body as unknown as { id: string }[]).map(({ id }) => id.replace(/:0$/, ''))
    const visible = idsOf(this.#state.visibleRows(principalId, base))
    const expected = visible.filter(id => id === row.id || found.includes(id))
    this.#state.compare(`${principalId} searches the word of ${row.id}`, idsOf(base.rows), expected, found)
  }

  async #askManySearch(): Promise<void> {
    const { principalId, send } = this.#drawQuestion()
    const body = { text: 'turbine', topK }
    const answer = await send(`POST ${this.#state.target.workspace}/search`, body)
    const hits = (answer.body as unknown as KnowledgeBaseHit[]).flatMap(
      ({ id, knowledgeBaseId, alsoIn = [] }) => [
        { id: id.replace(/:0$/, ''), knowledgeBaseId },
        ...alsoIn.map(other => ({ id: other.documentId, knowledgeBaseId: other.knowledgeBaseId })),
      ],
    )
    for (const base of this.#state.bases) {
      const hasText = ({ word }: ModelRow) => word !== null
      const found = hits
        .filter(({ knowledgeBaseId }) => knowledgeBaseId === base.knowledgeBaseId)
        .map(({ id }) => id)
      const visible = this.#state.visibleRows(principalId, base).filter(hasText)
      this.#state.compare(
        `${principalId} searches all`,
        idsOf(base.rows.filter(hasText)),
        idsOf(visible),
        found,
      )
    }
  }

  async #askCounts(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const { embedder } = (await send(`GET ${base.path}`)).body as { embedder?: { chunks: number } }
    if (!embedder) return
    const visible = this.#state.visibleRows(principalId, base).filter(({ word }) => word !== null)
    this.#compareCount(`${principalId} counts chunks`, base, visible.length, embedder.chunks)
  }

  #compareCount(question: string, base: ModelBase, expected: number, found: number): void {
    this.#state.report.answers++
    this.#state.report.decisions += base.rows.length
    if (found > expected) this.#state.reportLeak(`${question}: ${found} instead of ${expected}`)
    if (found < expected) this.#state.reportRefusal(`${question}: ${found} instead of ${expected}`)
  }

  /** Asks for the query log, in which a principal may not see the searches of others. */
  async #askInsights(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    await send(`POST ${base.path}/search`, { text: `turbine ${principalId}`, topK, hybrid: true })
    const { status, body } = await send(`GET ${base.path}/insights?limit=100`)
    const { ownOnly, callers, slow } = body as unknown as QueryInsights
    const question = `${principalId} reads the insights`
    this.#state.report.answers++
    if (status !== 200) this.#state.reportRefusal(`${question}: ${status}`)
    else if (!ownOnly || callers > 1) this.#state.reportLeak(`${question} of ${callers} callers`)
    else if (!slow.some(search => search.question === `turbine ${principalId}`))
      this.#state.reportRefusal(`${question}: its own search is missing`)
  }

  /** Asks for sizes, which only a principal that sees everything may see. */
  async #askStats(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const isAllowed = this.#state.seesEverything(principalId, base)
    const answer = await send(`GET ${base.path}/stats`)
    this.#state.decide(`${principalId} reads the statistics`, isAllowed, answer, [200, 403])
    const documents = base.rows.filter(({ kind }) => kind === 'document').length
    if (isAllowed)
      this.#compareCount(`${principalId} counts documents`, base, documents, Number(answer.body.documents))
    const listed = (await send(`GET ${this.#state.target.workspace}/knowledge-bases`)).body.items as {
      knowledgeBaseId: string
      size?: { documents: number }
    }[]
    for (const { knowledgeBaseId, size } of listed) {
      const of = this.#state.bases.find(other => other.knowledgeBaseId === knowledgeBaseId)
      if (!of) continue
      const mayCount = this.#state.seesEverything(principalId, of)
      this.#state.compare(
        `${principalId} lists sizes`,
        [knowledgeBaseId],
        mayCount ? [knowledgeBaseId] : [],
        size ? [knowledgeBaseId] : [],
      )
    }
  }

  #seesJob(principalId: string, { base, documentId }: ModelJob): boolean {
    const row = base.rows.find(({ id }) => id === documentId)
    return row ? this.#state.sees(principalId, base, row) : this.#state.seesEverything(principalId, base)
  }

  async #askJobs(): Promise<void> {
    const { principalId, send } = this.#drawQuestion()
    const found = (await send(`GET ${this.#state.target.workspace}/jobs?limit=200`)).body.items as {
      jobId: string
    }[]
    const jobIds = (jobs: readonly { jobId: string }[]) => jobs.map(({ jobId }) => jobId)
    const visible = this.#state.jobs.filter(job => this.#seesJob(principalId, job))
    this.#state.compare(`${principalId} lists jobs`, jobIds(this.#state.jobs), jobIds(visible), jobIds(found))
  }

  async #askJob(): Promise<void> {
    const { principalId, send } = this.#drawQuestion()
    const job = this.#state.draw.pick(this.#state.jobs)
    if (!job) return
    const suffix = this.#state.draw.chance(0.5) ? '/events' : ''
    const answer = await send(`GET ${this.#state.target.workspace}/jobs/${job.jobId}${suffix}`)
    this.#state.decide(
      `${principalId} reads job${suffix}`,
      this.#seesJob(principalId, job),
      answer,
      [200, 404],
    )
  }

  async #askMcpSearch(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const args = { knowledgeBaseId: base.knowledgeBaseId, text: 'turbine', topK: 64 }
    const text = await callMcpTool(send, this.#state.target.workspace, 'search_kb', args)
    const visible = this.#state.visibleRows(principalId, base)
    this.#state.compareWords(`${principalId} calls search_kb`, {
      rows: base.rows,
      visible,
      text,
      isPartial: false,
    })
  }

  async #askMcpDocuments(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const args = { knowledgeBaseId: base.knowledgeBaseId, limit: 200 }
    const text = await callMcpTool(send, this.#state.target.workspace, 'list_documents', args)
    this.#compareListed(`${principalId} calls list_documents`, [base], principalId, text)
  }

  #compareListed(question: string, bases: readonly ModelBase[], principalId: string, text: string): void {
    for (const base of bases) {
      const documents = base.rows.filter(({ kind }) => kind === 'document')
      const visible = documents.filter(row => this.#state.sees(principalId, base, row))
      this.#state.compare(
        question,
        idsOf(documents),
        idsOf(visible),
        idsOf(documents.filter(({ id }) => text.includes(id))),
      )
    }
  }

  async #askMcpDocument(): Promise<void> {
    const { principalId, base, send } = this.#drawQuestion()
    const row = this.#state.drawRow(base, 'document')
    if (!row?.word) return
    const args = { knowledgeBaseId: base.knowledgeBaseId, documentId: row.id }
    const text = await callMcpTool(send, this.#state.target.workspace, 'get_document', args)
    const expected = this.#state.sees(principalId, base, row) ? [row.id] : []
    this.#state.compare(
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
      const page = await callMcp(send, this.#state.target.workspace, 'resources/list', {
        ...(cursor !== undefined && { cursor }),
      })
      text += JSON.stringify(page)
      cursor = page.nextCursor
      if (cursor === undefined) break
    }
    this.#compareListed(`${principalId} lists resources`, this.#state.bases, principalId, text)
  }

  async #askCitations(): Promise<void> {
    const stored = this.#state.draw.pick(this.#state.answers)
    if (!stored) return
    const { principalId, path, cited } = stored
    const { items } = (await this.#state.target.as(principalId)(`GET ${path}/messages`)).body as {
      items: { role: string; metadata: Record<string, string> }[]
    }
    const { metadata } = items.find(({ role }) => role === 'agent')!
    const found = citedDocuments(metadata)
    const isVisible = ({ knowledgeBaseId, documentId }: ModelAnswer['cited'][number]) => {
      const base = this.#state.bases.find(other => other.knowledgeBaseId === knowledgeBaseId)!
      const row = base.rows.find(({ id }) => id === documentId)
      return row ? this.#state.sees(principalId, base, row) : this.#state.seesEverything(principalId, base)
    }
    const ids = (list: ModelAnswer['cited']) => list.map(({ documentId }) => documentId)
    this.#state.compare(
      `${principalId} reads citations`,
      ids(cited),
      ids(cited.filter(isVisible)),
      ids(found),
    )
    if (metadata.unsupported !== undefined && !cited.every(isVisible))
      this.#state.reportLeak(`${principalId} reads which sentences hidden documents do not support`)
  }
}

function matchesPayload(filter: JsonObject, { metadata, visibleTo }: ModelRow): boolean {
  return matchesFilter(parseFilter(filter), { ...metadata, ...(visibleTo && { visible_to: visibleTo }) })
}
