import { describe, expect, test } from 'vitest'
import type { ContentStore } from '../../src/storage/content.ts'
import { withoutOptionalFeatures } from '../fakes/without-optional-features.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

const place = '/var/lib/private/store.db'

/** A store whose reads fail with an unexpected error. */
function broken(store: ContentStore): ContentStore {
  return {
    ...store,
    async nearest() {
      throw new TypeError(`cannot read properties of undefined, in ${place}`)
    },
  }
}

describe('an unexpected exception in a handler', () => {
  test('S7.3-internal_error: returns a fixed message without stack or path; the log has both, with the request ID', async () => {
    const wb = await open({ content: broken })
    const base = await makeBase(wb)
    await base.ingest('A passage.')
    const answer = await wb.send(`POST ${base.path}/search`, { text: 'passage', hybrid: false })
    expect(answer.status).toBe(500)
    const requestId = answer.headers.get('x-request-id')
    expect(answer.body).toEqual({
      error: {
        code: 'internal_error',
        message: 'the runtime could not process this request',
        requestId,
        hint: expect.any(String),
        docs: 'docs/errors.md#internal-error',
      },
    })
    expect(answer.text).not.toMatch(/private|TypeError|\.ts|at /)
    expect(wb.loggedProblems).toMatchObject([
      { facts: { requestId, code: 'internal_error', error: { message: expect.stringContaining(place) } } },
    ])
    expect((await wb.send(`POST ${base.path}/search`, { text: 'passage', lexicalWeight: 1 })).status).toBe(
      200,
    )
  })

  test('S7.3-internal_error: in a batch fails only its line', async () => {
    let failing = true
    const wb = await open({
      content: store => ({
        ...store,
        async write(changes, rows) {
          const isFirst = changes.some(
            change => change.op === 'upsert' && change.records[0]?.text === 'First.',
          )
          if (isFirst && failing) throw new TypeError(`broken in ${place}`)
          return store.write(changes, rows)
        },
      }),
    })
    const base = await makeBase(wb)
    const ingestBoth = async () => {
      const lines = ['First.', 'Second.'].map(text => JSON.stringify({ text })).join('\n')
      const headers = { 'content-type': 'application/x-ndjson' }
      const url = `http://localhost${base.path}/ingest/batch`
      const answer = await wb.runtime.fetch(new Request(url, { method: 'POST', headers, body: lines }))
      const text = await answer.text()
      expect(text).not.toContain(place)
      return text
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as object)
    }
    expect(await ingestBoth()).toMatchObject([
      {
        line: 1,
        status: 500,
        error: { code: 'internal_error', message: 'the runtime could not process this request' },
      },
      { line: 2, status: 201 },
    ])
    failing = false
    expect(await ingestBoth()).toMatchObject([
      { line: 1, status: 201 },
      { line: 2, status: 200, outcome: 'duplicate' },
    ])
  })
})

describe('a driver with only the required methods', () => {
  async function powerless(): Promise<{ wb: TestRuntime; base: Base; documentId: string }> {
    const wb = await open({ content: withoutOptionalFeatures })
    const { workspaceId } = await makeWorkspace(wb)
    const { embeddingServiceId } = await makeMockService(wb, workspaceId)
    const base = await makeBase(wb, { workspaceId, embeddingServiceId })
    const { document } = await base.ingest('A passage.')
    return { wb, base, documentId: document.documentId }
  }

  test('S1-11: ingests documents and searches by vector', async () => {
    const { base } = await powerless()
    expect(await base.search('passage', { hybrid: false })).toHaveLength(1)
  })

  test.each([
    ['hybrid_not_supported', { text: 'passage', hybrid: true }],
    ['hybrid_not_supported', { text: 'passage', hybrid: true, lexicalWeight: 1 }],
    ['hybrid_not_supported', { text: 'passage' }],
    ['rerank_not_supported', { text: 'passage', hybrid: false, rerank: true }],
  ])('returns 501 %s for the search %j', async (code, json) => {
    const { wb, base } = await powerless()
    const answer = await wb.send(`POST ${base.path}/search`, json)
    expect(answer).toMatchObject({ status: 501, body: { error: { code } } })
  })

  test('returns 501 list_records_not_supported for chunks, and does not change unrelated records', async () => {
    const { wb, base, documentId } = await powerless()
    const path = `${base.path}/documents/${documentId}`
    const refused = { status: 501, body: { error: { code: 'list_records_not_supported' } } }
    expect(await wb.send(`GET ${path}/chunks`)).toMatchObject(refused)
    expect(await wb.send(`PATCH ${path}`, { sourceDocId: 'x' })).toMatchObject({ status: 200 })
    expect(await wb.send(`GET ${path}`)).toMatchObject({ body: { sourceDocId: 'x' } })
  })

  test('cannot have a knowledge base with the built-in embedder', async () => {
    const wb = await open({ content: withoutOptionalFeatures })
    await expect(makeBase(wb)).rejects.toMatchObject({ code: 'driver_unavailable' })
    expect(await wb.runtime.pending()).toBe(0)
    await wb.settle()
  })
})
