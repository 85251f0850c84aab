import { KeyedQueue } from '../base/keyed-queue.ts'
import { type DocumentKey, keyOf } from './document-key.ts'

/** Number of attempts of a change before later changes of the document wait for it. */
const sharedAttempts = 3
const exclusiveAttempts = 20

/**
 * Repeats changes of documents that fail because the document changed in the meantime. After several attempts, later
 * changes of the document in this process wait. Otherwise, short changes could prevent a long one, for example one that
 * hides a document with many chunks.
 */
export class DocumentChanges {
  readonly #exclusive = new KeyedQueue()

  /** @param attempt  returns undefined if the document changed in the meantime */
  async run<T>(key: DocumentKey, attempt: () => Promise<T | undefined>): Promise<T | undefined> {
    const document = JSON.stringify(keyOf(key))
    await this.#exclusive.run(document, async () => {})
    return (
      (await repeat(attempt, sharedAttempts)) ??
      (await this.#exclusive.run(document, () => repeat(attempt, exclusiveAttempts)))
    )
  }
}

async function repeat<T>(attempt: () => Promise<T | undefined>, times: number): Promise<T | undefined> {
  for (let n = 0; n < times; n++) {
    const result = await attempt()
    if (result !== undefined) return result
  }
  return undefined
}
