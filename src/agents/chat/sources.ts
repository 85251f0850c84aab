import type { PassageCheck, PassageReference } from '../../knowledge/passage-visibility.ts'
import type { MessageSource } from '../../storage/tables.ts'

/** Maximum number of sources that are stored with a message. A message with more counts as one with unknown sources. */
const storedMax = 1_000

/** Returns the source that a passage belongs to; none for a passage of an attachment. */
export function sourcesOf({ knowledgeBaseId, documentId, chunkId }: PassageReference): MessageSource[] {
  if (knowledgeBaseId === null) return []
  // The IDs of ingested chunks start with the ID of their document, so the document identifies them.
  const isIngested = documentId !== null && (chunkId === null || chunkId.startsWith(`${documentId}:`))
  return [[knowledgeBaseId, documentId, isIngested ? null : chunkId]]
}

/** The documents and records that a text is derived from. */
export class SourceSet {
  readonly #sources = new Map<string, MessageSource>()
  #isComplete = true

  /** @param sources  undefined if they are not known */
  add(sources: readonly MessageSource[] | undefined): void {
    if (!sources) this.#isComplete = false
    for (const source of sources ?? []) this.#sources.set(JSON.stringify(source), source)
  }

  /** All sources; undefined if some are not known. */
  get all(): readonly MessageSource[] | undefined {
    return this.#isComplete ? [...this.#sources.values()] : undefined
  }

  /** Returns the field to store with a message. Empty if some sources are not known, or if there are too many. */
  toField(): { sources?: MessageSource[] } {
    const { all } = this
    return all && all.length <= storedMax ? { sources: [...all] } : {}
  }
}

/** Returns true if a caller may see all sources of a text. If they are not known, it must be able to see everything. */
export async function areSourcesVisible(
  sources: readonly MessageSource[] | undefined,
  check: PassageCheck,
): Promise<boolean> {
  if (check.seesAll) return true
  if (!sources) return false
  const decisions = await Promise.all(
    sources.map(([knowledgeBaseId, documentId, chunkId]) =>
      check.isVisible({ knowledgeBaseId, documentId, chunkId }),
    ),
  )
  return decisions.every(Boolean)
}
