import type { Citation } from '../../contract/chat.ts'
import type { ToolPassage } from '../tools/tool.ts'

/**
 * The passages of a conversation, by citation number. A passage keeps its number in later turns as long as the history
 * includes the turn in which it was found.
 */
export class Citations {
  readonly #byNumber = new Map<number, Citation>()
  readonly #numbers = new Map<string, number>()
  #highestNumber = 0

  /**
   * @param earlier          citations of earlier turns
   * @param reservedThrough  highest number that may not be used for another passage
   */
  constructor(earlier: readonly Citation[] = [], reservedThrough = 0) {
    for (const citation of earlier) this.#add(citation)
    this.#highestNumber = Math.max(this.#highestNumber, reservedThrough)
  }

  /** Returns the number of a passage. Assigns the next number if it has none. */
  numberOf(passage: ToolPassage): number {
    const existingNumber = this.#numbers.get(keyOf(passage))
    if (existingNumber !== undefined) return existingNumber
    this.#add({ ...passage, number: this.#highestNumber + 1 })
    return this.#highestNumber
  }

  /** Returns the highest number in use; 0 if no passage has a number. */
  get highestNumber(): number {
    return this.#highestNumber
  }

  get(number: number): Citation | undefined {
    return this.#byNumber.get(number)
  }

  #add(citation: Citation): void {
    this.#byNumber.set(citation.number, citation)
    this.#numbers.set(keyOf(citation), citation.number)
    this.#highestNumber = Math.max(this.#highestNumber, citation.number)
  }
}

function keyOf({ knowledgeBaseId, chunkId }: ToolPassage): string {
  return `${knowledgeBaseId} ${chunkId}`
}
