import { fullVisibility } from '../../access/row-access.ts'
import type { TextPlace } from '../../base/text-layout.ts'
import { gapPayloadKeys, placesPayloadKey, startPayloadKey } from '../../contract/fields.ts'
import { placePayloadKeys } from '../../contract/payload-keys.ts'
import type { RecordView } from '../../storage/content.ts'
import { requireListing } from '../../storage/store-features.ts'
import { newTextOffsets } from '../chunk/new-text.ts'
import type { BaseContext } from '../knowledge-bases.ts'

/** Number of chunks to read at once. */
const chunksPerRead = 256

/** Reads all chunks of a document, in order. */
export async function readAllChunks({ store, key }: BaseContext, documentId: string): Promise<RecordView[]> {
  const chunks: RecordView[] = []
  for (;;) {
    const last = chunks.at(-1)
    const page = await requireListing(store).listByDocument(key, {
      documentId,
      ...(last && { after: { chunkIndex: last.chunkIndex, id: last.id } }),
      limit: chunksPerRead,
      visibility: fullVisibility(),
    })
    chunks.push(...page)
    if (page.length < chunksPerRead) return chunks
  }
}

/**
 * Joins chunks, which can overlap, to the text that they were cut from. Returns undefined if text is missing: earlier versions
 * stored chunks without their offsets, or without the white space between them.
 */
export function readTextOf(chunks: readonly Pick<RecordView, 'text' | 'payload'>[]): string | undefined {
  const parts: string[] = []
  let length = 0
  const add = (part: unknown) => {
    if (typeof part !== 'string') return
    parts.push(part)
    length += part.length
  }
  for (const { text, payload } of chunks) {
    const start = payload[startPayloadKey]
    if (text === null || typeof start !== 'number') return undefined
    if (start > length) add(payload[gapPayloadKeys.before])
    if (start > length) return undefined
    add(text.slice(length - start))
  }
  add(chunks.at(-1)?.payload[gapPayloadKeys.after])
  return parts.join('')
}

/**
 * Returns the places of a file, such as pages, that its chunks contain, with ascending starts. Chunks that an earlier version
 * stored contain only the place at their start, so a place that starts inside such a chunk is missing.
 *
 * @param text  the text of the document
 */
export function readPlaces(
  text: string,
  chunks: readonly Pick<RecordView, 'text' | 'payload'>[],
): TextPlace[] {
  const spans = chunks.map(({ text: chunk, payload }) => {
    const start = payload[startPayloadKey] as number
    return { start, end: start + (chunk ?? '').length }
  })
  const offsets = newTextOffsets(text, spans)
  const places = chunks.flatMap(({ payload }, at): TextPlace[] => {
    const { start } = spans[at]!
    const { page, slide, sheet } = placePayloadKeys
    const own = Object.entries({ page: payload[page], slide: payload[slide], sheet: payload[sheet] })
    const known = own.filter(([, value]) => value !== undefined)
    const inner = (payload[placesPayloadKey] ?? []) as TextPlace[]
    // The place of the chunk starts inside the text that the chunk before contains too.
    if (inner.length > 0 && inner[0]!.start <= offsets[at]!) return inner
    return [...(known.length > 0 ? [{ start, ...Object.fromEntries(known) }] : []), ...inner]
  })
  return places.sort((a, b) => a.start - b.start)
}
