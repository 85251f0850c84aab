import type { PassageCheck, PassageReference } from '../../knowledge/passage-visibility.ts'
import type { MessageRow, MessageSource } from '../../storage/tables.ts'

/** A source with the timestamp at which it was read. */
export type DatedSource = Required<MessageSource>

/** Maximum number of sources that are stored with a message. A message with more counts as one with unknown sources. */
const storedMax = 1_000

/** Returns the source that a passage belongs to; none for a passage of an attachment. */
export function sourcesOf({ knowledgeBaseId, documentId, chunkId }: PassageReference): MessageSource[] {
  if (knowledgeBaseId === null) return []
  // The IDs of ingested chunks start with the ID of their document, so the document identifies them.
  const isIngested = documentId !== null && (chunkId === null || chunkId.startsWith(`${documentId}:`))
  return [[knowledgeBaseId, documentId, isIngested ? null : chunkId]]
}

/** Returns sources with a timestamp. Keeps those that they have. */
export function dateSources(sources: readonly MessageSource[], readAt: string): DatedSource[] {
  return sources.map(([knowledgeBaseId, documentId, chunkId, earlier = readAt]) => [
    knowledgeBaseId,
    documentId,
    chunkId,
    earlier,
  ])
}

/** Returns the sources of a message; undefined if they are not known. */
export function datedSourcesOf({ sources, messageTs }: MessageRow): DatedSource[] | undefined {
  return sources && dateSources(sources, messageTs)
}

/** The documents and records that a text is derived from. Keeps the earliest time at which each was read. */
export class SourceSet {
  readonly #sources = new Map<string, DatedSource>()
  #isComplete = true

  /** @param sources  undefined if they are not known */
  add(sources: readonly DatedSource[] | undefined): void {
    if (!sources) this.#isComplete = false
    for (const source of sources ?? []) {
      const [knowledgeBaseId, documentId, chunkId, readAt] = source
      const key = JSON.stringify([knowledgeBaseId, documentId, chunkId])
      const known = this.#sources.get(key)
      if (!known || readAt < known[3]) this.#sources.set(key, source)
    }
  }

  /** All sources; undefined if some are not known. */
  get all(): readonly DatedSource[] | undefined {
    return this.#isComplete ? [...this.#sources.values()] : undefined
  }

  /** Returns the field to store with a message. Empty if some sources are not known, or if there are too many. */
  toField(): { sources?: DatedSource[] } {
    const { all } = this
    return all && all.length <= storedMax ? { sources: [...all] } : {}
  }
}

/** Returns true if a caller may see all sources of a text. If they are not known, it must be able to see everything. */
export async function areSourcesVisible(
  sources: readonly DatedSource[] | undefined,
  check: PassageCheck,
): Promise<boolean> {
  if (check.seesAll) return true
  if (!sources) return false
  const decisions = await Promise.all(
    sources.map(([knowledgeBaseId, documentId, chunkId, readAt]) =>
      check.isVisible({ knowledgeBaseId, documentId, chunkId }, readAt),
    ),
  )
  return decisions.every(Boolean)
}
