import type { TextLayout, TextPlace } from '../base/text-layout.ts'
import type { Ingest } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { EmbeddedPassage } from '../models/lsa.ts'
import { embeddedTitle } from '../storage/content.ts'
import type { ChunkOptions, ChunkSpan } from './chunk/chunker.ts'
import { type BoundChunker, type ChunkerSettings, createChunker } from './chunk/index.ts'
import { newTextOffsets } from './chunk/new-text.ts'
import { placesAt } from './chunk/places.ts'
import { sectionsAt } from './chunk/sections.ts'
import { columnHeadsAt, tableHeadsAt } from './chunk/tables.ts'
import { type ChunkContext, contextOfChunk } from './payload.ts'

/** A chunk, which is a slice of the text. Its context is undefined if the text is not Markdown. */
export interface TextChunk extends ChunkContext {
  /** Offset of the chunk in the text, in UTF-16 units. */
  readonly start: number
  readonly text: string
  /** Place in the file of the first text that the chunk before does not contain; undefined if the file has no places. */
  readonly place?: TextPlace | undefined
  /** Places that start inside the chunk, after its start; absent if there are none. */
  readonly innerPlaces?: readonly TextPlace[]
  /** Text before the chunk that no chunk contains; absent if empty. */
  readonly textBefore?: string
  /** Text after the last chunk; absent if empty, and for other chunks. */
  readonly textAfter?: string
}

export interface ChunkedText {
  readonly chunkerId: string
  readonly chunkOptions: ChunkOptions
  readonly chunkUnit: BoundChunker['unit']
  readonly chunks: TextChunk[]
}

/** A text to chunk. */
export interface ChunkInput {
  readonly text: string
  readonly service: ChunkerSettings
  readonly override: Ingest['chunker']
  readonly layout: TextLayout
  /** Description of the folder, which is embedded with each chunk. */
  readonly folder?: string | undefined
}

/**
 * Chunks a text.
 *
 * @throws invalid_chunker
 */
export function chunkText({ text, service, override, layout, folder }: ChunkInput): ChunkedText {
  const chunker = createChunker(service, override)
  const spans = chunker.chunk(text, layout.isCode)
  requireShortOverlap(spans)
  const offsets = newTextOffsets(text, spans)
  const sections = layout.isMarkdown ? sectionsAt(text, offsets) : []
  const tableHeads = tableHeadsOf(text, spans, layout)
  const places = placesAt(offsets, layout.places)
  const innerPlaces = innerPlacesOf(spans, layout.places)
  const chunks = spans.map(({ start, end }, at) => ({
    start,
    text: text.slice(start, end),
    folder,
    section: sections[at],
    tableHeads: tableHeads[at],
    place: places[at],
    ...(innerPlaces[at]!.length > 0 && { innerPlaces: innerPlaces[at]! }),
    ...gapsAt(text, spans, at),
  }))
  return { chunkerId: chunker.id, chunkOptions: chunker.options, chunkUnit: chunker.unit, chunks }
}

function tableHeadsOf(
  text: string,
  spans: readonly ChunkSpan[],
  { isMarkdown, isDelimited }: TextLayout,
): (string | undefined)[] {
  if (isMarkdown) return tableHeadsAt(text, spans)
  return isDelimited ? columnHeadsAt(text, spans) : []
}

/** Maximum length of all chunks of a text together. */
const chunkCharsMax = 2 * limits.ingestTextChars

function requireShortOverlap(spans: readonly ChunkSpan[]): void {
  const chars = spans.reduce((sum, { start, end }) => sum + end - start, 0)
  if (chars > chunkCharsMax)
    throw new WbError('invalid_chunker', `overlapChars would repeat the text up to ${chars} characters`, {
      hint: 'Use a shorter overlap.',
    })
}

/**
 * Returns the places that start inside each span, which are needed to split the text again.
 *
 * @param spans   with ascending starts
 * @param places  with ascending starts
 */
function innerPlacesOf(spans: readonly ChunkSpan[], places: readonly TextPlace[]): (readonly TextPlace[])[] {
  let first = 0
  return spans.map(({ start, end }) => {
    while (first < places.length && places[first]!.start <= start) first++
    let next = first
    while (next < places.length && places[next]!.start < end) next++
    return places.slice(first, next)
  })
}

/** Returns the text that is in no chunk, and belongs to the chunk with an index. */
function gapsAt(
  text: string,
  spans: readonly ChunkSpan[],
  at: number,
): Pick<TextChunk, 'textBefore' | 'textAfter'> {
  const textBefore = text.slice(spans[at - 1]?.end ?? 0, spans[at]!.start)
  const textAfter = at === spans.length - 1 ? text.slice(spans[at]!.end) : ''
  return { ...(textBefore && { textBefore }), ...(textAfter && { textAfter }) }
}

/** Returns the input of embedders for the chunks of a document. */
export function passagesOf(title: string | null, chunks: readonly TextChunk[]): EmbeddedPassage[] {
  return chunks.map(chunk => ({
    title: embeddedTitle({ title, context: contextOfChunk(title, chunk) }),
    text: chunk.text,
  }))
}
