import { approximateTokenCount } from '../../base/approximate-token-count.ts'
import { sha256 } from '../../base/id.ts'
import { type Client, collect } from '../../client/client.ts'
import { documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import {
  type ChunkingService,
  chunkingServices,
  type EmbeddingService,
  embeddingServices,
} from '../../contract/services.ts'
import { type LocalFileReader, type LocalText, openChunker, openFileReader } from '../local.ts'
import { formatCount, type Output } from '../terminal/output.ts'
import type { IngestItem, IngestSource } from './ingest-item.ts'
import { skippedAs } from './summary.ts'
import { Tally } from './tally.ts'

/** Providers whose models run in the runtime. Nothing is sent to them. */
const localProviders: ReadonlySet<string> = new Set(['workbase', 'onnx', 'mock'])

export interface IngestPlanOptions {
  readonly client: Client
  readonly signal: AbortSignal
  readonly workspaceId: string
  /** Undefined if the knowledge base does not exist yet. */
  readonly base: KnowledgeBase | undefined
  /** Price of a million tokens; undefined if it is not known. */
  readonly pricePerMillionTokens: number | undefined
}

/** The number and size of texts that an ingest would send to the embedding model. */
export interface IngestPlan {
  readonly chunking: ChunkingService
  readonly embedding: EmbeddingService
  /** New and changed files. */
  readonly files: number
  /** Files whose text the knowledge base already contains. */
  readonly unchanged: number
  readonly chunks: number
  /** Estimated number of tokens. */
  readonly tokens: number
  /** Undefined if the price is not known. */
  readonly cost: number | undefined
  /** Failed and skipped files. */
  readonly tally: Tally
}

/** Reads and chunks files as an ingest would, without sending their text. */
export async function planIngest(
  options: IngestPlanOptions,
  items: AsyncIterable<IngestItem>,
): Promise<IngestPlan> {
  const files = await openFileReader()
  try {
    return await countTexts(options, items, files)
  } finally {
    await files.close()
  }
}

async function countTexts(
  options: IngestPlanOptions,
  items: AsyncIterable<IngestItem>,
  files: LocalFileReader,
): Promise<IngestPlan> {
  const { signal, pricePerMillionTokens } = options
  const { chunking, embedding } = await servicesOf(options)
  const chunk = await openChunker(chunking)
  const knownHashes = await contentHashes(options)
  const tally = new Tally()
  const counts = { files: 0, unchanged: 0, chunks: 0, tokens: 0 }
  for await (const item of items) {
    signal.throwIfAborted()
    if (item.kind === 'failed') tally.countFailure(item.problem)
    else if (item.kind === 'skipped') tally.countSkipped(item)
    else {
      const { source } = item
      const hash = source.hash ?? ('body' in source ? sha256(source.body.text) : '')
      if (knownHashes.has(hash)) {
        counts.unchanged++
        continue
      }
      knownHashes.add(hash)
      const document = await readSource(source, files, signal).catch((error: unknown) => {
        if (!(error instanceof WbError)) throw error
        tally.countFailure({ path: source.path, code: error.code, message: error.message })
      })
      if (!document) continue
      counts.files++
      const texts = chunk(document)
      counts.chunks += texts.length
      // A text that occurs several times in a document is sent once.
      for (const text of new Set(texts)) counts.tokens += approximateTokenCount(text)
    }
  }
  const millions = counts.tokens / 1_000_000
  const cost = pricePerMillionTokens === undefined ? undefined : millions * pricePerMillionTokens
  return { ...counts, chunking, embedding, cost, tally }
}

/** @throws unsupported_file_type, extraction_failed */
async function readSource(
  source: IngestSource,
  files: LocalFileReader,
  signal: AbortSignal,
): Promise<LocalText> {
  if ('file' in source) return files.read(source.file.content, source.file.name, signal)
  const { text, metadata, sourceFilename, fileType = null } = source.body
  return {
    text,
    sourceFilename,
    fileType,
    title: typeof metadata?.title === 'string' ? metadata.title : null,
  }
}

/** Returns the services of the knowledge base, or those that a new one would get: the oldest ones of the workspace. */
async function servicesOf({ client, workspaceId, base, signal }: IngestPlanOptions) {
  const request = { params: { workspaceId } }
  const [chunkers, embedders] = await Promise.all([
    collect(client.items(chunkingServices.list, request, { signal })),
    collect(client.items(embeddingServices.list, request, { signal })),
  ])
  const chunking = base
    ? chunkers.find(({ chunkingServiceId }) => chunkingServiceId === base.chunkingServiceId)
    : chunkers[0]
  const embedding = base
    ? embedders.find(({ embeddingServiceId }) => embeddingServiceId === base.embeddingServiceId)
    : embedders[0]
  return { chunking: chunking!, embedding: embedding! }
}

/** Returns the hashes of the texts and files of a knowledge base, except those that failed. */
async function contentHashes({ client, base, signal }: IngestPlanOptions): Promise<Set<string>> {
  const hashes = new Set<string>()
  if (!base) return hashes
  const { workspaceId, knowledgeBaseId } = base
  const request = { params: { workspaceId, knowledgeBaseId } }
  for await (const { contentHash, status, metadata } of client.items(documents.list, request, { signal })) {
    if (status === 'failed') continue
    if (contentHash !== null) hashes.add(contentHash)
    if (typeof metadata.fileHash === 'string') hashes.add(metadata.fileHash)
  }
  return hashes
}

/** Prints a plan; with `--json`, as an object. */
export function printIngestPlan(output: Output, plan: IngestPlan, pricePerMillionTokens?: number): void {
  const { chunking, embedding, tally, files, unchanged, chunks, tokens, cost } = plan
  const { provider, modelName } = embedding
  const isLocal = localProviders.has(provider)
  const value = {
    dryRun: true,
    files,
    unchanged,
    skipped: tally.skipped,
    failed: tally.failures,
    skippedAs: skippedAs(tally),
    chunks,
    estimatedTokens: tokens,
    estimatedCost: cost ?? null,
    pricePerMillionTokens: pricePerMillionTokens ?? null,
    chunkingService: chunking.name,
    provider,
    modelName,
  }
  output.fields(value, {
    files,
    unchanged,
    skipped: tally.skipped || undefined,
    failed: tally.failed || undefined,
    chunks: `${chunks} (${chunking.name})`,
    model: `${provider} ${modelName}`,
    tokens: isLocal ? 'none are sent: the model runs in the runtime' : `about ${formatCount(tokens)}`,
    cost:
      cost === undefined
        ? undefined
        : `about ${formatCost(cost)} (${pricePerMillionTokens} per million tokens)`,
  })
  if (!output.json && cost === undefined && !isLocal)
    output.note('  To estimate the cost, add the price per million tokens: --price NUMBER')
}

/** Formats a cost with at least two digits that are not zero. */
function formatCost(cost: number): string {
  return cost >= 1 || cost === 0 ? cost.toFixed(2) : String(Number(cost.toPrecision(2)))
}
