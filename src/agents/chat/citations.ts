import type { Citation } from '../../contract/chat.ts'
import type { ToolPassage } from '../tools/tool.ts'

/**
 * The passages of a conversation, by citation number. A passage keeps its number in later turns as long as the history
 * includes the turn in which it was found.
 */
export class Citations {
  readonly #byNumber = new Map<number, Citation>()
  readonly #numbers = new Map<string, number>()
  readonly #texts = new Map<number, string>()
  #highestNumber = 0

  /**
   * @param earlier          citations of earlier turns
   * @param reservedThrough  highest number that may not be used for another passage
   */
  constructor(earlier: readonly Citation[] = [], reservedThrough = 0) {
    for (const citation of earlier) this.#add(citation)
    this.#highestNumber = Math.max(this.#highestNumber, reservedThrough)
  }

  /**
   * Returns the number of a passage. Assigns the next number if it has none.
   *
   * @param text  text of the passage, or the part of it that the model receives
   */
  numberOf(passage: ToolPassage, text: string): number {
    const key = keyOf(passage)
    if (!this.#numbers.has(key)) this.#add({ ...passage, number: this.#highestNumber + 1 })
    const number = this.#numbers.get(key)!
    const earlierText = this.#texts.get(number)
    this.#texts.set(number, earlierText === undefined ? text : `${earlierText}\n\n${text}`)
    return number
  }

  /** Returns the text of a passage that the model has received in this turn; undefined for passages of earlier turns. */
  textOf(passage: ToolPassage): string | undefined {
    return this.#texts.get(this.#numbers.get(keyOf(passage)) ?? 0)
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
