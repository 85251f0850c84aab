import { onTestFinished } from 'vitest'
import { type ErrorCode, WbError } from '../../../src/contract/errors.ts'
import type { ContentStore } from '../../../src/storage/content.ts'
import { startEmbeddingServer } from '../../fakes/embedding-server.ts'
import { withoutOptionalFeatures } from '../../fakes/without-optional-features.ts'
import { RawBody, serveOverHttp } from '../../harness/http-runtime.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../../harness/resources.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from '../../harness/runtime.ts'
import type { Provocation, Provocations } from './provocation.ts'

type Place = { wb: TestRuntime; base: Base }

/** A knowledge base with vectors of the offline provider, in a runtime over HTTP. */
async function furnished(options?: TestRuntimeOptions): Promise<Place> {
  const wb = await serveOverHttp(await open(options))
  const { workspaceId } = await makeWorkspace(wb)
  const { embeddingServiceId } = await makeMockService(wb, workspaceId)
  return { wb, base: await makeBase(wb, { workspaceId, embeddingServiceId }) }
}

function asked(act: (place: Place) => ReturnType<Provocation>, options?: TestRuntimeOptions): Provocation {
  return async () => act(await furnished(options))
}

/** A search that fails with a code of the driver. */
function failing(code: ErrorCode): Provocation {
  const content = (store: ContentStore): ContentStore => ({
    ...store,
    nearest: () => Promise.reject(new WbError(code, 'the driver says so')),
  })
  return asked(({ wb, base }) => wb.send(`POST ${base.path}/search`, { text: 'wing', hybrid: false }), {
    content,
  })
}

const powerless: TestRuntimeOptions = { content: withoutOptionalFeatures }

/** A file ingest; a part with `name` is a file. */
function upload(
  ...parts: { field: string; name?: string; type?: string; value: string | Buffer }[]
): RawBody {
  const boundary = 'boundary-of-a-test'
  const lines = parts.flatMap(({ field, name, type = 'text/plain', value }) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${field}"`),
    Buffer.from(name === undefined ? '\r\n\r\n' : `; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n`),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ])
  return new RawBody(
    Buffer.concat([...lines, Buffer.from(`--${boundary}--\r\n`)]),
    `multipart/form-data; boundary=${boundary}`,
  )
}

const note = { field: 'file', name: 'a.txt', value: 'The wing flutters.' }

function uploaded(...parts: Parameters<typeof upload>): Provocation {
  return asked(({ wb, base }) => wb.send(`POST ${base.path}/ingest/file`, upload(...parts)))
}

/** A text for an embedding provider on loopback, which can fail. */
function embedded(dimension: number, status: number): Provocation {
  return async () => {
    const provider = await startEmbeddingServer(dimension)
    onTestFinished(() => provider.close())
    provider.script(...Array.from({ length: 3 }, () => ({ status })))
    const wb = await serveOverHttp(await open())
    const { workspaceId } = await makeWorkspace(wb)
    const { embeddingServiceId } = await makeMockService(wb, workspaceId, {
      provider: 'ollama',
      endpointBaseUrl: provider.url,
    })
    const base = await makeBase(wb, { workspaceId, embeddingServiceId })
    return wb.send(`POST ${base.path}/ingest`, { text: 'The wing flutters.' })
  }
}

export const content = {
  dimension_mismatch: asked(({ wb, base }) => wb.send(`POST ${base.path}/search`, { vector: [1] })),
  embedding_unavailable: embedded(3, 400),
  embedding_dimension_mismatch: embedded(4, 200),
  hybrid_not_supported: asked(
    ({ wb, base }) => wb.send(`POST ${base.path}/search`, { text: 'wing', hybrid: true }),
    powerless,
  ),
  rerank_not_supported: asked(
    ({ wb, base }) => wb.send(`POST ${base.path}/search`, { text: 'wing', hybrid: false, rerank: true }),
    powerless,
  ),
  list_records_not_supported: asked(async ({ wb, base }) => {
    const { document } = await base.ingest('The wing flutters.')
    return wb.send(`GET ${base.path}/documents/${document.documentId}/chunks`)
  }, powerless),
  collection_unavailable: failing('collection_unavailable'),
  data_api_error: failing('data_api_error'),
  data_api_unavailable: failing('data_api_unavailable'),
  invalid_cursor: asked(({ wb, base }) => wb.send(`GET ${base.path}/documents?cursor=x`)),
  invalid_metadata: asked(({ wb, base }) =>
    wb.send(`POST ${base.path}/ingest`, { text: 'a', metadata: { a: [] } }),
  ),
  invalid_visible_to: asked(({ wb, base }) =>
    wb.send(`POST ${base.path}/ingest`, { text: 'a', visibleTo: [] }),
  ),
  invalid_chunker: asked(({ wb, base }) =>
    wb.send(`POST ${base.path}/ingest`, { text: 'a', chunker: { maxChars: 10, minChars: 20 } }),
  ),
  invalid_multipart: asked(({ wb, base }) =>
    wb.send(`POST ${base.path}/ingest/file`, new RawBody('--b\r\nbroken', 'multipart/form-data; boundary=b')),
  ),
  missing_file: uploaded({ field: 'metadata', value: '{}' }),
  empty_file: uploaded({ ...note, value: '' }),
  invalid_parser: uploaded(note, { field: 'parser', value: 'magic' }),
  unsupported_file_type: uploaded({ ...note, name: 'a.bin', type: 'application/octet-stream' }),
  extraction_failed: uploaded({ ...note, value: Buffer.from([0xff, 0xfe, 0xfa]) }),
  empty_document: uploaded({ ...note, value: ' \n' }),
  docling_unavailable: uploaded(note, { field: 'parser', value: 'docling' }),
} satisfies Provocations
