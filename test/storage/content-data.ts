import { fullVisibility } from '../../src/access/row-access.ts'
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

/** Visibility of a caller with one of these principals, in place of the access check. */
export function only(...principals: string[]): Visibility {
  const parts = ['*', ...principals].map(id => ({ kind: 'all', key: 'visible_to', values: [id] }) as const)
  return { filter: { kind: 'or', parts } } as unknown as Visibility
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

/** A record that can be found by its words. */
export function recordWithText(id: string, text: string, fields: Partial<ContentRecord> = {}): ContentRecord {
  return record(id, { text, ...fields })
}

export function createCollection(
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

export function upsert(...records: ContentRecord[]): ContentWrite {
  return { op: 'upsert', ...key, generation: 0, records }
}

/** Returns the IDs of a ranking, best first. */
export async function idsOf(content: ContentStore, ranked: readonly { record: number }[]): Promise<string[]> {
  const views = await content.read(
    key,
    ranked.map(({ record: number }) => number),
    { vectors: false, visibility: all },
  )
  if (views.length !== ranked.length) throw new Error('a ranking names records that are gone')
  return views.map(({ id }) => id)
}

/** Similarity as in searches, in double precision. */
export function similarity(metric: Metric, a: Float32Array, b: Float32Array): number {
  const pairs = Array.from(a, (x, at) => [x, b[at]!] as const)
  const sum = (of: (x: number, y: number) => number) => pairs.reduce((total, [x, y]) => total + of(x, y), 0)
  const dot = sum((x, y) => x * y)
  if (metric === 'dot') return dot
  if (metric === 'euclidean') return 1 / (1 + Math.sqrt(sum((x, y) => (x - y) ** 2)))
  const norms = Math.sqrt(sum(x => x * x) * sum((_, y) => y * y))
  return norms === 0 ? 0 : dot / norms
}
