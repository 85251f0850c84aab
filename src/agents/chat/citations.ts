import type { Citation } from '../../contract/chat.ts'
import type { ToolPassage } from '../tools/tool.ts'

/**
 * The passages of a conversation, by the numbers that answers cite them by. A passage keeps its number in later turns,
 * as long as the turn that found it is remembered.
 */
export class Citations {
  readonly #byNumber = new Map<number, Citation>()
  readonly #numbers = new Map<string, number>()
  #last = 0

  /** @param known  of earlier turns */
  constructor(known: readonly Citation[] = []) {
    for (const citation of known) this.#add(citation)
  }

  /** The number of a passage; a new one where it is not known. */
  numberOf(passage: ToolPassage): number {
    const known = this.#numbers.get(keyOf(passage))
    if (known !== undefined) return known
    this.#add({ ...passage, number: this.#last + 1 })
    return this.#last
  }

  /** The highest number in use; 0 where nothing was found yet. */
  get last(): number {
    return this.#last
  }

  of(number: number): Citation | undefined {
    return this.#byNumber.get(number)
  }

  #add(citation: Citation): void {
    this.#byNumber.set(citation.number, citation)
    this.#numbers.set(keyOf(citation), citation.number)
    this.#last = Math.max(this.#last, citation.number)
  }
}

function keyOf({ knowledgeBaseId, chunkId }: ToolPassage): string {
  return `${knowledgeBaseId} ${chunkId}`
}
