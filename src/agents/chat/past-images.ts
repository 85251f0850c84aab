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

/** Maximum number and total size in bytes of the images in one model request, including those of the question. */
const requestMax = { images: 8, bytes: 20_000_000 }

/** @throws llm_model_no_images  there are images, and the model cannot read images */
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

/** A history with images, for one turn. Call `release` when the turn ends, to free the reserved memory. */
export interface ImageHistory {
  readonly history: History
  readonly release: () => void
}

/** Adds the images of earlier questions to histories. All running turns share one memory limit. */
export class PastImages {
  #reservedBytes = 0

  /** @param reservedBytesMax  maximum total size, in bytes, of the images that are added for all running turns */
  constructor(private readonly reservedBytesMax = 100_000_000) {}

  /**
   * Adds the images of earlier questions to a history, newest first, if they fit into the memory limit and, together
   * with the images of the question, into one request.
   */
  async add(
    history: History,
    questionImages: readonly ImageInput[],
    context: {
      readonly rows: RowStore
      readonly conversationKey: StoredConversationKey
      readonly promptTokensMax: number
    },
  ): Promise<ImageHistory> {
    let imagesLeft =
      Math.min(requestMax.images, Math.floor(context.promptTokensMax / tokensPerImage)) -
      questionImages.length
    let bytesLeft = requestMax.bytes - totalBytes(questionImages)
    let reservedBytes = 0
    const turnsWithImages = new Set<PastTurn>()
    for (const turn of history.turns.toReversed()) {
      const turnImages = turn.rows[0]!.images ?? []
      const size = turnImages.reduce((sum, image) => sum + image.bytes, 0)
      imagesLeft -= turnImages.length
      bytesLeft -= size
      const fits = imagesLeft >= 0 && bytesLeft >= 0 && this.#reservedBytes + size <= this.reservedBytesMax
      if (turnImages.length === 0 || !fits) continue
      turnsWithImages.add(turn)
      reservedBytes += size
      this.#reservedBytes += size
    }
    const release = () => {
      this.#reservedBytes -= reservedBytes
      reservedBytes = 0
    }
    try {
      const turns: PastTurn[] = []
      for (const turn of history.turns)
        turns.push(
          turnsWithImages.has(turn) ? await readTurn(turn, context.rows, context.conversationKey) : turn,
        )
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
