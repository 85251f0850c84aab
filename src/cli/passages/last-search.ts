import { join } from 'node:path'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { findDocument } from '../find/document.ts'
import type { Resolving } from '../find/resolve.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { bare, readSettings, writeSettings } from '../settings/settings-file.ts'
import { counted } from '../terminal/output.ts'
import type { Passage } from './hits.ts'

/** A passage that a search showed: ids only, no words of the question or of a document. */
interface CitedHit {
  readonly workspaceId: string
  readonly knowledgeBaseId: string
  readonly documentId: string
  readonly chunkIndex: number | null
}

/** Runtimes whose last search is remembered. */
const runtimesMax = 8

const citation = /^\[?(\d{1,4})\]?$/

type Remembered = Record<string, readonly CitedHit[]>

function storedPath(profile: Profile): string {
  return join(profile.settingsDir, 'last-search.json')
}

/** A file that is broken means that nothing was searched. @throws UsageError  others can write it */
function remembered(profile: Profile): Remembered {
  const content = readSettings(storedPath(profile))
  return typeof content === 'string' ? bare({}) : (content as Remembered)
}

/**
 * Remember the passages of a search in the order of their numbers.
 *
 * @returns false where the settings folder cannot be written; the search stands all the same
 */
export function rememberSearch(profile: Profile, hits: readonly CitedHit[]): boolean {
  const key = runtimeKey(profile)
  try {
    const { [key]: _replaced, ...others } = remembered(profile)
    const kept = Object.fromEntries([...Object.entries(others), [key, hits]].slice(-runtimesMax))
    writeSettings(storedPath(profile), kept)
    return true
  } catch {
    return false
  }
}

/** Returns whether a name may be the number of a passage, such as `2` or `[2]`. */
function isCitation(name: string): boolean {
  return citation.test(name)
}

/** The passage that a citation such as `2` or `[2]` names in the last search; undefined when there is none. */
function citedHit(profile: Profile, reference: string): CitedHit | undefined {
  const number = citation.exec(reference)?.[1]
  if (number === undefined) return undefined
  const hit = remembered(profile)[runtimeKey(profile)]?.[Number(number) - 1]
  return hit && typeof hit.documentId === 'string' ? hit : undefined
}

/** What of passages is remembered; one that belongs to no document keeps its number, and leads nowhere. */
export function citedHits(
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

/** A document, and the cited passage if it was named by a number. */
export interface Cited {
  readonly document: Document
  /** Undefined if the document was named by ID, file name or source ID. */
  readonly passage?: { readonly number: string; readonly chunkIndex: number | null }
}

/** A document as `findDocument` finds it, or by the number of a passage in the last search. */
export async function findCited(resolving: Resolving, wanted: string, base?: string): Promise<Cited> {
  if (base !== undefined || !isCitation(wanted))
    return { document: await findDocument(resolving, wanted, base) }
  const cited = await citedDocument(resolving, wanted)
  if (cited) return cited
  try {
    return { document: await findDocument(resolving, wanted) }
  } catch (error) {
    throw withLastSearch(error, resolving.profile)
  }
}

/**
 * A document by another name than the number of a passage, which means something else after the next search.
 *
 * @throws WbError document_not_found  for a number, it says so
 */
export async function findToDelete(resolving: Resolving, wanted: string, base?: string): Promise<Document> {
  try {
    return await findDocument(resolving, wanted, base)
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'document_not_found' || !isCitation(wanted)) throw error
    const message = `${error.message}; numbers of a search cannot be deleted`
    throw new WbError(error.code, message, {
      next: [`wb documents show ${wanted}    shows which file it is`],
    })
  }
}

/** Adds to the error for a number how many results the last search had. */
function withLastSearch(error: unknown, profile: Profile): unknown {
  if (!(error instanceof WbError) || error.code !== 'document_not_found') return error
  const hits = remembered(profile)[runtimeKey(profile)]
  const last = hits ? `the last search had ${counted(hits.length, 'result')}` : 'there was no search yet'
  return new WbError(error.code, `${error.message}; ${last}`, error.facts)
}

/**
 * The document that `2` or `[2]` names in the last search.
 *
 * @returns undefined where the reference is no citation, or nothing was searched that has this number
 * @throws WbError document_not_found  it is gone since
 */
async function citedDocument(
  { client, profile }: Pick<Resolving, 'client' | 'profile'>,
  reference: string,
): Promise<Cited | undefined> {
  const hit = citedHit(profile, reference)
  if (!hit || hit.documentId === '') return undefined
  const { workspaceId, knowledgeBaseId, documentId, chunkIndex } = hit
  const params = { workspaceId, knowledgeBaseId, documentId }
  try {
    const document = await client.call(documents.show, { params })
    return { document, passage: { number: citation.exec(reference)![1]!, chunkIndex } }
  } catch (error) {
    if (!(error instanceof WbError) || error.status !== 404) throw error
    const next = ['search again; the numbers are those of the last search']
    throw new WbError('document_not_found', `the document of ${reference} is gone since the last search`, {
      ...error.facts,
      next,
    })
  }
}
