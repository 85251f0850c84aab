import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../base/shell-word.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { UsageError } from '../errors.ts'
import { documentName } from '../fields/resources.ts'
import { isId } from '../id.ts'
import { listKnowledgeBases, type ResolveContext, resolveKnowledgeBase, resolveWorkspace } from './resolve.ts'

const candidatesShownMax = 8

/** Flag `--kb` of commands that take one document. */
export const kbFlag = Flags.string({
  char: 'k',
  summary: 'knowledge base name or ID [all]',
})

/**
 * Finds a document by ID, file name, source ID or title.
 *
 * @param base  name or ID of the knowledge base to search; by default, all knowledge bases of the workspace
 * @throws WbError document_not_found  no document matches in these knowledge bases
 * @throws UsageError                  several documents match
 */
export async function findDocument(
  context: ResolveContext,
  nameOrId: string,
  base?: string,
): Promise<Document> {
  const bases =
    base === undefined
      ? await listKnowledgeBases(context.client, (await resolveWorkspace(context)).workspaceId)
      : [await resolveKnowledgeBase(context, base)]
  const matches: MatchingDocument[] = []
  let similarName: string | undefined
  for (const base of bases) {
    const found = await findInBase(context, base, nameOrId)
    matches.push(...found.matches.map(document => ({ document, base })))
    similarName ??= found.similarName
  }
  if (matches.length === 1) return matches[0]!.document
  if (matches.length > 1) throw severalDocuments(nameOrId, matches)
  const names = bases.map(({ name }) => name).join(', ')
  throw new WbError('document_not_found', `no document "${nameOrId}" in ${names || 'any knowledge base'}`, {
    next: [
      ...(similarName === undefined ? [] : [`did you mean ${shellWord(similarName)}?`]),
      `wb documents list${bases.length === 1 ? ` ${names}` : ' NAME'}`,
    ],
  })
}

interface MatchingDocument {
  readonly document: Document
  readonly base: KnowledgeBase
}

/** Imports keep the IDs of documents, so that an ID can be in several knowledge bases. */
function severalDocuments(nameOrId: string, matches: readonly MatchingDocument[]): UsageError {
  const ids = new Set(matches.map(({ document }) => document.documentId))
  const remedy = ids.size === matches.length ? 'use an ID' : 'add --kb with the knowledge base'
  return new UsageError(
    `${matches.length} documents are named "${nameOrId}"; ${remedy}`,
    matches
      .slice(0, candidatesShownMax)
      .map(({ document, base }) => `${document.documentId}  ${base.name}  ${documentName(document)}`),
  )
}

interface FoundDocuments {
  readonly matches: readonly Document[]
  /** Name of another document: the same file name in a folder. */
  readonly similarName?: string | undefined
}

async function findInBase(
  context: ResolveContext,
  base: KnowledgeBase,
  nameOrId: string,
): Promise<FoundDocuments> {
  const { workspaceId, knowledgeBaseId } = base
  const params = { workspaceId, knowledgeBaseId }
  if (isId(nameOrId)) {
    const document = await findById(context, { ...params, documentId: nameOrId })
    return { matches: document ? [document] : [] }
  }
  const all = context.client.items(documents.list, { params })
  const matches: Document[] = []
  let similarName: string | undefined
  for await (const row of all) {
    const { sourceFilename } = row
    if ([sourceFilename, row.sourceDocId, row.metadata.title].includes(nameOrId)) matches.push(row)
    else if (sourceFilename?.endsWith(`/${nameOrId}`)) similarName ??= sourceFilename
  }
  return { matches, similarName }
}

async function findById(
  { client }: ResolveContext,
  params: { workspaceId: string; knowledgeBaseId: string; documentId: string },
): Promise<Document | undefined> {
  try {
    return await client.call(documents.show, { params })
  } catch (error) {
    if (error instanceof WbError && error.code === 'document_not_found') return undefined
    throw error
  }
}
