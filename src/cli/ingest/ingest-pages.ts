import { sha256 } from '../../base/id.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { type CrawlContext, type CrawledPage, type CrawlSelection, crawl } from '../web-sources/crawl.ts'
import { type PageVersion, toPageVersion } from '../web-sources/fetch-page.ts'
import { type IngestTarget, sendFile } from './ingest-batch.ts'
import type { FileSource } from './ingest-item.ts'
import type { Tally } from './tally.ts'

/** Codes of the runtime for files without text. Links can lead to such files. */
const codesWithoutText = new Set(['unsupported_file_type', 'empty_document', 'empty_file'])

/**
 * Reads pages and ingests them, and counts the results in `tally`. A page that the server reports as unchanged is not
 * sent to the runtime.
 *
 * @param onStep  called after each page
 */
export async function ingestPages(
  target: IngestTarget,
  context: Omit<CrawlContext, 'storedVersion'>,
  selection: CrawlSelection,
  tally: Tally,
  onStep: () => void,
): Promise<void> {
  const versions = await storedVersions(target)
  const storedVersion = (url: URL) => versions.get(url.href)
  for await (const item of crawl({ ...context, storedVersion }, selection)) {
    if (item.kind === 'page') await ingestPage(target, item, tally)
    else if (item.kind === 'unchanged') tally.count(item.url, { result: 'unchanged' })
    else if (item.kind === 'skipped') tally.countSkipped({ ...item, path: item.url })
    else tally.countFailure({ path: item.url, code: item.code, message: item.message })
    onStep()
  }
}

/** Returns the versions of the caller's pages in a knowledge base, by URL. Documents of others must not decide about a page. */
async function storedVersions({ client, base, signal }: IngestTarget): Promise<Map<string, PageVersion>> {
  const { workspaceId, knowledgeBaseId } = base
  const versions = new Map<string, PageVersion>()
  for await (const { metadata, sourceFilename, status } of client.items(
    documents.list,
    { params: { workspaceId, knowledgeBaseId }, query: { own: 'true' } },
    { signal },
  )) {
    const { url, etag, lastModified } = metadata
    if (typeof url !== 'string' || url !== sourceFilename || status !== 'ready') continue
    const version = toPageVersion(etag, lastModified)
    if (version.etag !== null || version.lastModified !== null) versions.set(url, version)
  }
  return versions
}

async function ingestPage(target: IngestTarget, page: CrawledPage, tally: Tally): Promise<void> {
  const { url } = page
  const source = toSource(page)
  let response = await sendFile(target, source, false)
  const isConflict = 'outcome' in response && response.outcome === 'name_conflict'
  if (isConflict) response = await sendFile(target, source, true)
  const result = isConflict ? 'replaced' : 'added'
  if ('error' in response) {
    const { code, message } = response.error
    if (page.isLinked && codesWithoutText.has(code))
      tally.countSkipped({ path: url, category: 'linked files', reason: 'no text that can be read' })
    else tally.countFailure({ path: url, code, message })
  } else if (response.job) tally.count(url, { result: 'queued', resultOnSuccess: result, job: response.job })
  else if (response.outcome === undefined) tally.count(url, { result })
  else if (response.document.sourceFilename === url)
    tally.count(url, { result: await updatePage(target, response.document, page) })
  else
    tally.count(url, {
      result: 'duplicate',
      sameAs: response.document.sourceFilename ?? response.document.documentId,
    })
}

function toSource(page: CrawledPage): FileSource {
  const content = new Uint8Array(page.bytes)
  return {
    path: page.url,
    file: {
      content,
      name: page.url,
      type: page.mediaType,
      sizeBytes: content.length,
      fields: { metadata: metadataOf(page) },
    },
    hash: sha256(content),
  }
}

function metadataOf({ url, title, version: { etag, lastModified } }: CrawledPage): Record<string, string> {
  return {
    url,
    ...(title !== null && { title }),
    ...(etag !== null && { etag }),
    ...(lastModified !== null && { lastModified }),
  }
}

/** Updates the metadata of a page whose text is already stored. The version alone is not a change for the user. */
async function updatePage(
  { client, base: { workspaceId, knowledgeBaseId }, signal }: IngestTarget,
  { documentId, metadata }: Document,
  page: CrawledPage,
): Promise<'replaced' | 'unchanged'> {
  const { etag: _etag, lastModified: _lastModified, ...earlier } = metadata
  const next = { ...earlier, ...metadataOf(page) }
  const isChanged = (key: string) => next[key] !== metadata[key]
  if ([...Object.keys(next), ...Object.keys(metadata)].some(isChanged))
    await client.call(
      documents.update,
      { params: { workspaceId, knowledgeBaseId, documentId }, body: { metadata: next } },
      { signal },
    )
  return isChanged('title') || isChanged('url') ? 'replaced' : 'unchanged'
}
