import { pause } from '../../base/pause.ts'
import type { CollectionCompaction, CollectionKey, ContentStore } from '../content.ts'
import type { StoreHosts } from './operations.ts'
import type { CompactionRange } from './postings/merge-plan.ts'

/** Pause in milliseconds while another process merges the same index. */
const WAIT_MS = 200

type CompactionOptions = Parameters<NonNullable<ContentStore['compact']>>[1]

/**
 * Merges the posting segments of a collection, then gives all free space of the file back. Each step is a short
 * transaction, so that other writes can run between them.
 *
 * @throws collection_unavailable  there is no such collection
 * @throws the reason of the signal
 */
export async function compactCollection(
  hosts: StoreHosts,
  key: CollectionKey,
  options: CompactionOptions,
): Promise<CollectionCompaction> {
  const before = await hosts.reads.run('compactedSize', { key })
  await compactIndex(hosts, key, before.index?.bytes ?? 0, options)
  if (before.file?.canShrink) await shrinkFile(hosts, key, options)
  return { before, after: await hosts.reads.run('compactedSize', { key }) }
}

async function compactIndex(
  { writes }: StoreHosts,
  key: CollectionKey,
  total: number,
  { signal, onProgress }: CompactionOptions,
): Promise<void> {
  let range: CompactionRange | undefined
  for (let done = 0; ; ) {
    signal.throwIfAborted()
    const { outcome, writtenBytes, ...left } = await writes.run('compact', { key, range })
    if (outcome === 'done') return
    if (outcome === 'waiting') await pause(WAIT_MS, signal)
    range = left
    done = Math.min(done + writtenBytes, total)
    onProgress({ part: 'index', done, total })
  }
}

async function shrinkFile(
  { reads, writes }: StoreHosts,
  key: CollectionKey,
  { signal, onProgress }: CompactionOptions,
): Promise<void> {
  const { file } = await reads.run('compactedSize', { key })
  const total = file?.freeBytes ?? 0
  for (let freeBytes = total; freeBytes > 0; ) {
    signal.throwIfAborted()
    freeBytes = (await writes.run('shrink', {})).freeBytes
    onProgress({ part: 'file', done: Math.max(0, total - freeBytes), total })
  }
  await writes.run('truncateLog', {})
}
