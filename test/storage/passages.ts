import { fullVisibility } from '../../src/access/full-visibility.ts'
import type {
  CollectionKey,
  ContentRecord,
  ContentStore,
  ContentWrite,
  Metric,
} from '../../src/storage/content.ts'
import type { Visibility } from '../../src/storage/visibility.ts'

export const all = fullVisibility()
export const key: CollectionKey = { workspaceId: 'w', name: 'c' }

/** Visibility of a caller who is one of these; tests stand in for the access room here. */
export function only(...principals: string[]): Visibility {
  return { principals } as unknown as Visibility
}

export function record(id: string, fields: Partial<ContentRecord> = {}): ContentRecord {
  return {
    id,
    documentId: null,
    chunkIndex: null,
    title: null,
    text: null,
    payload: {},
    vector: Float32Array.of(1, 0),
    ...fields,
  }
}

/** A record that is found by its words. */
export function worded(id: string, text: string, fields: Partial<ContentRecord> = {}): ContentRecord {
  return record(id, { text, ...fields })
}

export function created(
  fields: {
    dimension?: number
    metric?: Metric
    lexical?: boolean
    language?: string | null
    fitted?: boolean
  } = {},
): ContentWrite {
  return {
    op: 'createCollection',
    ...key,
    dimension: 2,
    metric: 'cosine',
    lexical: true,
    language: null,
    fitted: true,
    ...fields,
  }
}

export function upserted(...records: ContentRecord[]): ContentWrite {
  return { op: 'upsert', ...key, generation: 0, records }
}

/** Ids of a ranking, best first. */
export async function idsOf(content: ContentStore, ranked: readonly { record: number }[]): Promise<string[]> {
  const views = await content.read(
    key,
    ranked.map(({ record: number }) => number),
    { vectors: false, visibility: all },
  )
  if (views.length !== ranked.length) throw new Error('a ranking names records that are gone')
  return views.map(({ id }) => id)
}

/** Similarity as searches score it, in double precision. */
export function similarity(metric: Metric, a: Float32Array, b: Float32Array): number {
  const pairs = Array.from(a, (x, at) => [x, b[at]!] as const)
  const sum = (of: (x: number, y: number) => number) => pairs.reduce((total, [x, y]) => total + of(x, y), 0)
  const dot = sum((x, y) => x * y)
  if (metric === 'dot') return dot
  if (metric === 'euclidean') return 1 / (1 + Math.sqrt(sum((x, y) => (x - y) ** 2)))
  const norms = Math.sqrt(sum(x => x * x) * sum((_, y) => y * y))
  return norms === 0 ? 0 : dot / norms
}
