import type { KnowledgeBaseStats } from '../../contract/knowledge.ts'
import { formatByteSize } from '../terminal/byte-size.ts'
import { formatCount, formatCounted, type Output } from '../terminal/output.ts'
import type { Fields } from './resources.ts'

type IndexStats = NonNullable<KnowledgeBaseStats['index']>
type SearchTime = KnowledgeBaseStats['searches'][number]

/** Width of the bar of the total, in cells. */
const BAR_WIDTH = 16

/** Returns the counts of a knowledge base, the state of its index, and the times of recent searches to show. */
export function statsFields(name: string, stats: KnowledgeBaseStats): Fields {
  const { documents, chunks, vectors, index, lastWriteAt, searches } = stats
  return {
    name,
    documents: formatCount(documents),
    chunks: formatCount(chunks),
    vectors:
      vectors.count > 0 ? `${formatCount(vectors.count)} × ${vectors.dimension}, ${vectors.metric}` : '0',
    'in memory': vectors.memoryBytes > 0 ? `${formatByteSize(vectors.memoryBytes)} of vectors` : undefined,
    'last write': lastWriteAt === null ? undefined : { time: lastWriteAt },
    'lexical index': index ? indexState(index) : 'no index',
    ...(index && indexFields(index)),
    ...Object.fromEntries(searches.map(each => [`${each.mode} search`, searchTime(each)])),
  }
}

function indexState({ state, language, building }: IndexStats): string {
  if (state === 'ready' || !building) return `ready, language ${language}`
  const { chunks, chunksTotal } = building
  const percent = chunksTotal === 0 ? 0 : Math.floor((100 * chunks) / chunksTotal)
  return `building, ${formatCount(chunks)} of ${formatCounted(chunksTotal, 'chunk')} (${percent}%)`
}

function indexFields({ segments, terms, deletedShare, mergePending, failure }: IndexStats): Fields {
  return {
    terms: typeof terms === 'number' ? `about ${formatCount(terms)}` : undefined,
    segments: `${formatCount(segments)}${mergePending ? ', being merged' : ''}`,
    deleted: `${(100 * deletedShare).toFixed(1)}% of the index`,
    failure: failure?.message,
    failed: failure ? { time: failure.at } : undefined,
  }
}

function searchTime({ count, p50Ms, p95Ms }: SearchTime): string {
  return `p50 ${formatMs(p50Ms)}  p95 ${formatMs(p95Ms)}  of the last ${formatCount(count)}`
}

function formatMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

/** Prints the stored bytes by part: a table with shares in a terminal, tab-separated numbers in a pipe. */
export function printByteSizes(output: Output, { bytes }: KnowledgeBaseStats): void {
  const rows = Object.entries(bytes)
    .map(([part, size]) => ({ part, size, share: bytes.total === 0 ? 0 : size / bytes.total }))
    .sort((a, b) => Number(a.part === 'total') - Number(b.part === 'total'))
  if (!output.interactive) {
    for (const { part, size } of rows) output.result(`${part}\t${size}`)
    return
  }
  output.result('')
  output.list(rows, {
    columns: {
      part: { value: row => row.part },
      size: { value: row => formatByteSize(row.size), format: 'count' },
      share: { value: row => `${Math.round(100 * row.share)}%`, format: 'count' },
      '': { value: row => '▮'.repeat(Math.round(BAR_WIDTH * row.share)) || ' ' },
    },
    empty: [],
  })
}
