import type { Client } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type DocumentText, findContext, joinDocumentText, type PassageContext } from '../passages/context.ts'
import type { CitedDocument } from '../passages/last-search.ts'
import type { TextRange } from '../passages/matches.ts'
import type { PassagePlace } from '../passages/place.ts'
import { isMarkdownDocument } from '../passages/print-passages.ts'
import { readDocumentChunks } from './chunks.ts'

/** A document and the part of its text to show. */
export interface DocumentView extends CitedDocument {
  /** Part of the text to show; undefined if none is shown. */
  readonly part?: TextRange
  /** Text of the document, at least up to the end of `part`. */
  readonly text: string
  /** True if the whole text is shown. */
  readonly isWhole: boolean
  readonly isMarkdown: boolean
  /** Range of the cited chunk; undefined if no chunk was cited, or it was deleted. */
  readonly cited?: TextRange
  /** Place in the file at which the cited chunk starts; undefined if it has none. */
  readonly place?: PassagePlace | undefined
  /** Context of the cited chunk. */
  readonly context?: PassageContext
}

/**
 * Reads a document with its whole text, or with a cited passage and its context.
 *
 * @returns a view without `part` if no passage is cited, its chunk was deleted, or the runtime cannot list chunks
 */
export async function readDocumentView(
  client: Client,
  citedDocument: CitedDocument,
  isWhole: boolean,
): Promise<DocumentView> {
  const isMarkdown = isMarkdownDocument(citedDocument)
  const { text, cited, place } = await readVisibleText(client, citedDocument, isWhole)
  const context = cited && findContext(text, cited, isMarkdown)
  const part = isWhole ? { start: 0, end: text.length } : context?.context
  return { ...citedDocument, text, isWhole, isMarkdown, part, cited, place, context }
}

async function readVisibleText(
  client: Client,
  { document, passage }: CitedDocument,
  isWhole: boolean,
): Promise<DocumentText> {
  const chunkIndex = passage?.chunkIndex ?? undefined
  if (!isWhole && chunkIndex === undefined) return { text: '' }
  try {
    const { contentHash } = document
    return await joinDocumentText(readDocumentChunks(client, document), { chunkIndex, isWhole, contentHash })
  } catch (error) {
    if (isWhole || !(error instanceof WbError) || error.code !== 'list_records_not_supported') throw error
    return { text: '' }
  }
}

/** Returns the document in the format of the API, with the cited passage and the whole text if they are shown. */
export function documentViewJson({ document, passage, text, isWhole, cited, context }: DocumentView): object {
  const slice = ({ start, end }: TextRange) => text.slice(start, end)
  const chunkIndex = passage?.chunkIndex
  return {
    ...document,
    ...(cited && context && { passage: { chunkIndex, text: slice(cited), context: slice(context.context) } }),
    ...(isWhole && { text }),
  }
}
