import type { Document } from '../../contract/documents.ts'
import type { KnowledgeFilter } from '../../contract/filters.ts'
import type { EmbedderState, KnowledgeBase, SentenceState } from '../../contract/knowledge.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { type Field, formatCount, formatCounted } from '../terminal/output.ts'

/** Fields of a resource to show, by label. */
export type Fields = Record<string, Field>

/** Returns the fields of a workspace to show. */
export function workspaceFields(workspace: Workspace): Fields {
  return {
    id: workspace.workspaceId,
    name: workspace.name,
    kind: workspace.kind,
    url: workspace.url,
    keyspace: workspace.keyspace,
    credentials: Object.entries(workspace.credentials)
      .map(pair => pair.join('='))
      .join(', '),
    'row-level access': workspace.rlacEnabled ? 'on' : 'off',
    created: { time: workspace.createdAt },
    updated: { time: workspace.updatedAt },
  }
}

/** Returns the fields of a knowledge base to show. */
export function knowledgeBaseFields(
  base: KnowledgeBase & { embedder?: EmbedderState; sentences?: SentenceState },
): Fields {
  return {
    id: base.knowledgeBaseId,
    name: base.name,
    description: base.description,
    status: base.importing ? 'import incomplete' : base.status,
    language: base.language,
    'lexical search': base.lexical.enabled ? 'on' : 'off',
    'search by meaning': base.semantic === false ? 'off' : base.sentences && sentenceState(base.sentences),
    embedder: base.embedder && embedderState(base.embedder),
    'query log': base.queryLog ? 'on' : 'off',
    collection: base.vectorCollection,
    created: { time: base.createdAt },
    updated: { time: base.updatedAt },
  }
}

function embedderState({ state, chunks, fittedChunks }: EmbedderState): string {
  if (state === 'ready')
    return `ready, fitted on ${formatCount(fittedChunks)} of ${formatCounted(chunks, 'chunk')}`
  return `${state === 'fitting' ? 'being fitted' : 'not fitted yet'}, ${formatCounted(chunks, 'chunk')}`
}

function sentenceState({ state, chunks, embeddedChunks }: SentenceState): string {
  if (state === 'ready') return 'ready'
  return `${formatCount(embeddedChunks)} of ${formatCounted(chunks, 'chunk')}`
}

/** Returns a line for each knowledge base whose sentence vectors are being computed. */
export function sentenceProgressLines(
  bases: readonly { name: string; sentences?: SentenceState | undefined }[],
): string[] {
  return bases.flatMap(({ name, sentences }) =>
    sentences?.state === 'embedding' ? `  search by meaning in ${name}: ${sentenceState(sentences)}` : [],
  )
}

/** Returns the fields of a saved filter to show. */
export function filterFields(savedFilter: KnowledgeFilter): Fields {
  return {
    id: savedFilter.knowledgeFilterId,
    name: savedFilter.name,
    description: savedFilter.description,
    filter: JSON.stringify(savedFilter.filter),
    created: { time: savedFilter.createdAt },
    updated: { time: savedFilter.updatedAt },
  }
}

/** Returns the title of a document, else its file name, source ID or ID. */
export function documentName(document: Document): string {
  return documentTitle(document) || document.sourceFilename || document.sourceDocId || document.documentId
}

/** Returns the title of a document; undefined if it has none. */
export function documentTitle({ metadata }: Document): string | undefined {
  return (typeof metadata.title === 'string' && metadata.title.trim()) || undefined
}

/** Returns the fields of a document to show. */
export function documentFields(document: Document): Fields {
  const { title, ...rest } = document.metadata
  return {
    id: document.documentId,
    title: title === undefined ? undefined : String(title),
    file: document.sourceFilename,
    source: document.sourceDocId,
    type: document.fileType,
    status: document.status,
    error: document.errorMessage,
    chunks: document.chunkTotal,
    bytes: document.fileSize,
    hash: document.contentHash,
    'visible to': document.visibleTo?.join(', '),
    metadata: Object.entries(rest)
      .map(pair => pair.join('='))
      .join(', '),
    ingested: { time: document.ingestedAt },
    updated: { time: document.updatedAt },
  }
}
