import { join } from 'node:path'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { findDocument } from '../find/document.ts'
import type { ResolveContext } from '../find/resolve.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { readSettings, withoutPrototype, writeSettings } from '../settings/settings-file.ts'
import { formatCounted } from '../terminal/output.ts'
import type { Passage } from './find-passages.ts'

/** Stored location of a search result. It contains no text from the question or the document. */
interface CitedHit {
  readonly workspaceId: string
  readonly knowledgeBaseId: string
  readonly documentId: string
  readonly chunkIndex: number | null
}

/** Maximum number of runtimes whose last search is stored. */
const runtimesMax = 8

const citationPattern = /^\[?(\d{1,4})\]?$/

type StoredSearches = Record<string, readonly CitedHit[]>

function searchesPath(profile: Profile): string {
  return join(profile.settingsDir, 'last-search.json')
}

/**
 * Reads the stored searches. A corrupt file counts as empty.
 *
 * @throws UsageError  when other users can write to the file
 */
function readSearches(profile: Profile): StoredSearches {
  const content = readSettings(searchesPath(profile))
  return typeof content === 'string' ? withoutPrototype({}) : (content as StoredSearches)
}

/**
 * Stores the passages of a search in the order of their numbers.
 *
 * @returns false if the settings folder is not writable
 */
export function storeSearch(profile: Profile, hits: readonly CitedHit[]): boolean {
  const key = runtimeKey(profile)
  try {
    const { [key]: _replaced, ...others } = readSearches(profile)
    const newest = Object.fromEntries([...Object.entries(others), [key, hits]].slice(-runtimesMax))
    writeSettings(searchesPath(profile), newest)
    return true
  } catch {
    return false
  }
}

/** Returns true if a reference has the form of a passage number, such as `2` or `[2]`. */
function isCitation(reference: string): boolean {
  return citationPattern.test(reference)
}

/** Returns the result of the last search with a number such as `2` or `[2]`, or undefined. */
function findCitedHit(profile: Profile, reference: string): CitedHit | undefined {
  const number = citationPattern.exec(reference)?.[1]
  if (number === undefined) return undefined
  const hit = readSearches(profile)[runtimeKey(profile)]?.[Number(number) - 1]
  return hit && typeof hit.documentId === 'string' ? hit : undefined
}

/**
 * Returns the locations to store for passages. A passage without a document keeps its number, but cannot be
 * opened.
 */
export function toCitedHits(
  { workspaceId }: { workspaceId: string },
  passages: readonly Pick<Passage, 'knowledgeBaseId' | 'documentId' | 'chunkIndex'>[],
): CitedHit[] {
  return passages.map(({ knowledgeBaseId, documentId, chunkIndex }) => ({
    workspaceId,
    knowledgeBaseId,
    documentId: documentId ?? '',
    chunkIndex,
  }))
}

/** A document that the user named by ID, file name or source ID, or by the number of a search result. */
export interface CitedDocument {
  readonly document: Document
  /** The search result; undefined if the document was not named by its number. */
  readonly passage?: { readonly number: string; readonly chunkIndex: number | null }
}

/** Like `findDocument`, but also accepts the number of a result from the last search. */
export async function findCitedDocument(
  context: ResolveContext,
  reference: string,
  base?: string,
): Promise<CitedDocument> {
  if (base !== undefined || !isCitation(reference))
    return { document: await findDocument(context, reference, base) }
  const cited = await fetchCitedDocument(context, reference)
  if (cited) return cited
  try {
    return { document: await findDocument(context, reference) }
  } catch (error) {
    throw explainMissingNumber(error, context.profile)
  }
}

/**
 * Finds a document to delete. Does not accept numbers of search results, because their meaning changes with each
 * search.
 *
 * @throws WbError document_not_found  when no document matches; for a number, the message explains the rule
 */
export async function findDocumentToDelete(
  context: ResolveContext,
  reference: string,
  base?: string,
): Promise<Document> {
  try {
    return await findDocument(context, reference, base)
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'document_not_found' || !isCitation(reference))
      throw error
    const message = `${error.message}; search result numbers cannot be used to delete`
    throw new WbError(error.code, message, {
      next: [`wb documents show ${reference}    shows the document`],
    })
  }
}

/** Returns the error for an unknown number, with the number of results of the last search added to its message. */
function explainMissingNumber(error: unknown, profile: Profile): unknown {
  if (!(error instanceof WbError) || error.code !== 'document_not_found') return error
  const hits = readSearches(profile)[runtimeKey(profile)]
  const last = hits
    ? `the last search had ${formatCounted(hits.length, 'result')}`
    : 'no search has found anything yet'
  return new WbError(error.code, `${error.message}; ${last}`, error.facts)
}

/**
 * Returns the document of the result with a number such as `2` or `[2]` in the last search.
 *
 * @returns undefined if the reference is not a citation, or the last search has no such number
 * @throws WbError document_not_found  when the document was deleted
 */
async function fetchCitedDocument(
  { client, profile }: Pick<ResolveContext, 'client' | 'profile'>,
  reference: string,
): Promise<CitedDocument | undefined> {
  const hit = findCitedHit(profile, reference)
  if (!hit || hit.documentId === '') return undefined
  const { workspaceId, knowledgeBaseId, documentId, chunkIndex } = hit
  const params = { workspaceId, knowledgeBaseId, documentId }
  try {
    const document = await client.call(documents.show, { params })
    return { document, passage: { number: citationPattern.exec(reference)![1]!, chunkIndex } }
  } catch (error) {
    if (!(error instanceof WbError) || error.status !== 404) throw error
    const next = ['search again to get new numbers']
    throw new WbError(
      'document_not_found',
      `the document of ${reference} was deleted after the last search`,
      {
        ...error.facts,
        next,
      },
    )
  }
}
