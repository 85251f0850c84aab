import type { Citation } from '../../contract/chat.ts'
import type { ToolPassage } from '../tools/tool.ts'

/**
 * The passages of a conversation by citation number. A passage keeps its number in later turns while the history
 * includes the turn that found it.
 */
export class Citations {
  readonly #byNumber = new Map<number, Citation>()
  readonly #numbers = new Map<string, number>()
  #last = 0

  /** @param known  citations of earlier turns */
  constructor(known: readonly Citation[] = []) {
    for (const citation of known) this.#add(citation)
  }

  /** Returns the number of a passage; a new one if the passage has none. */
  numberOf(passage: ToolPassage): number {
    const known = this.#numbers.get(keyOf(passage))
    if (known !== undefined) return known
    this.#add({ ...passage, number: this.#last + 1 })
    return this.#last
  }

  /** Returns the highest number in use; 0 if no passage has a number. */
  get last(): number {
    return this.#last
  }

  get(number: number): Citation | undefined {
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
