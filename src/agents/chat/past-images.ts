import { WbError } from '../../contract/errors.ts'
import type { ImageInput } from '../../contract/images.ts'
import { limits } from '../../contract/limits.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import type { AnsweringModel } from './answering-model.ts'
import type { StoredConversationKey } from './current-version.ts'
import type { History } from './history.ts'
import { withoutImages } from './image-notes.ts'
import type { PastTurn } from './past-turns.ts'
import { tokensPerImage } from './request-budget.ts'

/** Maximum number of images in one request to a model, and their size in bytes, including those of the question. */
const requestMax = { images: 8, bytes: 20_000_000 }

/** @throws llm_model_no_images  there are images, and the model is known not to read any */
export function requireImageSupport(
  { model, supportsImages }: AnsweringModel,
  images: readonly ImageInput[],
): void {
  if (images.length > 0 && supportsImages === false)
    throw new WbError('llm_model_no_images', `images: model "${model}" cannot read images`)
}

/** Returns the size of images in bytes. */
export function totalBytes(images: readonly ImageInput[]): number {
  return images.reduce((sum, { data }) => sum + Buffer.byteLength(data, 'base64'), 0)
}

/** Returns a history with notes instead of images. */
export function historyWithoutImages(history: History): History {
  return { ...history, messages: history.messages.map(withoutImages) }
}

/** A history for one turn. Call `release` when the turn ends to free the reserved memory. */
export interface ImageHistory {
  readonly history: History
  readonly release: () => void
}

/** Adds images of earlier questions to histories, within a common limit on the memory that they take. */
export class PastImages {
  #heldBytes = 0

  /** @param heldBytesMax  maximum size in bytes of such images of all turns that are running */
  constructor(private readonly heldBytesMax = 100_000_000) {}

  /**
   * Adds the images of earlier questions to a history, the newest first, as far as they fit into one request together
   * with the images of the question, and into memory.
   */
  async add(
    history: History,
    question: readonly ImageInput[],
    from: { readonly rows: RowStore; readonly place: StoredConversationKey; readonly promptTokens: number },
  ): Promise<ImageHistory> {
    let images = Math.min(requestMax.images, Math.floor(from.promptTokens / tokensPerImage)) - question.length
    let bytes = requestMax.bytes - totalBytes(question)
    let heldBytes = 0
    const chosen = new Set<PastTurn>()
    for (const turn of history.turns.toReversed()) {
      const sent = turn.rows[0]!.images ?? []
      const size = sent.reduce((sum, image) => sum + image.bytes, 0)
      images -= sent.length
      bytes -= size
      const isWithin = images >= 0 && bytes >= 0 && this.#heldBytes + size <= this.heldBytesMax
      if (sent.length === 0 || !isWithin) continue
      chosen.add(turn)
      heldBytes += size
      this.#heldBytes += size
    }
    const release = () => {
      this.#heldBytes -= heldBytes
      heldBytes = 0
    }
    try {
      const turns: PastTurn[] = []
      for (const turn of history.turns)
        turns.push(chosen.has(turn) ? await readTurn(turn, from.rows, from.place) : turn)
      return { history: { ...history, turns, messages: turns.flatMap(turn => turn.messages) }, release }
    } catch (error) {
      release()
      throw error
    }
  }
}

async function readTurn(
  turn: PastTurn,
  rows: RowStore,
  { workspaceId, conversationId }: StoredConversationKey,
): Promise<PastTurn> {
  const { messageId, content } = turn.rows[0]!
  const stored = await rows.list(tables.messageImages, {
    index: 'byMessage',
    prefix: [workspaceId, conversationId, messageId],
    limit: limits.messageImages,
  })
  const images = stored.map(({ row: { mediaType, data } }) => ({ mediaType, data }))
  return { ...turn, messages: [{ role: 'user', content: content ?? '', images }, ...turn.messages.slice(1)] }
}
