import { WbError } from '../../contract/errors.ts'
import type { ImageInput } from '../../contract/images.ts'
import { limits } from '../../contract/limits.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import type { History } from './history.ts'
import { withoutImages } from './image-notes.ts'
import type { AnsweringModel } from './model.ts'
import type { PastTurn } from './past-turns.ts'
import type { MessagePlace } from './replaced.ts'

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

/** Returns a history with notes instead of images. */
export function historyWithoutImages(history: History): History {
  return { ...history, messages: history.messages.map(withoutImages) }
}

/**
 * Adds the images of earlier questions to a history, the newest first, as far as they fit into one request together with
 * the images of the question.
 */
export async function withImages(
  history: History,
  question: readonly ImageInput[],
  { rows, place }: { readonly rows: RowStore; readonly place: MessagePlace },
): Promise<History> {
  let images = requestMax.images - question.length
  let bytes =
    requestMax.bytes - question.reduce((sum, { data }) => sum + Buffer.byteLength(data, 'base64'), 0)
  const turns: PastTurn[] = []
  for (const turn of history.turns.toReversed()) {
    const sent = turn.rows[0]!.images ?? []
    images -= sent.length
    bytes -= sent.reduce((sum, image) => sum + image.bytes, 0)
    const isWithin = sent.length > 0 && images >= 0 && bytes >= 0
    turns.unshift(isWithin ? await readTurn(turn, rows, place) : turn)
  }
  return { ...history, turns, messages: turns.flatMap(turn => turn.messages) }
}

async function readTurn(
  turn: PastTurn,
  rows: RowStore,
  { workspaceId, conversationId }: MessagePlace,
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
