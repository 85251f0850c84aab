import { describe, expect, test } from 'vitest'
import { type ErrorCode, WbError } from '../../src/contract/errors.ts'
import type { Collection, ContentStore } from '../../src/storage/content.ts'
import { withoutOptionalFeatures } from '../fakes/without-optional-features.ts'
import { makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

/** A driver whose calls all fail once it is switched off. */
class Faulty {
  code: ErrorCode | undefined

  readonly over = (store: ContentStore): ContentStore => ({
    ...store,
    collection: key => this.#or(() => store.collection(key)),
    collections: workspaceId => this.#or(async () => (await store.collections?.(workspaceId)) ?? []),
    write: (changes, rows) => this.#or(() => store.write(changes, rows)),
    nearest: (key, query) => this.#or(() => store.nearest(key, query)),
    read: (key, records, options) => this.#or(() => store.read(key, records, options)),
  })

  async #or<T>(work: () => Promise<T>): Promise<T> {
    if (this.code) throw new WbError(this.code, 'the database of the workspace did not answer')
    return work()
  }
}

function refused(code: string, status: number) {
  return { status, body: { error: { code, docs: `docs/errors.md#${code.replaceAll('_', '-')}` } } }
}

async function stage(content: (store: ContentStore) => ContentStore) {
  const wb = await open({ content })
  const { workspaceId } = await makeWorkspace(wb)
  const { embeddingServiceId } = await makeMockService(wb, workspaceId)
  const lexical = { enabled: false, analyzer: null, options: {} }
  const base = await makeBase(wb, { workspaceId, embeddingServiceId, lexical })
  const { document } = await base.ingest('A passage.')
  return { wb, workspaceId, base, document: `${base.path}/documents/${document.documentId}` }
}

describe.each([
  ['data_api_error', 502],
  ['data_api_unavailable', 503],
  ['collection_unavailable', 503],
  ['workspace_misconfigured', 422],
] as const)('S7.3-%s', (code, status) => {
  test('is returned on every content route, and nothing changes', async () => {
    const faulty = new Faulty()
    const { wb, workspaceId, base, document } = await stage(faulty.over)
    const W = `/api/v1/workspaces/${workspaceId}`
    const lines: [string, object?][] = [
      [`POST ${base.path}/search`, { text: 'passage' }],
      [`POST ${W}/search`, { text: 'passage' }],
      [`GET ${document}/chunks`],
      [`DELETE ${document}`],
      [`POST ${base.path}/ingest`, { text: 'More.' }],
      [`POST ${base.path}/records`, { records: [{ id: 'r', text: 'More.' }] }],
      [`DELETE ${base.path}/records/r`],
    ]
    if (code !== 'collection_unavailable')
      lines.push(
        [`GET ${W}/adoptable-collections`],
        [`POST ${W}/knowledge-bases`, { name: 'another' }],
        [`DELETE ${base.path}`],
      )
    faulty.code = code
    for (const [line, json] of lines)
      expect(await wb.send(line, json), line).toMatchObject(refused(code, status))
    faulty.code = undefined
    expect(await base.documents()).toHaveLength(1)
    expect(await base.search('passage')).toHaveLength(1)
  })
})

test('S7.3-collection_unavailable: is returned if the collection of an existing knowledge base is gone', async () => {
  let isGone = false
  const { wb, base, document } = await stage(store => ({
    ...store,
    collection: async key => (isGone ? undefined : store.collection(key)),
  }))
  isGone = true
  for (const [line, json] of [
    [`POST ${base.path}/search`, { text: 'passage' }],
    [`POST ${base.path}/ingest`, { text: 'More.' }],
    [`GET ${document}/chunks`],
  ] as [string, object?][])
    expect(await wb.send(line, json), line).toMatchObject(refused('collection_unavailable', 503))
})

describe('a driver without optional features', () => {
  test('S7.3-hybrid_not_supported: rejects hybrid search by flag, by weight and by the default of the knowledge base', async () => {
    const { wb, base } = await stage(withoutOptionalFeatures)
    const search = (json: object) => wb.send(`POST ${base.path}/search`, { text: 'passage', ...json })
    expect(await search({})).toMatchObject({ status: 200 })
    expect(await search({ hybrid: true })).toMatchObject(refused('hybrid_not_supported', 501))
    const words = { hybrid: true, lexicalWeight: 1 }
    expect(await search(words)).toMatchObject(refused('hybrid_not_supported', 501))
    await wb.send(`PATCH ${base.path}`, { lexical: { enabled: true, analyzer: null, options: {} } })
    expect(await search({})).toMatchObject(refused('hybrid_not_supported', 501))
    expect(await search({ hybrid: false })).toMatchObject({ status: 200 })
  })

  test('S7.3-rerank_not_supported S7.3-14: rejects rerank and accepts rerank false', async () => {
    const { wb, base } = await stage(withoutOptionalFeatures)
    const search = (rerank: boolean) => wb.send(`POST ${base.path}/search`, { text: 'passage', rerank })
    expect(await search(true)).toMatchObject(refused('rerank_not_supported', 501))
    const found = await search(false)
    expect(found.status).toBe(200)
    expect(JSON.parse(found.text)).toHaveLength(1)
  })

  test('S7.3-list_records_not_supported: cannot list the chunks of a document', async () => {
    const { wb, document } = await stage(withoutOptionalFeatures)
    expect(await wb.send(`GET ${document}/chunks`)).toMatchObject(refused('list_records_not_supported', 501))
  })
})

describe('a collection without vectors', () => {
  /** Drops the vectors of the collection, as another client of a remote store could. */
  async function wordsOnly(): Promise<{ wb: TestRuntime; path: string }> {
    let isBare = false
    const { wb, base } = await stage(store => ({
      ...store,
      collection: async key => {
        const found = await store.collection(key)
        return found && isBare ? ({ ...found, dimension: 0 } satisfies Collection) : found
      },
    }))
    isBare = true
    return { wb, path: base.path }
  }

  test('S7.3-vector_collection_required: rejects searches that need vectors and allows lexical search', async () => {
    const { wb, path } = await wordsOnly()
    const lines: [string, object][] = [
      ['search', { text: 'passage' }],
      ['search', { text: 'passage', hybrid: true }],
      ['ingest', { text: 'More.' }],
      ['records', { records: [{ id: 'r', text: 'More.' }] }],
    ]
    for (const [route, json] of lines)
      expect(await wb.send(`POST ${path}/${route}`, json), route).toMatchObject(
        refused('vector_collection_required', 400),
      )
    const words = { text: 'passage', hybrid: true, lexicalWeight: 1 }
    expect(await wb.send(`POST ${path}/search`, words)).toMatchObject({ status: 200 })
  })

  test('S7.3-vector_collection_not_allowed: rejects a raw vector', async () => {
    const { wb, path } = await wordsOnly()
    const lines: [string, object][] = [
      ['search', { vector: [1, 0, 0] }],
      ['records', { records: [{ id: 'r', vector: [1, 0, 0] }] }],
    ]
    for (const [route, json] of lines)
      expect(await wb.send(`POST ${path}/${route}`, json), route).toMatchObject(
        refused('vector_collection_not_allowed', 400),
      )
  })
})
