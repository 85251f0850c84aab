import type { ContentWrite, Metric } from '../../src/storage/content.ts'
import { CommitQueue } from '../../src/storage/sqlite/commit-queue.ts'
import { openConnection } from '../../src/storage/sqlite/open.ts'
import { createWriter } from '../../src/storage/sqlite/operations.ts'
import { VectorQuantization } from '../../src/storage/sqlite/vector-quantization.ts'
import { createCollection, key, record, upsert } from './content-data.ts'

export const dimension = 5

/** A deterministic vector, with components from -1 to 1. */
export function vectorOf(seed: number): Float32Array {
  return Float32Array.from({ length: dimension }, (_, at) => Math.sin(seed * 12.9898 + at * 78.233))
}

export function createVectors(metric: Metric = 'cosine'): ContentWrite {
  return createCollection({ dimension, metric, lexical: false })
}

/** Returns changes of the `n`th write: 600 new records, updates of 40 earlier ones, and deletions of 20. */
export function vectorChanges(n: number): ContentWrite[] {
  const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)
  const earlier = (at: number) => `r${n - 1}-${(at * 29) % 600}`
  return [
    upsert(...numbers(600).map(at => record(`r${n}-${at}`, { vector: vectorOf(n * 1_000 + at) }))),
    upsert(...numbers(40).map(at => record(earlier(at), { vector: vectorOf(-n * 1_000 - at) }))),
    ...numbers(20).map(at => ({ op: 'deleteRecord' as const, ...key, id: `r${n}-${at}` })),
  ]
}

/** Opens a store without background work. `step` writes the next block of quantized vectors. */
export async function openVectorStore(path: string) {
  const connection = await openConnection(path)
  const { operations } = createWriter(connection)
  const quantization = new VectorQuantization(connection, new CommitQueue(connection))
  return {
    path,
    connection,
    operations,
    write: (changes: readonly ContentWrite[]) => operations.write({ changes, rows: [] }),
    step: () => quantization.step(),
    async quantize() {
      while (await quantization.step());
    },
  }
}
