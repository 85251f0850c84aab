import { readEntries } from '../test/harness/beir.ts'
import type { Server } from './server.ts'

/** Chunk size that no document exceeds. */
const wholeChars = 100_000

/**
 * Ingests the documents of a collection in BEIR format.
 *
 * @returns IDs of the collection by document ID
 */
export async function ingestCorpus(
  server: Server,
  base: string,
  folder: string,
  options: { readonly isWhole?: boolean } = {},
): Promise<Map<string, string>> {
  const sourceIds = new Map<string, string>()
  const chunker = options.isWhole ? { maxChars: wholeChars } : undefined
  const body = readEntries(folder, 'corpus.jsonl')
    .filter(entry => entry.text)
    .map(entry =>
      JSON.stringify({ text: entry.text, sourceDocId: entry._id, metadata: { title: entry.title }, chunker }),
    )
    .join('\n')
  const response = await fetch(`${server.url}${base}/ingest/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body,
  })
  for (const line of (await response.text()).split('\n')) {
    if (!line) continue
    const { document } = JSON.parse(line) as { document?: { documentId: string; sourceDocId: string } }
    if (document) sourceIds.set(document.documentId, document.sourceDocId)
  }
  return sourceIds
}
