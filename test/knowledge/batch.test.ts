import { expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { embeddingServices } from '../../src/contract/services.ts'
import type { ContentStore, ContentWrite } from '../../src/storage/content.ts'
import { type Base, makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

interface Outcome {
  readonly line: number
  readonly status: number
  readonly error?: { code: string; message: string; requestId: string }
}

async function ingestBatch({ runtime }: TestRuntime, { path }: Base, texts: string[]): Promise<Outcome[]> {
  const response = await runtime.fetch(
    new Request(`http://localhost${path}/ingest/batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: texts.map(text => JSON.stringify({ text })).join('\n'),
    }),
  )
  const lines = (await response.text()).trimEnd().split('\n')
  return lines.map(line => JSON.parse(line) as Outcome)
}

/** A store that throws on one kind of change. */
function breakingAt(kind: ContentWrite['op']) {
  return (store: ContentStore): ContentStore => ({
    ...store,
    write(changes, rows) {
      if (changes.some(({ op }) => op === kind)) throw new Error('the disk melted')
      return store.write(changes, rows)
    },
  })
}

test('S7.1: an unexpected error in a line is an internal error, logged under the request ID of the line', async () => {
  const wb = await open({ content: breakingAt('upsert') })
  const [outcome] = await ingestBatch(wb, await makeBase(wb), ['A text.'])
  expect(outcome).toMatchObject({ line: 1, status: 500, error: { code: 'internal_error' } })
  expect(JSON.stringify(outcome)).not.toContain('melted')
  expect(wb.loggedProblems).toHaveLength(1)
  expect(wb.loggedProblems[0]!.facts).toMatchObject({
    requestId: outcome!.error!.requestId,
    error: { message: 'the disk melted' },
  })
})

test('S7.1: the message of a line redacts secrets like any other message', async () => {
  const wb = await open({ outbound: async () => new Response(null, { status: 401 }) })
  const { workspaceId } = await makeWorkspace(wb)
  const service = await wb.call(embeddingServices.create, {
    params: { workspaceId },
    body: {
      name: 'sk-aaaabbbbccccdddd',
      provider: 'ollama',
      modelName: 'some-model',
      embeddingDimension: 3,
    },
  })
  const base = await makeBase(wb, { workspaceId, embeddingServiceId: service.embeddingServiceId })
  const [outcome] = await ingestBatch(wb, base, ['A text.'])
  expect(outcome).toMatchObject({ status: 503, error: { code: 'embedding_unavailable' } })
  expect(outcome!.error!.message).toContain('[redacted]')
})

test('a document that cannot be deleted is reported as failed, and the reason is logged', async () => {
  const wb = await open({ content: breakingAt('deleteDocument') })
  const base = await makeBase(wb)
  const { documentId } = (await base.ingest('A text.')).document
  const body = { documentIds: [documentId] }
  const { deleted, failed } = await wb.call(documents.bulkDelete, { params: base.params, body })
  expect(deleted).toEqual([])
  expect(failed).toMatchObject([{ documentId, code: 'delete_failed' }])
  expect(JSON.stringify(failed)).not.toContain('melted')
  expect(wb.loggedProblems[0]!.facts).toMatchObject({ documentId, error: { message: 'the disk melted' } })
})
