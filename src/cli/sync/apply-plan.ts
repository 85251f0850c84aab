import type { Client } from '../../client/client.ts'
import { type Document, documents, fileHashKey, folderKey } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { deleteDocuments } from '../documents/delete-documents.ts'
import { ingestAll } from '../ingest/ingest-all.ts'
import type { IngestItem, IngestSource } from '../ingest/ingest-item.ts'
import { readDocument } from '../ingest/sources.ts'
import { Tally } from '../ingest/tally.ts'
import { isMarkdown } from '../ingest/text-types.ts'
import type { FolderFile } from './folder-files.ts'
import type { SyncPlan } from './sync-plan.ts'

export interface SyncTarget {
  readonly client: Client
  readonly base: Pick<KnowledgeBase, 'workspaceId' | 'knowledgeBaseId'>
  readonly signal: AbortSignal
  readonly folderId: string
}

/** Result of a synchronization. */
export interface SyncOutcome {
  /** Results of the files that were ingested, and all failures. */
  readonly tally: Tally
  renamed: number
  deleted: number
}

/**
 * Applies a plan: first the renames, then the deletions, then the new texts. In this order, each step leaves a state from which
 * a new plan continues, and no text is rejected because a document that is to be deleted has it.
 *
 * @param onStep  called after each change
 */
export async function applyPlan(
  target: SyncTarget,
  { added, changed, renamed, retired, deleted }: SyncPlan,
  outcome: SyncOutcome,
  onStep: () => void,
): Promise<void> {
  const { client, base, signal } = target
  const { tally } = outcome
  for (const { file, document } of renamed) {
    signal.throwIfAborted()
    await renameDocument(target, document, file)
      .then(() => outcome.renamed++)
      .catch(countRefusal(tally, file.path))
    onStep()
  }
  await deleteAll(target, retired, newOutcome(tally))
  await deleteAll(target, deleted, outcome)
  onStep()
  const changes = new Map(changed.map(change => [change.file.path, change]))
  const files = [...changed.map(({ file }) => file), ...added]
  const sources = readSources(files, path => changes.get(path)?.predecessor, target.folderId)
  await ingestAll({ client, base, signal, usesJobs: false }, sources, tally, onStep)
  // The new text of such a file is stored under another name, so the old document no longer belongs to a file.
  const isRetired = new Set(retired)
  const outdated = tally.sameText
    .flatMap(({ path }) => changes.get(path)?.documents ?? [])
    .filter(document => !isRetired.has(document))
  await deleteAll(target, outdated, outcome)
}

/** Yields the files with their metadata. A predecessor passes on its visibility, its owner and its other metadata. */
async function* readSources(
  files: readonly FolderFile[],
  predecessorOf: (path: string) => Document | undefined,
  folderId: string,
): AsyncGenerator<IngestItem> {
  for (const file of files) {
    const item = await readDocument(file)
    if (item.kind !== 'source') {
      yield item
      continue
    }
    const marks = { [folderKey]: folderId, [fileHashKey]: file.hash }
    const inherited = inheritedFields(predecessorOf(file.path), item.source)
    yield { kind: 'source', source: withFields(item.source, inherited, marks) }
  }
}

type InheritedFields = Partial<Pick<Document, 'visibleTo' | 'ownerPrincipalId' | 'metadata'>>

/** Returns the fields that a document passes on. The title is read again, if the format has titles. */
function inheritedFields(document: Document | undefined, source: IngestSource): InheritedFields {
  if (!document) return {}
  const { visibleTo, ownerPrincipalId, metadata } = document
  const { title: _, ...withoutTitle } = metadata
  const hasTitle = 'file' in source || isMarkdown(source.body.sourceFilename)
  return { visibleTo, ownerPrincipalId, metadata: hasTitle ? withoutTitle : metadata }
}

/** Adds fields to a source. It gets no hash, so that it is sent even if a document has its content. */
function withFields(
  source: IngestSource,
  inherited: InheritedFields,
  marks: Document['metadata'],
): IngestSource {
  const { path } = source
  if ('file' in source) {
    const fields = { ...inherited, metadata: { ...inherited.metadata, ...marks } }
    return { path, file: { ...source.file, fields } }
  }
  const { body } = source
  return {
    path,
    body: { ...body, ...inherited, metadata: { ...inherited.metadata, ...body.metadata, ...marks } },
  }
}

async function renameDocument(
  { client, base, signal }: SyncTarget,
  { documentId }: Document,
  { name }: FolderFile,
): Promise<void> {
  const { workspaceId, knowledgeBaseId } = base
  const params = { workspaceId, knowledgeBaseId, documentId }
  await client.call(documents.update, { params, body: { sourceFilename: name } }, { signal })
}

async function deleteAll(
  { client }: SyncTarget,
  all: readonly Document[],
  outcome: SyncOutcome,
): Promise<void> {
  const { deleted, failed } = await deleteDocuments(client, all)
  outcome.deleted += deleted.length
  const nameOf = new Map(all.map(({ documentId, sourceFilename }) => [documentId, sourceFilename]))
  // Another command has deleted it in the meantime.
  for (const { documentId, code, message } of failed)
    if (code !== 'not_found')
      outcome.tally.countFailure({ path: nameOf.get(documentId) ?? documentId, code, message })
}

/** Returns a function that counts the refusal of one change, and throws other errors again. */
function countRefusal(tally: Tally, path: string): (error: unknown) => void {
  return error => {
    if (!(error instanceof WbError) || error.status >= 500 || error.status === 401) throw error
    tally.countFailure({ path, code: error.code, message: error.message })
  }
}

export function newOutcome(tally = new Tally()): SyncOutcome {
  return { tally, renamed: 0, deleted: 0 }
}
