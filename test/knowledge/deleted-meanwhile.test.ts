import { beforeEach, describe, expect, test } from 'vitest'
import { filters } from '../../src/contract/filters.ts'
import { records } from '../../src/contract/records.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import type { ContentStore } from '../../src/storage/content.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import type { TestResponse, TestRuntime } from '../harness/runtime.ts'
import { eventNames, openTestChat } from '../harness/test-chat.ts'
import { setUpTools, type ToolSetup } from '../harness/tools.ts'

/** Runs an action once, before the store call with a given number. */
class Interruption {
  /** Calls since the action was set. */
  calls = 0
  #at = 0
  #act: (() => Promise<unknown>) | undefined

  /** @param at  number of the call, from 1; with 0 the calls are only counted */
  set(at: number, act: () => Promise<unknown>): void {
    Object.assign(this, { calls: 0 })
    this.#at = at
    this.#act = act
  }

  rows = (store: RowStore): RowStore => this.#wrapped(store)

  content = (store: ContentStore): ContentStore => ({
    ...this.#wrapped(store),
    lexical: store.lexical && this.#wrapped(store.lexical),
    listing: store.listing && this.#wrapped(store.listing),
    fitted: store.fitted && this.#wrapped(store.fitted),
  })

  #wrapped<S extends object>(store: S): S {
    const wrapped = Object.entries(store).map(([name, member]) => [
      name,
      typeof member === 'function' ? (...given: unknown[]) => this.#call(() => member(...given)) : member,
    ])
    return Object.fromEntries(wrapped) as S
  }

  async #call(work: () => unknown): Promise<unknown> {
    this.calls++
    if (this.calls === this.#at) {
      const act = this.#act
      this.#at = 0
      await act?.()
    }
    return work()
  }
}

const interruption = new Interruption()
let stage: ToolSetup
let wb: TestRuntime

/** A workspace with a knowledge base. */
interface Place {
  readonly workspaceId: string
  readonly embeddingServiceId: string | undefined
  readonly other: Base
}

/** A knowledge base with two documents, a filter and a record, and the place where it is. */
interface Scene extends Place {
  readonly base: Base
  readonly documentId: string
  readonly filterId: string
}

async function place(isFitted: boolean, workspaceId?: string): Promise<Place> {
  workspaceId ??= (await makeWorkspace(wb)).workspaceId
  const service = isFitted ? undefined : await makeMockService(wb, workspaceId)
  const embeddingServiceId = service?.embeddingServiceId
  const other = await makeBase(wb, { workspaceId, embeddingServiceId })
  await other.ingest('beta epsilon')
  return { workspaceId, embeddingServiceId, other }
}

async function scene(at: Place): Promise<Scene> {
  const base = await makeBase(wb, at)
  const { document } = await base.ingest('alpha beta gamma', { sourceFilename: 'a.txt' })
  await base.ingest('beta delta')
  const { knowledgeFilterId } = await wb.call(filters.create, {
    params: base.params,
    body: { name: 'all', filter: {} },
  })
  if (at.embeddingServiceId)
    await wb.call(records.upsert, {
      params: base.params,
      body: { records: [{ id: 'r', vector: [1, 0, 0], payload: {} }] },
    })
  else await wb.settle()
  return { ...at, base, documentId: document.documentId, filterId: knowledgeFilterId }
}

beforeEach(async () => {
  // In memory, because thousands of writes to disk are slow.
  stage = await setUpTools({
    config: { controlPlane: { driver: 'memory' } },
    rows: interruption.rows,
    content: interruption.content,
  })
  wb = stage.wb
})

type Ask = (scene: Scene) => Promise<TestResponse>

const post =
  (path: (scene: Scene) => string, json: (scene: Scene) => object): Ask =>
  scene =>
    wb.send(`POST ${path(scene)}`, json(scene))
const ofBase = ({ base }: Scene) => base.path
const ofWorkspace = ({ workspaceId }: Scene) => `/api/v1/workspaces/${workspaceId}`
const ofDocument = ({ base, documentId }: Scene) => `${base.path}/documents/${documentId}`

async function upload({ base }: Scene): Promise<TestResponse> {
  const body = new FormData()
  body.append('file', new Blob(['zeta eta']), 'z.txt')
  return sent(await wb.runtime.fetch(request('POST', `${base.path}/ingest/file`, { body })))
}

async function batch({ base }: Scene): Promise<TestResponse> {
  const body = ['zeta', 'eta', 'theta'].map(text => JSON.stringify({ text })).join('\n')
  const headers = { 'content-type': 'application/x-ndjson' }
  return sent(await wb.runtime.fetch(request('POST', `${base.path}/ingest/batch`, { body, headers })))
}

function request(method: string, path: string, init: RequestInit): Request {
  return new Request(`http://localhost${path}`, { method, ...init })
}

async function sent(answer: Response): Promise<TestResponse> {
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return { status: answer.status, text, body: isJson ? JSON.parse(text) : {}, headers: answer.headers }
}

const asks: Record<string, Ask> = {
  'a search': post(
    scene => `${ofBase(scene)}/search`,
    () => ({ text: 'beta' }),
  ),
  'a search by vector': post(
    scene => `${ofBase(scene)}/search`,
    () => ({ text: 'beta', hybrid: false }),
  ),
  'a lexical search': post(
    scene => `${ofBase(scene)}/search`,
    () => ({ text: 'beta', lexicalWeight: 1 }),
  ),
  'a search that is reranked and filtered': post(
    scene => `${ofBase(scene)}/search`,
    ({ filterId }) => ({ text: 'beta', rerank: true, knowledgeFilterId: filterId }),
  ),
  'a search of the workspace': post(
    scene => `${ofWorkspace(scene)}/search`,
    () => ({ text: 'beta' }),
  ),
  'a search of several by name': post(
    scene => `${ofWorkspace(scene)}/search`,
    ({ base, other }) => ({
      text: 'beta',
      knowledgeBaseIds: [base, other].map(({ params }) => params.knowledgeBaseId),
    }),
  ),
  'an ingest': post(
    scene => `${ofBase(scene)}/ingest`,
    () => ({ text: 'zeta eta' }),
  ),
  'an ingest that replaces': post(
    scene => `${ofBase(scene)}/ingest`,
    () => ({ text: 'zeta eta', sourceFilename: 'a.txt', overwriteOnNameConflict: true }),
  ),
  'an ingest as a job': async scene => {
    const answer = await wb.send(`POST ${ofBase(scene)}/ingest?async=true`, { text: 'zeta eta' })
    await wb.settle()
    return answer
  },
  'an upload': upload,
  'a batch': batch,
  'records that are stored': post(
    scene => `${ofBase(scene)}/records`,
    () => ({ records: [{ id: 'r', text: 'zeta', payload: {} }] }),
  ),
  'a record that is deleted': scene => wb.send(`DELETE ${ofBase(scene)}/records/r`),
  'a list of documents': scene => wb.send(`GET ${ofBase(scene)}/documents`),
  'a document': scene => wb.send(`GET ${ofDocument(scene)}`),
  'a document that is made': post(
    scene => `${ofBase(scene)}/documents`,
    () => ({}),
  ),
  'a document that is changed': scene =>
    wb.send(`PATCH ${ofDocument(scene)}`, { metadata: { title: 'new' } }),
  'a document that is deleted': scene => wb.send(`DELETE ${ofDocument(scene)}`),
  'documents that are deleted': post(
    scene => `${ofBase(scene)}/documents/bulk-delete`,
    ({ documentId }) => ({ documentIds: [documentId] }),
  ),
  chunks: scene => wb.send(`GET ${ofDocument(scene)}/chunks`),
  'a knowledge base': scene => wb.send(`GET ${ofBase(scene)}`),
  'a knowledge base that is changed': scene => wb.send(`PATCH ${ofBase(scene)}`, { description: 'new' }),
  'a knowledge base that is deleted': scene => wb.send(`DELETE ${ofBase(scene)}`),
  'a list of knowledge bases': scene => wb.send(`GET ${ofWorkspace(scene)}/knowledge-bases`),
  'adoptable collections': scene => wb.send(`GET ${ofWorkspace(scene)}/adoptable-collections`),
  'a list of filters': scene => wb.send(`GET ${ofBase(scene)}/filters`),
  'a filter that is made': post(
    scene => `${ofBase(scene)}/filters`,
    () => ({ name: 'none', filter: {} }),
  ),
  'a filter that is changed': scene =>
    wb.send(`PATCH ${ofBase(scene)}/filters/${scene.filterId}`, { name: 'new' }),
}

/** Requests for anything below a deleted resource fail with not found; a workspace is deleted in steps. */
const notFound = /^(?:(?:workspace|knowledge_base|document|knowledge_filter)_)?not_found$/

function codesIn({ text }: TestResponse): string[] {
  return [...text.matchAll(/"code":"(\w+)"/g)].map(([, code]) => code!)
}

type Deletion = (scene: Scene) => Promise<unknown>

const deletions: Record<string, Deletion> = {
  'knowledge base': ({ base }) => base.delete(),
  workspace: ({ workspaceId }) => wb.call(workspaces.delete, { params: { workspaceId } }),
}

/** Repeats a request with a deletion before each of its store calls in turn. */
async function interrupted(isFitted: boolean, deletes: Deletion, ask: Ask) {
  const shared = deletes === deletions.workspace ? undefined : await place(isFitted)
  const enter = async () => scene(shared ?? (await place(isFitted)))
  const first = await enter()
  interruption.set(0, async () => {})
  const undisturbed = await ask(first)
  expect(undisturbed.status, undisturbed.text).toBeLessThan(300)
  const { calls } = interruption
  await wb.send(`DELETE ${first.base.path}`)
  const wrong: string[] = []
  for (let at = 1; at <= calls; at++) {
    const own = await enter()
    interruption.set(at, () => deletes(own))
    const answer = await ask(own)
    const isInterrupted = interruption.calls >= at
    interruption.set(0, async () => {})
    if (!isInterrupted) await deletes(own)
    const isTold = answer.status < 300 || answer.status === 404
    if (!isTold || !codesIn(answer).every(code => notFound.test(code)))
      wrong.push(`before call ${at} of ${calls}: ${answer.status} ${answer.text.slice(0, 200)}`)
  }
  return wrong
}

describe.each(Object.keys(deletions))('with its %s deleted concurrently', what => {
  test.each(Object.keys(asks))('%s succeeds or returns not found', async name => {
    expect(await interrupted(false, deletions[what]!, asks[name]!)).toEqual([])
  })
})

test.each(Object.keys(asks).filter(name => /search|ingest|chunks|changed/.test(name)))(
  'with its knowledge base deleted concurrently, %s succeeds or returns not found in a fitted space',
  async name => {
    expect(await interrupted(true, deletions['knowledge base']!, asks[name]!)).toEqual([])
  },
)

test.each([
  ['list_kbs', {}],
  ['list_documents', {}],
  ['count_documents', {}],
  ['summarize_kb', {}],
  ['search_kb', { query: 'beta', limit: 5 }],
])('the tool %s omits a knowledge base that is deleted concurrently', async (name, args) => {
  const shared = await place(false, stage.workspaceId)
  for (let at = 0, calls = 0; at <= calls; at++) {
    const { base, other } = await scene(shared)
    const [gone, left] = [base.params.knowledgeBaseId, other.params.knowledgeBaseId]
    interruption.set(at, () => base.delete())
    const { outcome, content } = await stage.run(name, args, { knowledgeBaseIds: [gone, left] })
    calls = Math.max(calls, interruption.calls)
    interruption.set(0, async () => {})
    expect({ outcome, content }, `before call ${at}`).toEqual({
      outcome: 'success',
      content: expect.stringContaining(left),
    })
  }
})

test('an answer with retrieved passages omits a knowledge base that is deleted concurrently', async () => {
  const chat = await openTestChat({
    config: { controlPlane: { driver: 'memory' } },
    rows: interruption.rows,
    content: interruption.content,
    service: { supportsTools: false },
  })
  const { workspaceId } = chat.agent
  for (let at = 0, calls = 0; at <= calls; at++) {
    const [gone, left] = [await makeBase(chat, { workspaceId }), await makeBase(chat, { workspaceId })]
    await gone.ingest('beta gone')
    await left.ingest('beta left')
    interruption.set(at, () => gone.delete())
    const events = eventNames(await chat.stream('What is beta?'))
    // Later turns make more store calls, as the conversation grows.
    if (at === 0) calls = interruption.calls
    interruption.set(0, async () => {})
    expect(events.at(-1), `before call ${at}`).toBe('done')
    await left.delete()
  }
})
