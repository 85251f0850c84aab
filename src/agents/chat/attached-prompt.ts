import type { AttachmentIndex } from '../tools/attachment-reader.ts'
import { bytesForTokens } from '../tools/passage-budget.ts'
import { previewText } from '../tools/tool-result.ts'
import { bytesOfEntry, type CitationContext, formatEntries, type RetrievedPassage } from './grounding.ts'

/** Maximum length of the name of an attachment in the prompt. */
const nameCharsMax = 100
/** Below this number of bytes, no text of attachments is sent. */
const passageBytesMin = 480
/** Maximum number of passages to choose from. The budget has room for fewer. */
const candidatesMax = 200

/** Part of the prompt that contains the attachments of the conversation. */
export interface AttachedPrompt {
  readonly text: string
  readonly passages: readonly RetrievedPassage['passage'][]
  readonly bytes: number
}

export const emptyAttachedPrompt: AttachedPrompt = { text: '', passages: [], bytes: 0 }

const intro = 'These files are attached to the conversation. A question about "this file" is about them.'
const wholeTextNote = 'Their whole text is below.'
const passagesNote = 'Their passages that match the question best are below.'
const readToolNote = 'Read more of a file with read_attachment.'

/**
 * Puts the attachments of a conversation into the prompt: their whole text if it fits, or else the best passages for a
 * query. Each attachment gets at least one passage if there is space.
 *
 * @param tokens  maximum tokens of the text
 */
export async function buildAttachedPrompt(
  attached: readonly AttachmentIndex[],
  { query, tokens, canRead }: { query: string; tokens: number; canRead: boolean },
  { citations, marks }: CitationContext,
): Promise<AttachedPrompt> {
  if (attached.length === 0) return emptyAttachedPrompt
  const names = attached.map(attachmentName).join('\n')
  const bytesMax = bytesForTokens(tokens) - Buffer.byteLength(names)
  const isWhole = fitsWhole(attached, bytesMax)
  const candidates = isWhole ? attached.flatMap(({ chunks }) => chunks) : await bestPassages(attached, query)
  const hasRoom = bytesMax >= passageBytesMin
  const { entries, passages } = formatEntries(hasRoom ? candidates : [], query, bytesMax, citations)
  const notes = isWhole
    ? [intro, wholeTextNote]
    : [intro, passages.length > 0 && passagesNote, canRead && readToolNote]
  const data = marks.enclose('attachments', [names, entries].filter(Boolean).join('\n\n'))
  const text = `${notes.filter(Boolean).join(' ')}\n${data}`
  return { text, passages, bytes: Buffer.byteLength(text) }
}

function attachmentName({ attachment: { filename, attachmentId }, chunks }: AttachmentIndex): string {
  const name = JSON.stringify(previewText(filename, nameCharsMax))
  return `- ${name} attachmentId ${attachmentId}, ${chunks.length} chunks`
}

/** Returns true if the whole text of the attachments fits. */
function fitsWhole(attached: readonly AttachmentIndex[], bytesMax: number): boolean {
  const chars = attached.reduce((sum, { attachment }) => sum + attachment.textChars, 0)
  if (chars > bytesMax) return false
  const chunks = attached.flatMap(each => each.chunks)
  return chunks.reduce((sum, chunk) => sum + bytesOfEntry(chunk), 0) <= bytesMax
}

interface ChunkCandidate {
  readonly chunk: RetrievedPassage
  readonly chunkIndex: number
  readonly score: number
}

/** Returns passages in order of preference: the best one of each attachment, then all others. */
async function bestPassages(
  attached: readonly AttachmentIndex[],
  query: string,
): Promise<RetrievedPassage[]> {
  const [firsts, others]: [ChunkCandidate[], ChunkCandidate[]] = [[], []]
  for (const each of attached) {
    // In sequence, so that other work can run in between.
    const scores = await each.scores(query)
    const scored = each.chunks.map((chunk, at) => ({ chunk, chunkIndex: at, score: scores.get(at) ?? 0 }))
    const [first, ...rest] = scored.sort(compareRank).slice(0, candidatesMax)
    firsts.push(first!)
    others.push(...rest)
  }
  const matches = others.filter(({ score }) => score > 0)
  const hasMatch = firsts.some(({ score }) => score > 0)
  const rest = hasMatch ? matches : others
  return [...firsts.sort(compareRank), ...rest.sort(compareRank)]
    .slice(0, candidatesMax)
    .map(({ chunk }) => chunk)
}

/** Sorts by score, highest first, then by position in the file. */
function compareRank(left: ChunkCandidate, right: ChunkCandidate): number {
  return right.score - left.score || left.chunkIndex - right.chunkIndex
}
